"""Dividing rows into train, validation and test: stratified, reproducible, duplicates together on request.

What is done with the three parts belongs elsewhere; nothing here looks at a feature except to find equal
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.kinds import Kind, column_kind, to_text

_TRAIN = 0


@dataclass(frozen=True)
class Split:
    """Row positions of the three parts, each sorted.

    Parameters
    ----------
    train, validation, test : numpy.ndarray of int64
        Positions, every row in exactly one of them.

    Examples
    --------
    >>> Split(np.array([0, 2]), np.array([1]), np.array([3])).sizes
    (2, 1, 1)
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows in train, validation and test."""
        return len(self.train), len(self.validation), len(self.test)


def split_rows(
    y: pd.Series[Any] | np.ndarray | Sequence[Any],
    *,
    validation: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    groups: np.ndarray | None = None,
) -> Split:
    """Divide rows so that every class has the same shares on each side.

    Parameters
    ----------
    y : sequence
        The class of each row, none missing.
    validation, test : float
        Shares of the rows, together below 1; the rest is for training.
    seed : int
        Decides which rows go where; the same seed gives the same parts.
    groups : numpy.ndarray of int, optional
        Rows with the same number stay on one side.

    Returns
    -------
    Split
        Sorted positions.

    Raises
    ------
    InputError
        When a share is out of range or the lengths differ.

    Notes
    -----
    Rows that are alike in class (with groups: groups that are alike in their rows of each class) are
    interchangeable. Each such set is shuffled and divided by largest remainder; what is left over goes to the
    side that lacks most rows of these classes, then to the side that lacks most rows in all, then to train.
    Without groups every class is thus within one row of its exact share on every side. Every class keeps at
    least one row, or group, for training: a class of one row is trained on and never tested.

    Examples
    --------
    >>> split_rows(["a"] * 20 + ["b"] * 10).sizes
    (24, 3, 3)
    """
    shares = _checked_shares(validation, test)
    codes, classes = pd.factorize(np.asarray(y, dtype=object))
    if (codes < 0).any():
        raise InputError("Some rows to split have no label; leave them out first.")
    members = _Members.of_rows(len(codes)) if groups is None else _Members.of_groups(groups, len(codes))
    side_of_set = _assign(members, codes, len(classes), shares, np.random.default_rng(seed))
    side = np.empty(len(codes), dtype=np.int8)
    side[members.order] = np.repeat(side_of_set, np.diff(members.bounds))
    return Split(*(np.flatnonzero(side == number).astype(np.int64) for number in range(3)))


def duplicate_groups(frame: pd.DataFrame) -> np.ndarray:
    """Number the rows so that exactly the equal ones share a number; a missing value equals a missing value.

    Columns are combined one by one into exact pair numbers, so that no two different rows can be confused.

    Parameters
    ----------
    frame : pandas.DataFrame
        The columns to compare.

    Returns
    -------
    numpy.ndarray of int64
        A group number for each row, from 0 in order of first appearance.

    Examples
    --------
    >>> duplicate_groups(pd.DataFrame({"a": [1.0, None, 1.0, None], "b": ["x", "y", "x", "z"]})).tolist()
    [0, 1, 0, 2]
    """
    numbers = np.zeros(len(frame), dtype=np.int64)
    for position in range(frame.shape[1]):
        column = frame.iloc[:, position]
        if column_kind(column) is Kind.MIXED:
            column = to_text(column)
        codes, values = pd.factorize(column, use_na_sentinel=True)
        pairs = numbers * (len(values) + 1) + (codes.astype(np.int64) + 1)
        numbers, distinct = pd.factorize(pairs)
        if len(distinct) == len(frame):
            break
    return np.asarray(numbers, dtype=np.int64)


@dataclass(frozen=True)
class _Members:
    """Rows sorted by group: group g holds ``order[bounds[g]:bounds[g + 1]]``."""

    order: np.ndarray
    bounds: np.ndarray

    @classmethod
    def of_rows(cls, rows: int) -> _Members:
        return cls(np.arange(rows), np.arange(rows + 1))

    @classmethod
    def of_groups(cls, groups: np.ndarray, rows: int) -> _Members:
        if len(groups) != rows:
            raise InputError(f"There are {len(groups)} group numbers for {rows} rows; give one for each row.")
        numbers, distinct = pd.factorize(np.asarray(groups))
        sizes = np.bincount(numbers, minlength=len(distinct))
        return cls(np.argsort(numbers, kind="stable"), np.concatenate([[0], np.cumsum(sizes)]))


def _checked_shares(validation: float, test: float) -> np.ndarray:
    for name, share in (("validation", validation), ("test", test)):
        if not 0 <= share < 1:
            raise InputError(f"The {name} share is {share}; choose one from 0 up to, but not including, 1.")
    if not validation + test < 1:
        raise InputError(
            f"The validation and test shares add up to {validation + test:g} and leave no rows to train on; "
            "choose smaller ones."
        )
    return np.array([1 - validation - test, validation, test])


def _alike_sets(members: _Members, codes: np.ndarray) -> dict[tuple[tuple[int, int], ...], list[int]]:
    """Sets of groups by what they hold, ((class, rows), ...), the largest groups first, single rows last."""
    sizes = np.diff(members.bounds)
    alike: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for group, composition in _compositions(members, codes).items():
        alike.setdefault(tuple(composition), []).append(group)
    ordered = dict(sorted(alike.items(), key=lambda item: (-sum(count for _, count in item[0]), item[0])))
    single = np.flatnonzero(sizes == 1)
    single_codes = codes[members.order[members.bounds[single]]]
    for code in np.unique(single_codes).tolist():
        ordered[((code, 1),)] = single[single_codes == code].tolist()
    return ordered


def _compositions(members: _Members, codes: np.ndarray) -> dict[int, list[tuple[int, int]]]:
    """For each group of several rows, its classes in order with their row counts."""
    sizes = np.diff(members.bounds)
    group_of_row = np.repeat(np.arange(len(sizes)), sizes)
    code_of_row = codes[members.order]
    several = sizes[group_of_row] > 1
    pairs = np.stack([group_of_row[several], code_of_row[several]])
    distinct, counts = np.unique(pairs, axis=1, return_counts=True)
    compositions: dict[int, list[tuple[int, int]]] = {}
    for group, code, count in zip(*distinct.tolist(), counts.tolist(), strict=True):
        compositions.setdefault(group, []).append((code, count))
    return compositions


def _assign(
    members: _Members, codes: np.ndarray, classes: int, shares: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """The side, 0 train, 1 validation, 2 test, of every group."""
    lacking = np.outer(shares, np.bincount(codes, minlength=classes))
    sides = np.empty(len(members.bounds) - 1, dtype=np.int8)
    for composition, alike in _alike_sets(members, codes).items():
        held = np.array([code for code, _ in composition])
        weight = np.array([count for _, count in composition])
        is_single_row = int(weight.sum()) == 1
        exact = _still_wanted(lacking[:, held[0]], len(alike)) if is_single_row else shares * len(alike)
        counts = np.floor(exact).astype(np.int64)
        lacking[:, held] -= np.outer(counts, weight)
        for _ in range(len(alike) - int(counts.sum())):
            side = _neediest(lacking, held, weight, open_sides=shares > 0)
            counts[side] += 1
            lacking[side, held] -= weight
        shuffled = rng.permutation(np.array(alike))
        sides[shuffled] = np.repeat(np.arange(3, dtype=np.int8), counts)
    _give_every_class_to_train(sides, members, codes, lacking)
    return sides


def _still_wanted(lacking: np.ndarray, rows: int) -> np.ndarray:
    """How the last, single rows of a class are best divided, after the groups have taken what they took."""
    wanted = np.maximum(lacking, 0.0)
    return wanted * (rows / wanted.sum())


def _neediest(lacking: np.ndarray, held: np.ndarray, weight: np.ndarray, open_sides: np.ndarray) -> int:
    of_these = np.round(lacking[:, held] @ weight, 9)
    in_all = np.round(lacking.sum(axis=1), 9)
    return max(np.flatnonzero(open_sides).tolist(), key=lambda side: (of_these[side], in_all[side], -side))


def _give_every_class_to_train(sides: np.ndarray, members: _Members, codes: np.ndarray, lacking: np.ndarray) -> None:
    """Move one group to train for each class that has none there, the smallest from the side best served."""
    sizes = np.diff(members.bounds)
    group_of_row = np.empty(len(codes), dtype=np.int64)
    group_of_row[members.order] = np.repeat(np.arange(len(sizes)), sizes)
    trained = np.zeros(lacking.shape[1], dtype=bool)
    trained[codes[sides[group_of_row] == _TRAIN]] = True
    for code in np.flatnonzero(~trained).tolist():
        candidates = np.unique(group_of_row[codes == code])
        if (sides[candidates] == _TRAIN).any():
            continue  # a group moved for another class brought this one along
        chosen = min(candidates.tolist(), key=lambda group: (sizes[group], lacking[sides[group], code], group))
        sides[chosen] = _TRAIN
