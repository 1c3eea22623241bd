"""Label classes, gathered block by block: at least two, and classes rather than a quantity.

A label looks continuous when it has more than 20 different values and they are fractions or times, or more than 200 and
they are integers, or when it has more than 20 and fewer than two rows per value. Fractions are refused below 20 values
too when there are fewer than two rows per value. A label that is declared as classes is taken as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.tables.kinds import Kind, column_kind, joined_kind, plain, to_codes, to_text

LABEL_KINDS = ("auto", "classes")
# A label of more different values than this looks continuous if they are fractions or times.
FEW_CLASSES = 20
# The same for integers.
MAX_NUMBERED_CLASSES = 200
# Maximum number of classes, as each gets at least one condensed row.
MAX_CLASSES = 2**18


@dataclass(frozen=True)
class LabelClasses:
    """The classes of a table."""

    values: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray
    dtype: Any


class LabelGatherer:
    """Gathers the classes of a label column block by block."""

    def __init__(self, name: str, *, kind: str = "auto") -> None:
        if kind not in LABEL_KINDS:
            raise InputError(f"The kind of label is {kind!r}; choose one of: {', '.join(LABEL_KINDS)}.")
        self._name = name
        self._is_classes = kind == "classes"
        self._kind = Kind.EMPTY
        self._dtypes: set[Any] = set()
        self._place: dict[Any, int] = {}
        self._new: list[pd.Series[Any]] = []
        self._first_rows: list[int] = []
        self._counts = np.zeros(0, dtype=np.int64)

    def add(self, labels: pd.Series[Any], row_ids: np.ndarray) -> np.ndarray:
        """Add labels, none of them missing, and return their numbers, in order of first appearance."""
        if not len(labels):
            return np.empty(0, dtype=np.int64)
        kind = column_kind(labels)
        self._kind = joined_kind(self._kind, kind)
        self._dtypes.add(labels.dtype)
        values = to_text(labels) if kind in (Kind.TEXT, Kind.MIXED) else plain(labels)
        positions, distinct = pd.factorize(values)
        known = len(self._place)
        numbers = np.array([self._place.setdefault(value, len(self._place)) for value in distinct], dtype=np.int64)
        if len(self._place) > MAX_CLASSES:
            raise InputError(
                f"Label column {self._name!r} has more than {MAX_CLASSES} different values; choose one with classes."
            )
        first = np.full(len(distinct), len(labels))
        np.minimum.at(first, positions, np.arange(len(labels)))
        new = numbers >= known
        if new.any():
            self._new.append(labels.iloc[first[new]])
            self._first_rows += row_ids[first[new]].tolist()
        counted = numbers[positions]
        added = np.bincount(counted, minlength=len(self._place))
        added[: len(self._counts)] += self._counts
        self._counts = added
        return counted

    def classes(self, notices: list[Notice]) -> LabelClasses:
        """Return the classes of all rows; raise InputError with the reason if the labels can't be classes."""
        name, kind, rows, classes = self._name, self._kind, int(self._counts.sum()), len(self._place)
        if rows == 0:
            raise InputError(f"Label column {name!r} is empty in every row; fill it or choose another label.")
        if kind is Kind.MIXED:
            notices.append(Notice("mixed_types", "holds labels of several types, which were read as strings", name))
        values = _plain_values(pd.concat(self._new), kind)
        if classes == 1:
            raise InputError(
                f"Label column {name!r} has one class only ({str(values.iloc[0])!r}); choose a label with at least two."
            )
        if kind is Kind.REAL:
            _refuse_infinities(values, name, np.array(self._first_rows))
        if not self._is_classes and _looks_continuous(kind, classes, rows):
            raise InputError(
                f"Label column {name!r} looks continuous, with {classes} different values in {rows} rows; "
                "choose a label with classes, group its values into classes first, or declare it by "
                'label_kind="classes" (--label-kind classes).'
            )
        sorted_values, numbers = np.unique(values.to_numpy(), return_inverse=True)
        # A type of all labels that holds more than their values, such as a category with its order, is kept, and so are
        # floats.
        (dtype, *others) = self._dtypes
        if others or not (pd.api.types.is_extension_array_dtype(dtype) or pd.api.types.is_float_dtype(dtype)):
            dtype = values.dtype
        return LabelClasses(sorted_values, np.bincount(numbers, self._counts).astype(np.int64), numbers, dtype)


def _plain_values(labels: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    if kind in (Kind.TEXT, Kind.MIXED):
        return to_text(labels)
    if kind is Kind.INTEGER:
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
    if kind is Kind.INTEGER and classes > MAX_NUMBERED_CLASSES:
        return True
    return classes > FEW_CLASSES and few_rows_a_class
