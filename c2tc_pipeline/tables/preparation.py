"""From any table to one that the encoders can take: features, label, roles, and what was done to get there.

Everything that is wrong with a table and can be helped becomes a notice here; everything that can't becomes
an ``InputError`` here. Reading files belongs in :mod:`c2tc_pipeline.tables.readers`, the label's own rules in
:mod:`c2tc_pipeline.tables.labels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice, closest
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

    def cells_of(self, column: pd.Series[Any]) -> pd.Series[Any]:
        """Return the cells that a column of the source table has in these rows, without a copy if these are all rows.

        Examples
        --------
        >>> table = pd.DataFrame({"age": [31, 45, 28], "y": ["no", None, "yes"]})
        >>> prepare_table(table, label="y").cells_of(table["age"]).tolist()
        [31, 28]
        """
        return column if len(self.row_ids) == len(column) and self._are_the_first else column.iloc[self.row_ids]

    @cached_property
    def _are_the_first(self) -> bool:
        """Whether these are the first rows of the source table, in its order."""
        return bool((self.row_ids == np.arange(len(self.row_ids))).all())

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
    check_label_column(label, list(table.columns))
    if len(table) == 0:
        raise InputError(NO_ROWS)
    labelled = table[label].notna().to_numpy()
    row_ids = np.flatnonzero(labelled).astype(np.int64)
    if len(row_ids) < len(table):
        table = table.iloc[row_ids]
        notices.append(missing_labels_notice(label, len(labelled) - len(row_ids)))
    y = checked_labels(table[label], row_ids, notices).set_axis(pd.RangeIndex(len(table)))
    if decided is None:
        decided = infer_roles(table, label=label, overrides=roles)
    notices += drop_notices(decided, overridden=roles or {}, rows=len(table))
    refuse_nothing_left(decided)
    kept = [name for name, role in decided.items() if role.role is not Role.DROP]
    mixed = {name for name in kept if decided[name].role is Role.STRING and column_kind(table[name]) is Kind.MIXED}
    notices += mixed_types_notices(name for name in kept if name in mixed)
    features = typed_columns(table, decided, row_ids).set_axis(y.index)
    return PreparedTable(features, y, dict(decided), row_ids, notices)


NO_ROWS = "The table has no rows; give one with at least two rows of different classes."


def check_label_column(label: str, columns: Sequence[str]) -> None:
    """Refuse a label that is no column."""
    if label not in columns:
        raise InputError(f"There is no label column {label!r} in the table; {closest(label, columns)}.")


def missing_labels_notice(label: str, rows: int) -> Notice:
    """Return what is said about rows without a label."""
    return Notice("missing_labels", f"{rows} rows without a label were left out", label)


def mixed_types_notices(names: Iterable[str]) -> list[Notice]:
    """Return what is said about columns whose values are of several types."""
    message = "holds values of several types and was read as strings"
    return [Notice("mixed_types", message, name) for name in names]


def typed_columns(table: pd.DataFrame, decided: Mapping[str, ColumnRole], row_ids: np.ndarray) -> pd.DataFrame:
    """Return the columns that are kept in the form that their roles ask for, or say which value does not fit.

    Parameters
    ----------
    table : DataFrame
        Rows, all columns that are kept among them.
    decided : mapping of str to ColumnRole
        The role of every column.
    row_ids : ndarray of int
        Where the rows stand in the source, for messages.

    Examples
    --------
    >>> role = ColumnRole("x", Role.STRING, "set by the user", 2, 0)
    >>> typed_columns(pd.DataFrame({"x": [7.0, 9.5]}), {"x": role}, np.arange(2))["x"].tolist()
    ['7', '9.5']
    """
    columns = {
        name: _as_role(table[name], role.role, row_ids) for name, role in decided.items() if role.role is not Role.DROP
    }
    return pd.DataFrame(columns, copy=False)


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


def drop_notices(decided: Mapping[str, ColumnRole], *, overridden: Mapping[str, Role | str], rows: int) -> list[Notice]:
    """Return what is said about columns that were dropped without being asked to."""
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


def _as_role(series: pd.Series[Any], role: Role, row_ids: np.ndarray) -> pd.Series[Any]:
    name = str(series.name)
    if role is Role.STRING:
        return to_text(series)
    values, refused = to_numbers(series) if role is Role.NUMERIC else to_codes(series)
    if values.dtype.kind == "f":
        infinite = np.isinf(values.to_numpy())
        if infinite.any():
            refuse_infinities(name, int(infinite.sum()), int(row_ids[int(np.argmax(infinite))]))
    if refused.size:
        wanted = "a number" if role is Role.NUMERIC else "a whole number"
        first = refused[0]
        raise InputError(
            f"Column {name!r} can't have the role {role.value!r}: {str(series.iloc[first])!r} in "
            f"{row_named(row_ids[first])} is not {wanted}; correct the value or use the role 'string'."
        )
    return values


def refuse_infinities(name: str, count: int, first: int) -> None:
    """Refuse a column with infinite values, given their number and where the first one stands."""
    raise InputError(
        f"Column {name!r} holds {count} infinite values, the first in {row_named(first)}; "
        "replace them by numbers or leave them empty."
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


def refuse_nothing_left(decided: Mapping[str, ColumnRole]) -> None:
    """Refuse a table of which no feature is kept."""
    if any(role.role is not Role.DROP for role in decided.values()):
        return
    if not decided:
        raise InputError("The table has no column besides the label; give it at least one feature column.")
    reasons = ", ".join(f"{role.name!r} ({role.reason})" for role in list(decided.values())[:5])
    raise InputError(f"No feature column is left, all were dropped: {reasons}; give at least one of them a role.")
