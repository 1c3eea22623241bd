"""Some rows of a table, column by column: what the parts of an encoder are given at a time.

A data frame would do, and parts take one as well; but picking rows from all of its columns, naming each again and
putting them together takes longer than scaling the numbers in them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.kinds import to_codes, to_numbers, to_text
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import refuse_infinities, row_named


class RowBlock:
    """Rows of a table at some positions; a column is picked, and brought into its role's form, when it is asked for.

    ``row_ids`` are the positions of the rows in the source, of which the table may be a part.
    """

    def __init__(
        self,
        columns: Mapping[str, pd.Series[Any]],
        roles: Mapping[str, Role],
        rows: slice,
        row_ids: np.ndarray,
    ) -> None:
        self._columns = columns
        self._roles = roles
        self._rows = rows
        self.row_ids = row_ids

    def __len__(self) -> int:
        return len(self.row_ids)

    def __getitem__(self, name: str) -> pd.Series[Any]:
        column = self._columns[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf":
            # Objects would be looked through for a type that suits them better.
            picked = pd.Series(column.to_numpy()[self._rows], copy=False)
        else:
            picked = column.iloc[self._rows]
        return as_role(picked, self._roles[name])


Rows = pd.DataFrame | RowBlock
"""Rows of which parts ask for columns by name, in the form of their roles."""


def as_role(series: pd.Series[Any], role: Role) -> pd.Series[Any]:
    """Bring a column into the form that its role's part takes."""
    if role is Role.NUMERIC:
        plain_number = isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf"
        return series if plain_number else to_numbers(series).values
    if role is Role.STRING and not isinstance(series.dtype, pd.StringDtype):
        return to_text(series)
    return series


def check_values(column: pd.Series[Any], role: Role, row_ids: np.ndarray) -> None:
    """Refuse text in a column of numbers or codes, fractions in one of codes, and infinities.

    ``row_ids`` are the rows' positions in the source, for the message.
    """
    if role not in (Role.NUMERIC, Role.CODE) or (isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu"):
        return
    values, refused = to_numbers(column) if role is Role.NUMERIC else to_codes(column)
    if refused.size and role is Role.CODE:
        # Among other objects a boolean is the code that it is in a column of its own.
        refused = refused[[not isinstance(column.iloc[place], bool | np.bool_) for place in refused]]
    if refused.size:
        wanted, first = "numbers" if role is Role.NUMERIC else "integers", int(refused[0])
        raise InputError(
            f"Column {str(column.name)!r} holds {len(refused)} values that are not {wanted}, the first, "
            f"{str(column.iloc[first])!r}, in {row_named(int(row_ids[first]))}; correct them or leave them empty."
        )
    if values.dtype.kind == "f":
        infinite = np.flatnonzero(np.isinf(values.to_numpy()))
        if infinite.size:
            refuse_infinities(str(column.name), len(infinite), int(row_ids[infinite[0]]))
