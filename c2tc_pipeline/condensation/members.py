"""Condensed rows in the original schema: means and majorities of their members, gathered block by block.

A condensed row's number is the mean of its members and its category is the one most of them have; nothing is decoded
from the encoded space. Rows are added in their order, so that any division into blocks gives the same bytes. Votes are
exact up to some eight million pairs of a condensed row and a value per column; beyond that the rarest pairs are
dropped, so that memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.frames import as_decimals, decimal_places, in_type
from c2tc_pipeline.tables.kinds import Kind, plain, to_numbers, to_text
from c2tc_pipeline.tables.roles import ColumnRole, Role

# Pairs of a condensed row and a value whose votes are kept: some 130 MB for a column that has so many. Its values are
# at most as many, and two million that wait: some 2 GB of short strings where each row has one of its own.
MAX_PAIRS = 2**23
# Pairs that are looked at before they are merged with those that are kept.
_PENDING_PAIRS = 2**20
# Rows of a large block whose votes are counted together.
_CHUNK_ROWS = 2**20


class MemberMeans:
    """The mean number of each condensed row's members."""

    def __init__(self, size: int) -> None:
        self._sums = np.zeros(size)
        self._present = np.zeros(size, dtype=np.int64)
        self._members = np.zeros(size, dtype=np.int64)

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Add numbers, given the condensed row of each and, if known, how often each of those occurs."""
        values = to_numbers(series).values.to_numpy(dtype=np.float64, na_value=np.nan)
        present = ~np.isnan(values)
        size = len(self._sums)
        occurs = np.bincount(members, minlength=size) if member_rows is None else member_rows
        self._members += occurs
        if not present.all():
            members, values = members[present], values[present]
            occurs = np.bincount(members, minlength=size)
        self._present += occurs
        # One after the other onto what is there, as if all rows had come at once.
        np.add.at(self._sums, members, values)

    def means(self, min_rows: int = 1) -> np.ndarray:
        """Return the means; NaN where most members, or all but fewer than ``min_rows``, have no number."""
        shown = (2 * self._present >= self._members) & (self._present >= max(min_rows, 1))
        return np.where(shown, self._sums / np.maximum(self._present, 1), np.nan)


class MemberVotes:
    """The most frequent value among each condensed row's members; "missing" takes part in the vote.

    Ties go to the value that is more frequent in the whole column, then to the one that appears first.
    """

    def __init__(self, size: int, most: int = MAX_PAIRS) -> None:
        self._size = size
        self._most = most
        # Missing is number 0, so that further values can be numbered as they come.
        self._numbers: dict[Any, int] = {}
        self._values: list[pd.Series[Any]] = []
        self._overall = np.zeros(1, dtype=np.int64)
        self._pairs = np.empty(0, dtype=np.int64)
        self._votes = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        self._waiting = 0

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Add cells, given the condensed row of each and, if known, how often each of those occurs."""
        if len(series) > _CHUNK_ROWS:
            member_rows = None
        for start in range(0, len(series), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            source = plain(series.iloc[rows])
            cells = source.to_numpy() if isinstance(source.dtype, np.dtype) else np.empty(0)
            close = CloseNumbers.of(cells, most=max(len(cells) // self._size, 1))
            if close is None:
                self._add_cells(source, members[rows])
            else:
                self._add_numbers(close, cells.dtype, close.counted(members[rows], self._size, member_rows).T)

    def _add_cells(self, source: pd.Series[Any], members: np.ndarray) -> None:
        positions, distinct = pd.factorize(source, use_na_sentinel=True)
        codes = np.append(self._numbers_of(distinct), 0)[positions]
        pairs, distinct = pd.factorize((members.astype(np.int64) << 32) | codes)
        self._add_pairs(np.asarray(distinct), np.bincount(pairs, minlength=len(distinct)))

    def _add_numbers(self, close: CloseNumbers, dtype: np.dtype, votes: np.ndarray) -> None:
        """Count votes of integers in a narrow range by their offsets."""
        appeared = close.appeared(votes.sum(axis=0) > 0)
        codes = self._numbers_of(pd.Index((appeared + close.low).astype(dtype)))
        votes = votes[:, appeared]
        condensed, place = np.nonzero(votes)
        self._add_pairs((condensed << 32) | codes[place], votes[condensed, place])

    def _add_pairs(self, pairs: np.ndarray, votes: np.ndarray) -> None:
        """Add votes of pairs, each with the condensed row in the upper half of a word and the value in the lower."""
        overall = np.bincount(pairs & 0xFFFFFFFF, votes, minlength=len(self._numbers) + 1).astype(np.int64)
        overall[: len(self._overall)] += self._overall
        self._overall = overall
        self._pending.append((pairs, votes))
        self._waiting += len(pairs)
        if self._waiting > _PENDING_PAIRS:
            self._merge_pending()

    def _numbers_of(self, distinct: Any) -> np.ndarray:
        """Return the numbers of different values, in the order of their first rows; new ones get the next numbers."""
        known = len(self._numbers)
        numbers = np.array(
            [self._numbers.setdefault(value, len(self._numbers) + 1) for value in distinct], dtype=np.int64
        )
        if len(self._numbers) > known:
            self._values.append(pd.Series(distinct).iloc[np.flatnonzero(numbers > known)])
        return numbers

    def _merge_pending(self) -> None:
        pairs = np.concatenate([self._pairs, *(pairs for pairs, _ in self._pending)])
        votes = np.concatenate([self._votes, *(votes for _, votes in self._pending)])
        self._pending, self._waiting = [], 0
        order = np.argsort(pairs, kind="stable")
        pairs, votes = pairs[order], votes[order]
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._pairs, self._votes = pairs[starts], np.add.reduceat(votes, starts) if len(starts) else votes[:0]
        if len(self._pairs) > self._most:
            self._drop_rarest_pairs()

    def _drop_rarest_pairs(self) -> None:
        """Keep the pairs with most votes, and the best of every condensed row."""
        kept = np.argsort(-self._votes, kind="stable")[: self._most // 2]
        best = self._best()
        kept = np.unique(np.concatenate([kept, best]))
        self._pairs, self._votes = self._pairs[kept], self._votes[kept]
        self._drop_unused_values()

    def _drop_unused_values(self) -> None:
        """Drop the values without a remaining pair; the others are numbered anew, in the same order."""
        condensed, codes = self._pairs >> 32, self._pairs & 0xFFFFFFFF
        # Missing keeps its number, and the first value stays, so that there always is one.
        kept = np.union1d([0, 1], codes)
        self._pairs = (condensed << 32) | np.searchsorted(kept, codes)
        self._overall = self._overall[kept]
        self._values = [pd.concat(self._values, ignore_index=True).iloc[kept[1:] - 1]]
        is_kept = np.zeros(len(self._numbers) + 1, dtype=bool)
        is_kept[kept] = True
        # The dictionary is in the order of its numbers.
        self._numbers = {value: number for number, value in enumerate(compress(self._numbers, is_kept[1:]), start=1)}

    def _best(self) -> np.ndarray:
        """Return the place of the winning pair of each condensed row that has one."""
        condensed, code = self._pairs >> 32, self._pairs & 0xFFFFFFFF
        # Missing goes last where all else is equal.
        first = np.where(code == 0, len(self._overall), code)
        order = np.lexsort((first, -self._overall[code], -self._votes, condensed))
        return np.asarray(order[np.unique(condensed[order], return_index=True)[1]])

    def winners(self, example: pd.Series[Any], least: int = 1) -> pd.Series[Any]:
        """Return the winning value of each condensed row, given cells of the type that the column has.

        A value with fewer than ``least`` votes is left out: the cell is missing.
        """
        if not self._values:
            return plain(example).take(np.zeros(self._size, dtype=np.int64)).reset_index(drop=True)
        self._merge_pending()
        best = self._best()
        winner = np.where(self._votes[best] >= least, (self._pairs & 0xFFFFFFFF)[best], 0)
        values = pd.concat(self._values, ignore_index=True)
        chosen = values.take(np.maximum(winner - 1, 0)).reset_index(drop=True)
        return chosen.mask(winner == 0) if (winner == 0).any() else chosen

    def votes(self, example: pd.Series[Any]) -> Votes:
        """Return all votes that are kept; a missing value, if any member has one, is the last of the values."""
        if self._pending:
            self._merge_pending()
        values = pd.concat(self._values, ignore_index=True) if self._values else plain(example).iloc[:0]
        codes = (self._pairs & 0xFFFFFFFF) - 1
        if (codes < 0).any():
            codes = np.where(codes < 0, len(values), codes)
            values = values.reindex(range(len(values) + 1))
        return Votes(values, self._pairs >> 32, codes, self._votes)


class Votes(NamedTuple):
    """``counts[i]`` members of condensed row ``rows[i]`` have the value with number ``codes[i]``."""

    values: pd.Series[Any]
    rows: np.ndarray
    codes: np.ndarray
    counts: np.ndarray


_SECONDS_OF_DAY = 86_400
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
    """Summary of one column over the members of condensed rows, gathered block by block."""

    def __init__(self, column: ColumnRole, kind: Kind, size: int) -> None:
        self.is_constant = column.role is Role.DROP
        self._kind = kind
        self._as_text = kind is Kind.MIXED and column.role is Role.STRING
        self._gathered = MemberMeans(size) if column.role is Role.NUMERIC else MemberVotes(size)
        self._decimal_places: int | None = None
        self._present: pd.Series[Any] | None = None
        self._are_days = kind is Kind.MOMENT

    def form(self, series: pd.Series[Any]) -> pd.Series[Any]:
        """Return cells as they are shown: those of mixed types as text."""
        return to_text(series) if self._as_text else series

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Add cells, given the condensed row of each and, if known, how often each of those occurs."""
        if isinstance(self._gathered, MemberMeans):
            found = [places for places in (self._decimal_places, decimal_places(series)) if places is not None]
            self._decimal_places = max(found, default=None)
            if self._present is None and series.dtype == object and series.notna().any():
                self._present = series.dropna().iloc[:1]
            self._are_days = self._are_days and are_days(to_numbers(series).values.to_numpy())
        self._gathered.add(self.form(series), members, member_rows)

    def values(self, example: pd.Series[Any], min_category_rows: int = 1, min_rows: int = 1) -> pd.Series[Any]:
        """Return one value per condensed row, in the type of the column, where enough members have one."""
        if isinstance(self._gathered, MemberVotes):
            return in_type(self._gathered.winners(self.form(example), min_category_rows), example.dtype)
        means = self._gathered.means(min_rows)
        if self._kind is Kind.INTEGER:
            means = np.round(means)
        if self._are_days:
            means = whole_days(means)
        # Of Python's objects only a value tells the type.
        like = example if self._present is None else self._present
        return in_own_units(means, like, self._kind, self._decimal_places)

    @property
    def has_votes(self) -> bool:
        """Whether members vote, as they do for a column of categories."""
        return isinstance(self._gathered, MemberVotes) and not self.is_constant

    def votes(self, example: pd.Series[Any]) -> Votes:
        """Return the votes of a column of categories."""
        assert isinstance(self._gathered, MemberVotes)
        return self._gathered.votes(self.form(example))


def are_days(seconds: np.ndarray) -> bool:
    """Return whether moments are days without a time."""
    return bool((np.mod(seconds[~np.isnan(seconds)], _SECONDS_OF_DAY) == 0).all())


def whole_days(seconds: np.ndarray) -> np.ndarray:
    """Round moments to days."""
    return np.round(seconds / _SECONDS_OF_DAY) * _SECONDS_OF_DAY


def in_own_units(means: np.ndarray, series: pd.Series[Any], kind: Kind, places: int | None = None) -> pd.Series[Any]:
    """Give means the type of the column they came from; ``places`` are the decimal places of a column of decimals."""
    return as_decimals(means, places) if places is not None else in_type(_in_units(means, series, kind), series.dtype)


def _in_units(means: np.ndarray, series: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    source = plain(series)
    if isinstance(source.dtype, pd.PeriodDtype):
        source = source.dt.to_timestamp()
    dtype = source.dtype
    if kind in (Kind.MOMENT, Kind.DURATION):
        return _times(means, source, "M8" if kind is Kind.MOMENT else "m8")
    if pd.api.types.is_integer_dtype(dtype):
        return _integers(means, dtype)
    return pd.Series(means).astype(dtype) if pd.api.types.is_float_dtype(dtype) else pd.Series(means)


def _times(seconds: np.ndarray, source: pd.Series[Any], code: str) -> pd.Series[Any]:
    """Return moments or durations in the unit and time zone of the source; Python's dates stay dates."""
    if source.dtype == object:
        times = pd.Series(_as_ticks(seconds, code, "us"))
        held = pd.api.types.infer_dtype(source, skipna=True)
        if held == "datetime":
            return pd.Series(times.dt.to_pydatetime(), dtype=object)
        return times.dt.date if held == "date" else times
    times = pd.Series(_as_ticks(seconds, code, source.dt.unit))
    zone = getattr(source.dtype, "tz", None)
    return times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)


def _as_ticks(seconds: np.ndarray, code: str, unit: str) -> np.ndarray:
    """Return NumPy times; counted in their own unit, because years before 1678 do not fit nanoseconds."""
    missing = np.isnan(seconds)
    ticks = np.round(np.where(missing, 0, seconds) * _TICKS_PER_SECOND[unit])
    times = ticks.astype(np.int64).view(f"{code}[{unit}]")
    times[missing] = np.array("NaT", dtype=times.dtype)
    return times


def _integers(means: np.ndarray, dtype: Any) -> pd.Series[Any]:
    """Round to an integer type; the largest 64-bit numbers have no float of their own and would turn negative."""
    limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    missing = np.isnan(means)
    rounded = np.maximum(np.round(np.where(missing, 0, means)), float(limits.min))
    topped = rounded >= float(limits.max)
    whole = np.where(topped, 0, rounded).astype(limits.dtype)
    whole[topped] = limits.max
    numbers = pd.Series(whole).astype(dtype)
    return numbers.mask(missing) if missing.any() else numbers
