"""What a usable label is: at least two classes, and classes rather than a quantity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.notices import Notice
from c2tc_pipeline.tables.kinds import Kind, column_kind, plain, to_codes, to_text

# Up to this many different values a label is taken at its word, whatever its type.
FEW_CLASSES = 20
MOST_NUMBERED_CLASSES = 200


def checked_labels(labels: pd.Series[Any], row_ids: np.ndarray, notices: list[Notice]) -> pd.Series[Any]:
    """Return the labels as plain values, or say why they can't be classes.

    Whole numbers that a missing value had turned into floats become integers again; mixed types become text.

    Parameters
    ----------
    labels : pandas.Series
        The label column without missing values.
    row_ids : numpy.ndarray of int
        The rows' positions in the source table.
    notices : list of Notice
        Receives what was done.

    Returns
    -------
    pandas.Series
        Plain NumPy or ``str`` values.

    Raises
    ------
    InputError
        When there is no label, one class only, or a quantity rather than classes.

    Notes
    -----
    A label looks continuous when it has more than 20 different values and they are fractions or moments, or
    more than 200 and they are whole numbers, or when it has more than 20 and fewer than two rows a value.
    Fractions are refused below 20 values too when there are fewer than two rows a value.

    Examples
    --------
    >>> checked_labels(pd.Series([1.0, 2.0, 1.0]), np.arange(3), []).tolist()
    [1, 2, 1]
    """
    name = str(labels.name)
    if len(labels) == 0:
        raise InputError(f"Label column {name!r} is empty in every row; fill it or choose another label.")
    kind = column_kind(labels)
    if kind is Kind.MIXED:
        notices.append(Notice("mixed_types", "holds labels of several types, which were read as strings", name))
    values = _plain_values(labels, kind)
    classes = int(values.nunique())
    if classes == 1:
        raise InputError(
            f"Label column {name!r} has one class only ({str(values.iloc[0])!r}); choose a label with at least two."
        )
    if kind is Kind.REAL:
        _refuse_infinities(values, name, row_ids)
    if _looks_continuous(kind, classes, len(values)):
        raise InputError(
            f"Label column {name!r} looks continuous, with {classes} different values in {len(values)} rows; "
            "choose a label with classes, or group its values into classes first."
        )
    return values


def _plain_values(labels: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    if kind in (Kind.TEXT, Kind.MIXED):
        return to_text(labels)
    if kind is Kind.WHOLE:
        codes, refused = to_codes(labels)
        return plain(labels) if refused.size else codes
    if kind is Kind.BOOLEAN:
        return plain(labels).astype(bool)
    return plain(labels)


def _refuse_infinities(values: pd.Series[Any], name: str, row_ids: np.ndarray) -> None:
    infinite = np.isinf(values.to_numpy(dtype=np.float64))
    if infinite.any():
        position = int(row_ids[int(np.argmax(infinite))])
        raise InputError(
            f"Label column {name!r} holds an infinite value in data row {position + 1} (the first is 1); correct it."
        )


def _looks_continuous(kind: Kind, classes: int, rows: int) -> bool:
    few_rows_a_class = 2 * classes > rows
    if kind in (Kind.REAL, Kind.MOMENT, Kind.DURATION):
        return classes > FEW_CLASSES or few_rows_a_class
    if kind is Kind.WHOLE and classes > MOST_NUMBERED_CLASSES:
        return True
    return classes > FEW_CLASSES and few_rows_a_class
