"""Votes of condensed rows' members as a table with a cell for each condensed row and value.

What belongs here: columns of few values, where such a table is small and a vote is one addition. Columns of many are in
:mod:`c2tc_pipeline.condensation.members`, as the pairs that occur.
"""

from __future__ import annotations

import numpy as np

# Cells of a table: 16 MB, as much as a million pairs take.
MOST_CELLS = 2**21


class VoteTable:
    """How many members of each condensed row have each value.

    Examples
    --------
    >>> table = VoteTable(2)
    >>> table.add(np.array([0, 1, 1]), np.array([1, 2, 2]), values=3)
    >>> pairs, votes = table.pairs()
    >>> [divmod(int(pair), 2**32) for pair in pairs], votes.tolist(), table.overall().tolist()
    ([(0, 1), (1, 2)], [1, 2], [0, 1, 2])
    """

    def __init__(self, size: int, most: int = MOST_CELLS) -> None:
        self._most = most
        self._values = 0
        self._cells = np.zeros((size, 0), dtype=np.int64)

    def has_room(self, values: int) -> bool:
        """Tell whether so many values fit."""
        return len(self._cells) * _room(values) <= self._most

    def add(self, members: np.ndarray, codes: np.ndarray, *, values: int) -> None:
        """Count votes, given the condensed row and the value of each; values are numbered from 0 to ``values``."""
        self._grow(values)
        places = members.astype(np.int64)
        places *= self._cells.shape[1]
        places += codes
        flat = self._cells.reshape(-1)
        if len(places) < len(flat):
            np.add.at(flat, places, 1)
        else:
            flat += np.bincount(places, minlength=len(flat))

    def add_votes(self, votes: np.ndarray, codes: np.ndarray, *, values: int) -> None:
        """Add votes that were counted for some values, a column each."""
        self._grow(values)
        self._cells[:, codes] += votes

    def _grow(self, values: int) -> None:
        self._values = values
        more = _room(values) - self._cells.shape[1]
        if more > 0:
            self._cells = np.pad(self._cells, ((0, 0), (0, more)))

    def overall(self) -> np.ndarray:
        """Return how many members have each value."""
        return self._cells.sum(axis=0)[: self._values]

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs that occur, the condensed row in the upper half of a word, ascending, and their votes."""
        condensed, code = np.nonzero(self._cells)
        return (condensed << 32) | code, self._cells[condensed, code]


def _room(values: int) -> int:
    """Return the columns of a table for so many values: some for those to come, so that few of them need a new one."""
    return 1 << (values - 1).bit_length()
