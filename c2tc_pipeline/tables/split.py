"""Division of rows into train, validation and test: stratified, reproducible, duplicates together on request."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.category_counts import mixed_bits
from c2tc_pipeline.tables.kinds import as_floats, to_text

SIDES = ("train", "validation", "test")
_TRAIN = 0


def split_rows(
    codes: np.ndarray, *, validation: float = 0.1, test: float = 0.1, seed: int = 0, groups: np.ndarray | None = None
) -> np.ndarray:
    """Return the side of each row, an index into :data:`SIDES`, so that every class has the same shares on each side.

    ``codes`` has the class of each row. Rows with the same number in ``groups`` stay on one side.

    Notes
    -----
    Rows of one class are interchangeable; so are groups with equal numbers of rows of each class. Each such set is
    shuffled and divided by largest remainder; the remainder goes to the side that lacks most rows of these classes,
    then to the side that lacks most rows in all, then to train. Without groups every class is within one row of its
    exact share on every side. Every class keeps at least one row, or group, for training.

    Examples
    --------
    >>> np.bincount(split_rows(np.repeat([0, 1], [20, 10]))).tolist()
    [24, 3, 3]
    """
    shares = _checked_shares(validation, test)
    numbers, classes = pd.factorize(np.asarray(codes))
    rng = np.random.default_rng(seed)
    lacking = np.outer(shares, np.bincount(numbers, minlength=len(classes)))
    if groups is None:
        sides = np.empty(len(numbers), dtype=np.int8)
        for code in range(len(classes)):
            _divide(sides, np.flatnonzero(numbers == code), ((code, 1),), lacking, shares, rng)
        if not np.bincount(numbers[sides == _TRAIN], minlength=len(classes)).all():
            _ensure_training_rows(sides, np.arange(len(numbers)), numbers, lacking)
        return sides
    group_of_row, distinct = pd.factorize(np.asarray(groups))
    sides = np.empty(len(distinct), dtype=np.int8)
    for composition, alike in _alike_groups(group_of_row, numbers, len(distinct)).items():
        _divide(sides, np.array(alike), composition, lacking, shares, rng)
    _ensure_training_rows(sides, group_of_row, numbers, lacking)
    return sides[group_of_row]


def row_hashes(frames: Iterable[pd.DataFrame], strings: Iterable[str]) -> np.ndarray:
    """Return a 64-bit hash of each row, equal for equal rows; missing equals missing. Strings are compared as text.

    Two different rows share a hash with a probability of 1e-5 in 20 million rows, which only puts them on one side.
    """
    texts = set(strings)
    parts = []
    for frame in frames:
        hashes = np.zeros(len(frame), dtype=np.uint64)
        for name, column in frame.items():
            values = to_text(column) if name in texts else pd.Series(as_floats(column))
            own = pd.util.hash_pandas_object(values, index=False).to_numpy()
            hashes = mixed_bits(hashes * np.uint64(0x9E3779B97F4A7C15) + own)
        parts.append(hashes)
    return np.concatenate(parts)


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


Composition = tuple[tuple[int, int], ...]
"""The classes of a group with their numbers of rows."""


def _alike_groups(group_of_row: np.ndarray, numbers: np.ndarray, groups: int) -> dict[Composition, list[int]]:
    """Return groups by composition, the largest groups first, single rows last."""
    sizes = np.bincount(group_of_row, minlength=groups)
    several = sizes[group_of_row] > 1
    pairs, counts = np.unique(np.stack([group_of_row[several], numbers[several]]), axis=1, return_counts=True)
    compositions: dict[int, list[tuple[int, int]]] = {}
    for group, code, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        compositions.setdefault(group, []).append((code, count))
    alike: dict[Composition, list[int]] = {}
    for group, composition in compositions.items():
        alike.setdefault(tuple(composition), []).append(group)
    ordered = dict(sorted(alike.items(), key=lambda item: (-sum(count for _, count in item[0]), item[0])))
    single = ~several
    for code in np.unique(numbers[single]).tolist():
        ordered[((code, 1),)] = np.sort(group_of_row[single & (numbers == code)]).tolist()
    return ordered


def _divide(
    sides: np.ndarray,
    alike: np.ndarray,
    composition: Composition,
    lacking: np.ndarray,
    shares: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Divide groups of one composition over the sides, and subtract them from what each side lacks."""
    held = np.array([code for code, _ in composition])
    weight = np.array([count for _, count in composition])
    if int(weight.sum()) == 1:
        # Single rows come last, and make up for what larger groups left uneven.
        wanted = np.maximum(lacking[:, held[0]], 0.0)
        exact = wanted * (len(alike) / wanted.sum())
    else:
        exact = shares * len(alike)
    counts = np.floor(exact).astype(np.int64)
    lacking[:, held] -= np.outer(counts, weight)
    for _ in range(len(alike) - int(counts.sum())):
        of_these, in_all = np.round(lacking[:, held] @ weight, 9), np.round(lacking.sum(axis=1), 9)
        side = max(np.flatnonzero(shares > 0).tolist(), key=lambda side: (of_these[side], in_all[side], -side))
        counts[side] += 1
        lacking[side, held] -= weight
    sides[rng.permutation(alike)] = np.repeat(np.arange(3, dtype=np.int8), counts)


def _ensure_training_rows(
    sides: np.ndarray, group_of_row: np.ndarray, numbers: np.ndarray, lacking: np.ndarray
) -> None:
    """Move one group to train for each class without one: the smallest, from the side with the largest surplus."""
    trained = np.zeros(lacking.shape[1], dtype=bool)
    trained[numbers[sides[group_of_row] == _TRAIN]] = True
    sizes = np.bincount(group_of_row, minlength=len(sides))
    for code in np.flatnonzero(~trained).tolist():
        candidates = np.unique(group_of_row[numbers == code])
        if (sides[candidates] == _TRAIN).any():
            continue  # a group moved for another class brought this one along
        chosen = min(candidates.tolist(), key=lambda group: (sizes[group], lacking[sides[group], code], group))
        sides[chosen] = _TRAIN
