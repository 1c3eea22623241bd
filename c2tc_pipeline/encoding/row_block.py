"""Some rows of a table, column by column: what the parts of an encoder are given at a time.

A data frame would do, and parts take one as well; but picking rows from all of its columns, naming each again and
putting them together takes longer than scaling the numbers in them does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.kinds import to_numbers, to_text
from c2tc_pipeline.tables.roles import Role


class RowBlock:
    """Rows of a table at some positions; a column is picked, and brought into its role's form, when it is asked for."""

    def __init__(
        self,
        columns: Mapping[str, pd.Series[Any]],
        roles: Mapping[str, Role],
        rows: np.ndarray | slice,
        length: int,
    ) -> None:
        self._columns = columns
        self._roles = roles
        self._rows = rows
        self._length = length

    def __len__(self) -> int:
        return self._length

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
