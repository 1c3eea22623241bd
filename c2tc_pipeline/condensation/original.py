"""Condensed rows in the original schema: numbers in their own units, categories by their names.

Nothing is decoded from the encoded space. A condensed row's members are known, so its number is their mean and its
category is the one most of them have. Blocks of rows add up; how is in :mod:`c2tc_pipeline.condensation.members`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.members import MemberMeans, MemberVotes
from c2tc_pipeline.tables.kinds import Kind, plain, to_text
from c2tc_pipeline.tables.roles import ColumnRole, Role

_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def shown_columns(roles: Mapping[str, ColumnRole], chosen_drops: Collection[str]) -> list[str]:
    """Return the columns that condensed rows have in the original schema."""
    return [
        name
        for name, column in roles.items()
        if column.role is not Role.DROP or (name not in chosen_drops and _is_constant(column))
    ]


def _is_constant(column: ColumnRole) -> bool:
    return column.distinct == 1 and column.missing == 0


class ColumnSummary:
    """What the members of condensed rows have in one column, gathered block by block.

    Parameters
    ----------
    column : ColumnRole
        The column; numbers are averaged, anything else goes by majority. A value is missing where most members have
        none.
    kind : Kind
        What the whole column holds.
    size : int
        Number of condensed rows.

    Examples
    --------
    >>> summary = ColumnSummary(ColumnRole("x", Role.NUMERIC, "", 3, 0), Kind.WHOLE, 2)
    >>> for block in (pd.Series([1, 2]), pd.Series([40])):
    ...     summary.add(block, np.array([0, 0, 1])[: len(block)] if len(block) == 2 else np.array([1]))
    >>> summary.values(pd.Series([1])).tolist()
    [2, 40]
    """

    def __init__(self, column: ColumnRole, kind: Kind, size: int) -> None:
        self.is_constant = column.role is Role.DROP
        self._kind = kind
        self._as_text = kind is Kind.MIXED and column.role is Role.STRING
        self._gathered = MemberMeans(size) if column.role is Role.NUMERIC else MemberVotes(size)

    def form(self, series: pd.Series[Any]) -> pd.Series[Any]:
        """Return cells as they are shown: those of mixed types as text."""
        return to_text(series) if self._as_text else series

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Take cells into account, given the condensed row of each and, if known, how often each of those occurs."""
        self._gathered.add(self.form(series), members, member_rows)

    def values(self, example: pd.Series[Any]) -> pd.Series[Any]:
        """Return one value a condensed row, in the type of cells of the column."""
        if isinstance(self._gathered, MemberVotes):
            return self._gathered.winners(self.form(example))
        means = self._gathered.means()
        if self._kind is Kind.WHOLE:
            means = np.round(means)
        return _in_own_units(means, example, self._kind)


def _in_own_units(means: np.ndarray, series: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    """Give means the type of the column they came from."""
    source = plain(series)
    if isinstance(source.dtype, pd.PeriodDtype):
        source = source.dt.to_timestamp()
    dtype = source.dtype
    if kind in (Kind.MOMENT, Kind.DURATION):
        return _times(means, source, "M8" if kind is Kind.MOMENT else "m8")
    if pd.api.types.is_integer_dtype(dtype):
        return _whole_numbers(means, dtype)
    return pd.Series(means).astype(dtype) if pd.api.types.is_float_dtype(dtype) else pd.Series(means)


def _times(seconds: np.ndarray, source: pd.Series[Any], code: str) -> pd.Series[Any]:
    """Return moments or durations in the unit and time zone of the source; Python's dates stay dates."""
    if source.dtype == object:
        times = pd.Series(_counted(seconds, code, "us"))
        return times.dt.date if pd.api.types.infer_dtype(source, skipna=True) == "date" else times
    times = pd.Series(_counted(seconds, code, source.dt.unit))
    zone = getattr(source.dtype, "tz", None)
    return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)


def _counted(seconds: np.ndarray, code: str, unit: str) -> np.ndarray:
    """Return NumPy times; counted in their own unit, because years before 1678 do not fit nanoseconds."""
    missing = np.isnan(seconds)
    ticks = np.round(np.where(missing, 0, seconds) * _TICKS_PER_SECOND[unit])
    times = ticks.astype(np.int64).view(f"{code}[{unit}]")
    times[missing] = np.array("NaT", dtype=times.dtype)
    return times


def _whole_numbers(means: np.ndarray, dtype: Any) -> pd.Series[Any]:
    """Round to an integer type; the largest 64-bit numbers have no float of their own and would turn negative."""
    limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    missing = np.isnan(means)
    rounded = np.maximum(np.round(np.where(missing, 0, means)), float(limits.min))
    topped = rounded >= float(limits.max)
    whole = np.where(topped, 0, rounded).astype(limits.dtype)
    whole[topped] = limits.max
    numbers = pd.Series(whole).astype(dtype)
    return numbers.mask(missing) if missing.any() else numbers
