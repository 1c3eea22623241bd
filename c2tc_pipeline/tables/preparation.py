"""From any table to one that the encoders can take: features, label, roles, and what was done to get there.

Everything that is wrong with a table and can be helped becomes a notice here; everything that can't becomes
an ``InputError`` here. Reading files belongs in :mod:`c2tc_pipeline.tables.readers`, the label's own rules in
:mod:`c2tc_pipeline.tables.labels`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.names import closest
from c2tc_pipeline.notices import Notice
from c2tc_pipeline.tables.kinds import Kind, column_kind, to_codes, to_numbers, to_text
from c2tc_pipeline.tables.labels import checked_labels
from c2tc_pipeline.tables.roles import ColumnRole, Role, infer_roles


@dataclass
class PreparedTable:
    """A table whose columns have roles and one dtype family a role.

    Parameters
    ----------
    X : pandas.DataFrame
        The kept features in table order, rows numbered from 0. Numeric: NumPy numbers with NaN for missing;
        string: pandas ``str`` with missing kept; code: integers, booleans, or ``Int64`` where values are
        missing.
    y : pandas.Series
        The label of each row, never missing, named as the label column.
    roles : dict of str to ColumnRole
        Every column but the label, the dropped ones included.
    row_ids : numpy.ndarray of int64
        Where each row stood in the source table, counting from 0.
    notices : list of Notice
        What was found and done.

    Examples
    --------
    >>> table = pd.DataFrame({"version": [1, 1, 1], "age": [31, 45, 28], "y": ["no", "yes", None]})
    >>> prepared = prepare_table(table, label="y")
    >>> prepared.X.columns.tolist(), prepared.y.tolist(), prepared.row_ids.tolist()
    (['age'], ['no', 'yes'], [0, 1])
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    roles: dict[str, ColumnRole]
    row_ids: np.ndarray
    notices: list[Notice] = field(default_factory=list)

    def to_frame(self) -> pd.DataFrame:
        """Return features and label as one table, the label last.

        Examples
        --------
        >>> table = pd.DataFrame({"y": ["no", "yes"], "age": [31, 45]})
        >>> prepare_table(table, label="y").to_frame().columns.tolist()
        ['age', 'y']
        """
        return pd.concat([self.X, self.y], axis=1)


def prepare_table(
    frame: pd.DataFrame,
    *,
    label: str,
    roles: Mapping[str, Role | str] | None = None,
    decided: Mapping[str, ColumnRole] | None = None,
) -> PreparedTable:
    """Check a table, decide its columns' roles and bring the columns into the form their role asks for.

    The table itself is not modified; numeric columns are shared with it and not copied, unless rows have to
    go.

    Parameters
    ----------
    frame : pandas.DataFrame
        Any table.
    label : str
        The column to predict.
    roles : mapping of str to Role or str, optional
        Roles that override the inferred ones, column by column.
    decided : mapping of str to ColumnRole, optional
        The role of every column, decided for a larger table that these rows are part of; nothing is inferred then.

    Returns
    -------
    PreparedTable
        Features, label, roles, source rows and notices.

    Raises
    ------
    InputError
        When the table can't be used: no rows, two columns of one name, no such label, a label that has one
        class or looks continuous, no feature left, infinities, or a role that the values don't fit.

    Examples
    --------
    >>> table = pd.DataFrame({"job": ["cook", None, "cook"], "age": [31, 45, 28], "y": [0, 1, 1]})
    >>> prepared = prepare_table(table, label="y", roles={"age": "drop"})
    >>> prepared.X.columns.tolist(), prepared.roles["age"].reason
    (['job'], 'set by the user')
    """
    notices: list[Notice] = []
    table = _with_text_names(frame, notices)
    if label not in table.columns:
        raise InputError(f"There is no label column {label!r} in the table; {closest(label, table.columns)}.")
    if len(table) == 0:
        raise InputError("The table has no rows; give one with at least two rows of different classes.")
    labelled = table[label].notna().to_numpy()
    row_ids = np.flatnonzero(labelled).astype(np.int64)
    if len(row_ids) < len(table):
        table = table.iloc[row_ids]
        dropped = len(labelled) - len(row_ids)
        notices.append(Notice("missing_labels", f"{dropped} rows without a label were left out", label))
    y = checked_labels(table[label], row_ids, notices).set_axis(pd.RangeIndex(len(table)))
    if decided is None:
        decided = infer_roles(table, label=label, overrides=roles)
    notices += _drop_notices(decided, overridden=roles or {}, rows=len(table))
    features = {
        name: _as_role(table[name], role.role, row_ids, notices).set_axis(y.index)
        for name, role in decided.items()
        if role.role is not Role.DROP
    }
    if not features:
        raise InputError(_nothing_left(decided))
    return PreparedTable(pd.DataFrame(features, copy=False), y, dict(decided), row_ids, notices)


def _with_text_names(frame: pd.DataFrame, notices: list[Notice]) -> pd.DataFrame:
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        listed = ", ".join(repr(name) for name in twice[:5])
        raise InputError(f"Several columns of the table share a name ({listed}); rename them so that each is unique.")
    renamed = [str(name) for name in frame.columns if not isinstance(name, str)]
    if not renamed:
        return frame
    listed = ", ".join(repr(name) for name in renamed[:5]) + (", ..." if len(renamed) > 5 else "")
    notices.append(Notice("renamed_columns", f"{len(renamed)} column names that were not text now are: {listed}"))
    return frame.set_axis(names, axis="columns")


def _drop_notices(
    decided: Mapping[str, ColumnRole], *, overridden: Mapping[str, Role | str], rows: int
) -> list[Notice]:
    notices = []
    for name, role in decided.items():
        if role.role is not Role.DROP or name in overridden:
            continue
        if role.missing == rows:
            notices.append(Notice("all_missing_column", "holds no value at all and was dropped", name))
        elif role.distinct == 1:
            message = "holds the same value in every row and was dropped; give it a role to keep it"
            notices.append(Notice("constant_column", message, name))
        else:
            message = (
                f"looks like an identifier ({role.distinct} distinct values in {rows} rows) and was dropped; "
                "give it a role to keep it"
            )
            notices.append(Notice("identifier_column", message, name))
    return notices


def _as_role(series: pd.Series[Any], role: Role, row_ids: np.ndarray, notices: list[Notice]) -> pd.Series[Any]:
    name = str(series.name)
    if role is Role.STRING:
        if column_kind(series) is Kind.MIXED:
            notices.append(Notice("mixed_types", "holds values of several types and was read as strings", name))
        return to_text(series)
    values, refused = to_numbers(series) if role is Role.NUMERIC else to_codes(series)
    if values.dtype.kind == "f":
        _refuse_infinities(values, name, row_ids)
    if refused.size:
        wanted = "a number" if role is Role.NUMERIC else "a whole number"
        first = refused[0]
        raise InputError(
            f"Column {name!r} can't have the role {role.value!r}: {str(series.iloc[first])!r} in "
            f"{row_named(row_ids[first])} is not {wanted}; correct the value or use the role 'string'."
        )
    return values


def _refuse_infinities(values: pd.Series[Any], name: str, row_ids: np.ndarray) -> None:
    infinite = np.isinf(values.to_numpy())
    if infinite.any():
        raise InputError(
            f"Column {name!r} holds {int(infinite.sum())} infinite values, the first in "
            f"{row_named(row_ids[int(np.argmax(infinite))])}; replace them by numbers or leave them empty."
        )


def row_named(position: int) -> str:
    """Name a row for people, from its position in the source table.

    Parameters
    ----------
    position : int
        Counting from 0.

    Returns
    -------
    str
        Counting from 1, and saying so.

    Examples
    --------
    >>> row_named(16)
    'data row 17 (the first is 1)'
    """
    return f"data row {position + 1} (the first is 1)"


def _nothing_left(decided: Mapping[str, ColumnRole]) -> str:
    if not decided:
        return "The table has no column besides the label; give it at least one feature column."
    reasons = ", ".join(f"{role.name!r} ({role.reason})" for role in list(decided.values())[:5])
    return f"No feature column is left, all were dropped: {reasons}; give at least one of them a role."
