"""Condensed rows in the original schema: numbers in their own units, categories by their names.

Nothing is decoded from the encoded space. A condensed row's members are known, so its number is their mean and its category
is the one most of them have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.kinds import plain, to_numbers
from c2tc_pipeline.tables.roles import Role


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
    return _in_own_units(means, series)


def _in_own_units(means: np.ndarray, series: pd.Series[Any]) -> pd.Series[Any]:
    """Give means the type of the column they came from."""
    source = plain(series)
    if isinstance(source.dtype, pd.PeriodDtype):
        source = source.dt.to_timestamp()
    dtype = source.dtype
    name = series.name
    if pd.api.types.is_datetime64_any_dtype(dtype):
        moments = pd.Series(pd.to_datetime(means, unit="s", utc=True), name=name)
        zone = getattr(dtype, "tz", None)
        return moments.dt.tz_convert(zone) if zone is not None else moments.dt.tz_localize(None)
    if pd.api.types.is_timedelta64_dtype(dtype):
        return pd.Series(pd.to_timedelta(means, unit="s"), name=name)
    if pd.api.types.is_integer_dtype(dtype):
        if np.isnan(means).any():
            return pd.Series(np.round(means), name=name).astype("Int64")
        return pd.Series(np.round(means), name=name).astype(dtype)
    if pd.api.types.is_float_dtype(dtype):
        return pd.Series(means, name=name).astype(dtype)
    return pd.Series(means, name=name)


def _modes(series: pd.Series[Any], membership: np.ndarray, size: int) -> pd.Series[Any]:
    source = plain(series)
    positions, values = pd.factorize(source, use_na_sentinel=True)
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
    return chosen.rename(series.name)
