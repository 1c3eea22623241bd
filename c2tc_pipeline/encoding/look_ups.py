"""Sums of looked-up table rows, there and back: what the autoencoder spends its time on.

What belongs here: which table rows are added up for which row of a batch. What does not: what stands in the tables.

Columns of few categories are joined first. A table of a hundred thousand rows may have a few hundred distinct
combinations of ten such columns; their sums are made once a step, and every row then looks up one sum instead of ten
table rows. Of long columns, a batch looks up only some of the categories; the others are left out of its tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch.nn import functional as F

_LARGEST = 2**62


@dataclass(frozen=True)
class Bags:
    """Sets of table rows to be added up, and for each table row the bags that it is in.

    Parameters
    ----------
    members : tensor of int
        Table rows, bag by bag.
    edges : tensor of int
        Where each bag begins in ``members``.
    users : tensor of int
        Bags, table row by table row.
    user_edges : tensor of int
        Where the bags of each table row begin in ``users``.

    Examples
    --------
    >>> bags = Bags.of(torch.tensor([0, 2, 2]), torch.tensor([2, 1]), width=3)
    >>> bags.sums(torch.tensor([[1.0], [10.0], [100.0]])).tolist()
    [[101.0], [100.0]]
    >>> bags.sums_back(torch.tensor([[1.0], [10.0]])).tolist()
    [[1.0], [0.0], [11.0]]
    """

    members: torch.Tensor
    edges: torch.Tensor
    users: torch.Tensor
    user_edges: torch.Tensor

    @classmethod
    def of(cls, members: torch.Tensor, sizes: torch.Tensor, width: int) -> Bags:
        """Prepare bags of the given sizes over a table of ``width`` rows."""
        owners = torch.repeat_interleave(torch.arange(len(sizes), device=members.device), sizes)
        users = owners[torch.argsort(members, stable=True)]
        return cls(members, _starts(sizes), users, _starts(torch.bincount(members, minlength=width)))

    def picked(self, bags: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the members of some bags, bag by bag, and how many each has."""
        sizes = torch.diff(self.edges, append=self.edges.new_tensor([len(self.members)]))[bags]
        shifts = torch.repeat_interleave(self.edges[bags] - _starts(sizes), sizes)
        return self.members[shifts + torch.arange(len(shifts), device=shifts.device)], sizes

    def sums(self, table: torch.Tensor) -> torch.Tensor:
        """Return, for each bag, the sum of its table rows."""
        return F.embedding_bag(self.members, table, self.edges, mode="sum")

    def sums_back(self, values: torch.Tensor) -> torch.Tensor:
        """Return, for each table row, the sum of ``values`` over the bags that it is in."""
        return F.embedding_bag(self.users, values, self.user_edges, mode="sum")


@dataclass(frozen=True)
class RowBatch:
    """Rows of a batch, as bags of combinations that are bags of table rows.

    Parameters
    ----------
    used : tensor of int
        The rows of the concatenated tables that the batch looks up, in ascending order: all that its tables hold.
    combinations : Bags
        What each combination of joined columns adds up.
    rows : Bags
        The combinations of each row, one from every group of joined columns.

    Examples
    --------
    >>> joined = JoinedColumns.of(np.array([[0, 1], [1, 0], [0, 2]]), [2, 3], most=4)
    >>> batch = joined.batch(torch.tensor([0, 1]))
    >>> batch.used.tolist(), batch.sums(torch.tensor([[1.0], [2.0], [10.0], [20.0]])).tolist()
    ([0, 1, 2, 3], [[21.0], [12.0]])
    """

    used: torch.Tensor
    combinations: Bags
    rows: Bags

    def sums(self, table: torch.Tensor) -> torch.Tensor:
        """Return, for each row, the sum of its table rows."""
        return self.rows.sums(self.combinations.sums(table))

    def sums_back(self, values: torch.Tensor) -> torch.Tensor:
        """Return, for each table row, the sum of ``values`` over the batch rows that look it up."""
        return self.combinations.sums_back(self.rows.sums_back(values))


@dataclass(frozen=True)
class JoinedColumns:
    """Columns in groups, and the combinations of categories that occur in each group.

    Parameters
    ----------
    groups : list of list of int
        The columns of each group.
    combinations : Bags
        The table rows of each combination, all groups one after the other.
    codes : tensor of int of shape (rows, groups)
        The combinations of each row.
    """

    groups: list[list[int]]
    combinations: Bags
    codes: torch.Tensor

    @classmethod
    def of(cls, places: np.ndarray, sizes: Sequence[int], *, most: int, device: str = "cpu") -> JoinedColumns:
        """Join columns, those of few categories first, as long as a group has no more combinations than ``most``.

        Parameters
        ----------
        places : ndarray of int of shape (rows, columns)
            The category of each row in each column.
        sizes : sequence of int
            Categories of each column: its rows in the concatenated tables.
        most : int
            Combinations that a group of several columns may have.
        device : str
            Where the look-ups will be made.

        Examples
        --------
        >>> JoinedColumns.of(np.array([[0, 0, 0], [1, 1, 1], [0, 0, 2]]), [2, 2, 3], most=2).groups
        [[0, 1], [2]]
        """
        offsets = np.cumsum([0, *sizes[:-1]])
        groups, found = _group(places, sizes, most)
        members = [
            (places[first][:, columns] + offsets[columns]).reshape(-1)
            for columns, (_, first) in zip(groups, found, strict=True)
        ]
        counts = [len(first) for _, first in found]
        codes = [numbers + start for (numbers, _), start in zip(found, np.cumsum([0, *counts]), strict=False)]
        lengths = np.repeat([len(columns) for columns in groups], counts)
        flat = torch.from_numpy(np.concatenate(members)).to(device)
        combinations = Bags.of(flat, torch.from_numpy(lengths).to(device), sum(sizes))
        return cls(groups, combinations, torch.from_numpy(np.stack(codes, axis=1)).to(device))

    def batch(self, picked: torch.Tensor) -> RowBatch:
        """Prepare some of the rows, given by their numbers."""
        codes = self.codes[picked]
        occurring, numbers = _occurring(codes.reshape(-1), len(self.combinations.edges))
        rows = Bags.of(numbers, torch.full((len(codes),), codes.shape[1], device=codes.device), len(occurring))
        members, sizes = self.combinations.picked(occurring)
        used, places = _occurring(members, len(self.combinations.user_edges))
        return RowBatch(used, Bags.of(places, sizes, len(used)), rows)


def distinct_rows(places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each distinct row of numbers from 0 stands first, and how often it occurs, in ascending order.

    Examples
    --------
    >>> first, counts = distinct_rows(np.array([[5, 5], [0, 1], [5, 5]]))
    >>> first.tolist(), counts.tolist()
    ([1, 0], [1, 2])
    """
    words = _packed(places)
    order = np.lexsort(words[::-1])
    new = np.zeros(len(places), dtype=bool)
    new[0] = True
    for word in words:
        new[1:] |= np.diff(word[order]) != 0
    starts = np.flatnonzero(new)
    return order[starts], np.diff(starts, append=len(places))


def _packed(places: np.ndarray) -> list[np.ndarray]:
    """Return the columns as few columns of large numbers, in the same order: a handful to sort by instead of dozens."""
    words: list[np.ndarray] = []
    room = 0
    for column in places.T.astype(np.int64):
        values = int(column.max()) + 1
        if room // values:
            words[-1] = words[-1] * values + column
            room //= values
        else:
            words.append(column)
            room = _LARGEST // values
    return words


def _group(
    places: np.ndarray, sizes: Sequence[int], most: int
) -> tuple[list[list[int]], list[tuple[np.ndarray, np.ndarray]]]:
    """Return groups of columns, and for each the combination of every row and where each combination stands first."""
    groups: list[list[int]] = []
    found: list[tuple[np.ndarray, np.ndarray]] = []
    for column in np.argsort(sizes, kind="stable").tolist():
        if groups:
            joint = _numbered(_paired(found[-1][0], places[:, column]))
            if len(joint[1]) <= most:
                groups[-1].append(column)
                found[-1] = joint
                continue
        groups.append([column])
        found.append(_numbered(places[:, column]))
    return groups, found


def _numbered(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return whole numbers from 0 in order of appearance, and where each appears first."""
    numbers, distinct = pd.factorize(values)
    first = np.empty(len(distinct), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(values) - 1, -1, -1)
    return numbers.astype(np.int64), first


def _paired(numbers: np.ndarray, column: np.ndarray) -> np.ndarray:
    return numbers * (int(column.max()) + 1) + column


def _occurring(numbers: torch.Tensor, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which of the numbers below ``width`` occur, in ascending order, and the place of each number among them.

    Examples
    --------
    >>> occurring, places = _occurring(torch.tensor([7, 2, 7]), 9)
    >>> occurring.tolist(), places.tolist()
    ([2, 7], [1, 0, 1])
    """
    occurs = numbers.new_zeros(width, dtype=torch.bool)
    occurs[numbers] = True
    return occurs.nonzero()[:, 0], (occurs.cumsum(0) - 1)[numbers]


def _starts(sizes: torch.Tensor) -> torch.Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)[:-1]])
