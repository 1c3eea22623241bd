"""Means and majorities of the members of condensed rows, gathered block by block.

Rows are added in their order, so that any division into blocks gives the same bytes. Votes are exact while a column has
no more than some eight million pairs of a condensed row and a value of its members; beyond, the rarest pairs are let
go, and with them the values that no pair is left of. So memory stays bounded, also in a column of nearly as many
different strings as rows, and only values that few members share can lose votes.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.vote_table import MOST_CELLS, VoteTable
from c2tc_pipeline.tables.close_numbers import CloseNumbers
from c2tc_pipeline.tables.kinds import plain, to_numbers

# Pairs of a condensed row and a value whose votes are kept: some 130 MB for a column that has so many. Its values are
# at most as many, and two million that wait: some 2 GB of short strings where each row has one of its own.
MOST_PAIRS = 2**23
# Pairs that are looked at before they are merged with those that are kept.
_PENDING_PAIRS = 2**20
# Rows of a large block whose votes are counted together.
_CHUNK_ROWS = 2**20


class MemberMeans:
    """The mean number of each condensed row's members.

    Examples
    --------
    >>> means = MemberMeans(2)
    >>> means.add(pd.Series([1.0, None, 5.0]), np.array([0, 0, 1]))
    >>> means.means().tolist()
    [1.0, 5.0]
    """

    def __init__(self, size: int) -> None:
        self._sums = np.zeros(size)
        self._present = np.zeros(size, dtype=np.int64)
        self._members = np.zeros(size, dtype=np.int64)

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Take numbers into account, given the condensed row of each and, if known, how often each of those occurs."""
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

    def means(self) -> np.ndarray:
        """Return the means; NaN where most members have no number."""
        means = np.where(2 * self._present >= self._members, self._sums / np.maximum(self._present, 1), np.nan)
        means[self._present == 0] = np.nan
        return means


class MemberVotes:
    """The most frequent value among each condensed row's members; "missing" takes part in the vote.

    Ties go to the value that is more frequent in the whole column, then to the one that appears first.

    Examples
    --------
    >>> votes = MemberVotes(1)
    >>> for block in (["a", "b"], ["b"]):
    ...     votes.add(pd.Series(block), np.zeros(len(block), dtype=np.int32))
    >>> votes.winners(pd.Series(["a"])).tolist()
    ['b']
    """

    def __init__(self, size: int, most: int = MOST_PAIRS, most_cells: int = MOST_CELLS) -> None:
        self._size = size
        self._most = most
        # Missing is number 0, so that further values can be numbered as they come.
        self._numbers: dict[Any, int] = {}
        self._values: list[pd.Series[Any]] = []
        # Votes are in a table as long as that has room for the values, and then in pairs.
        self._table: VoteTable | None = VoteTable(size, most_cells)
        self._overall = np.zeros(1, dtype=np.int64)
        self._pairs = np.empty(0, dtype=np.int64)
        self._votes = np.empty(0, dtype=np.int64)
        self._pending: list[tuple[np.ndarray, np.ndarray]] = []
        self._waiting = 0

    def add(self, series: pd.Series[Any], members: np.ndarray, member_rows: np.ndarray | None = None) -> None:
        """Take cells into account, given the condensed row of each and, if known, how often each of those occurs."""
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
        table = self._table_with_room()
        if table is not None:
            table.add(members, codes, values=len(self._numbers) + 1)
        else:
            self._add_pairs(*_counted(members.astype(np.int64), codes))

    def _add_numbers(self, close: CloseNumbers, dtype: np.dtype, votes: np.ndarray) -> None:
        """Do the same for the votes of whole numbers that lie close together, without looking any of them up."""
        appeared = close.appeared(votes.sum(axis=0) > 0)
        codes = self._numbers_of(pd.Index((appeared + close.low).astype(dtype)))
        votes = votes[:, appeared]
        table = self._table_with_room()
        if table is not None:
            table.add_votes(votes, codes, values=len(self._numbers) + 1)
        else:
            condensed, place = np.nonzero(votes)
            self._add_pairs((condensed << 32) | codes[place], votes[condensed, place])

    def _add_pairs(self, pairs: np.ndarray, votes: np.ndarray) -> None:
        overall = np.bincount(pairs & 0xFFFFFFFF, votes, minlength=len(self._numbers) + 1).astype(np.int64)
        overall[: len(self._overall)] += self._overall
        self._overall = overall
        self._pending.append((pairs, votes))
        self._waiting += len(pairs)
        if self._waiting > _PENDING_PAIRS:
            self._settle()

    def _table_with_room(self) -> VoteTable | None:
        """Return the table if it has room for all values; where it has not, what it holds becomes pairs."""
        if self._table is not None and not self._table.has_room(len(self._numbers) + 1):
            self._leave_table()
        return self._table

    def _leave_table(self) -> None:
        if self._table is not None:
            self._overall = self._table.overall()
            self._pairs, self._votes = self._table.pairs()
            self._table = None

    def _numbers_of(self, distinct: Any) -> np.ndarray:
        """Return the numbers of different values, in the order of their first rows; new ones get the next numbers."""
        known = len(self._numbers)
        numbers = np.array(
            [self._numbers.setdefault(value, len(self._numbers) + 1) for value in distinct], dtype=np.int64
        )
        if len(self._numbers) > known:
            self._values.append(pd.Series(distinct).iloc[np.flatnonzero(numbers > known)])
        return numbers

    def _settle(self) -> None:
        pairs = np.concatenate([self._pairs, *(pairs for pairs, _ in self._pending)])
        votes = np.concatenate([self._votes, *(votes for _, votes in self._pending)])
        self._pending, self._waiting = [], 0
        order = np.argsort(pairs, kind="stable")
        pairs, votes = pairs[order], votes[order]
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._pairs, self._votes = pairs[starts], np.add.reduceat(votes, starts) if len(starts) else votes[:0]
        if len(self._pairs) > self._most:
            self._let_go()

    def _let_go(self) -> None:
        """Keep the pairs with most votes, and the best of every condensed row."""
        kept = np.argsort(-self._votes, kind="stable")[: self._most // 2]
        best = self._best()
        kept = np.unique(np.concatenate([kept, best]))
        self._pairs, self._votes = self._pairs[kept], self._votes[kept]
        self._forget_values()

    def _forget_values(self) -> None:
        """Forget the values that no pair is left of; the others are numbered anew, in the same order."""
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

    def winners(self, example: pd.Series[Any]) -> pd.Series[Any]:
        """Return the winning value of each condensed row, given cells of the type that the column has."""
        if not self._values:
            return plain(example).take(np.zeros(self._size, dtype=np.int64)).reset_index(drop=True)
        self._leave_table()
        self._settle()
        winner = (self._pairs & 0xFFFFFFFF)[self._best()]
        values = pd.concat(self._values, ignore_index=True)
        chosen = values.take(np.maximum(winner - 1, 0)).reset_index(drop=True)
        return chosen.mask(winner == 0) if (winner == 0).any() else chosen


def _counted(members: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs that occur, with the condensed row in the upper half of a word and the value in the lower.

    They come with how often each occurs, in no particular order.
    """
    positions, distinct = pd.factorize((members << 32) | codes)
    return np.asarray(distinct), np.bincount(positions, minlength=len(distinct))
