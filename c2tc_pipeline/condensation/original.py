"""Condensed rows in the original schema: numbers in their own units, categories by their names.

Nothing is decoded from the encoded space. A condensed row's members are known, so its number is their mean and its
category is the one most of them have.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.tables.kinds import Kind, column_kind, plain, to_numbers
from c2tc_pipeline.tables.preparation import PreparedTable
from c2tc_pipeline.tables.roles import Role

_TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def original_rows(
    frame: pd.DataFrame,
    prepared: PreparedTable,
    chosen_drops: Collection[str],
    condenser: Condenser,
    y: pd.Series[Any],
) -> pd.DataFrame:
    """Return condensed rows in the source's columns; of the dropped ones only constants that the user did not drop.

    Parameters
    ----------
    frame : DataFrame
        The source table.
    prepared : PreparedTable
        What was made of it.
    chosen_drops : collection of str
        Columns whose role the user set; those of them that are dropped do not come back.
    condenser : Condenser
        A condenser that has condensed the prepared rows.
    y : Series
        The condensed labels, which become the last column.
    """
    by_name = {str(column): column for column in frame.columns}
    columns = []
    for name, column in prepared.roles.items():
        constant = column.distinct == 1 and column.missing == 0
        if column.role is Role.DROP and (name in chosen_drops or not constant):
            continue
        source = frame[by_name[name]].iloc[prepared.row_ids]
        if column_kind(source) is Kind.MIXED and column.role is Role.STRING:
            source = prepared.X[name]
        if condenser.representative == "medoid" or column.role is Role.DROP:
            shown = source.iloc[condenser.sample_indices_].reset_index(drop=True)
        else:
            shown = summarise_members(source, column.role, condenser.membership_, len(y))
        columns.append(shown.rename(name))
    return pd.concat([*columns, y], axis=1)


def summarise_members(series: pd.Series[Any], role: Role, membership: np.ndarray, size: int) -> pd.Series[Any]:
    """Return one value per condensed row for one column.

    Parameters
    ----------
    series : Series
        The source column.
    role : Role
        Numbers are averaged; anything else goes by majority. A value is missing where most members have none.
    membership : ndarray of int
        The condensed row of each source row.
    size : int
        Number of condensed rows.

    Examples
    --------
    >>> summarise_members(pd.Series([1, 2, 40]), Role.NUMERIC, np.array([0, 0, 1]), 2).tolist()
    [2, 40]
    >>> summarise_members(pd.Series(["a", "b", "b"]), Role.STRING, np.array([0, 0, 0]), 1).tolist()
    ['b']
    """
    if role is Role.NUMERIC:
        return _means(series, membership, size)
    return _modes(series, membership, size)


def _means(series: pd.Series[Any], membership: np.ndarray, size: int) -> pd.Series[Any]:
    values = to_numbers(series).values.to_numpy(dtype=np.float64, na_value=np.nan)
    present = ~np.isnan(values)
    counts = np.bincount(membership[present], minlength=size)
    members = np.bincount(membership, minlength=size)
    sums = np.bincount(membership[present], values[present], minlength=size)
    means = np.where(2 * counts >= members, sums / np.maximum(counts, 1), np.nan)
    means[counts == 0] = np.nan
    if column_kind(series) is Kind.WHOLE:
        means = np.round(means)
    return _in_own_units(means, series)


def _in_own_units(means: np.ndarray, series: pd.Series[Any]) -> pd.Series[Any]:
    """Give means the type of the column they came from."""
    source = plain(series)
    kind = column_kind(source)
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


def _modes(series: pd.Series[Any], membership: np.ndarray, size: int) -> pd.Series[Any]:
    source = plain(series)
    positions, values = pd.factorize(source, use_na_sentinel=True)
    if len(values) == 0:
        return source.iloc[:size].reset_index(drop=True)
    # Missing takes part in the vote, under the last number.
    codes = np.where(positions < 0, len(values), positions)
    overall = np.bincount(codes, minlength=len(values) + 1)
    pairs, votes = np.unique(membership.astype(np.int64) * (len(values) + 1) + codes, return_counts=True)
    condensed, code = np.divmod(pairs, len(values) + 1)
    # The best of each condensed row comes first: most votes, then the more frequent value of the column.
    order = np.lexsort((code, -overall[code], -votes, condensed))
    winner = code[order][np.searchsorted(condensed[order], np.arange(size))]
    chosen = pd.Series(values).take(np.where(winner == len(values), 0, winner)).reset_index(drop=True)
    if (winner == len(values)).any():
        chosen = chosen.mask(winner == len(values))
    return chosen
