"""The split's invariants, against properties and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.split import row_hashes, split_rows

labels = st.lists(st.integers(0, 5), min_size=1, max_size=200)
two_shares = st.tuples(st.floats(0, 0.49), st.floats(0, 0.49))
seeds = st.integers(0, 2**31)


def sizes_of(sides: np.ndarray) -> tuple[int, ...]:
    return tuple(np.bincount(sides, minlength=3).tolist())


@given(labels, two_shares, seeds)
def test_every_class_is_within_one_row_of_its_share(y: list[int], parts: tuple[float, float], seed: int) -> None:
    validation, test = parts
    split = split_rows(np.array(y), validation=validation, test=test, seed=seed)
    assert len(split) == len(y)
    shares = np.array([1 - validation - test, validation, test])
    assert np.abs(np.array(sizes_of(split)) - len(y) * shares).max() <= len(set(y))
    # Groups of one row each are as good as none.
    alone = split_rows(np.array(y), validation=validation, test=test, seed=seed, groups=np.arange(len(y)))
    np.testing.assert_array_equal(split, alone)
    classes = np.array(y)
    for code in set(y):
        rows = int((classes == code).sum())
        exact = rows * shares
        given_rows = np.bincount(split[classes == code], minlength=3)
        assert np.abs(given_rows - exact).max() < 1 + 1e-6
        assert given_rows[0] >= 1


def test_sizes_and_seeds() -> None:
    for rows, sizes in ((0, (0, 0, 0)), (1, (1, 0, 0)), (2, (2, 0, 0)), (10, (8, 1, 1)), (30, (24, 3, 3))):
        assert sizes_of(split_rows(np.array(["a"] * rows))) == sizes
    y = np.repeat(np.arange(40), 5)
    assert sizes_of(split_rows(y)) == (160, 20, 20), "small classes fill every side together"
    assert split_rows(y, seed=1).tolist() != split_rows(y, seed=2).tolist()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=150), seeds)
def test_groups_never_cross_sides(rows: list[tuple[int, int]], seed: int) -> None:
    y = np.array([label for label, _ in rows])
    groups = np.array([group for _, group in rows])
    split = split_rows(y, seed=seed, groups=groups)
    assert len(split) == len(rows)
    parts = [set(groups[split == side].tolist()) for side in range(3)]
    assert all(not one & other for one, other in itertools.combinations(parts, 2))
    assert set(y[split == 0].tolist()) == set(y.tolist())


def test_shares_stay_close_with_groups() -> None:
    rng = np.random.default_rng(0)
    groups = rng.zipf(1.6, size=5000) % 3000
    y = rng.choice(4, size=5000, p=[0.7, 0.2, 0.08, 0.02])
    groups[groups < 3] += np.arange((groups < 3).sum()) + 10_000
    split = split_rows(y, groups=groups)
    for code in range(4):
        rows = (y == code).sum()
        for side, share in enumerate((0.8, 0.1, 0.1)):
            assert abs((y[split == side] == code).sum() - share * rows) <= max(2, 0.01 * rows)


@pytest.mark.parametrize("options", [{"validation": -0.1}, {"test": float("nan")}, {"validation": 0.5, "test": 0.5}])
def test_wrong_settings(options: dict[str, float]) -> None:
    with pytest.raises(InputError):
        split_rows(np.array(["a", "b"]), **options)  # type: ignore[arg-type]


cells = st.one_of(st.none(), st.integers(0, 2))


@given(st.lists(st.tuples(cells, st.sampled_from(["a", "b", None]), st.booleans()), max_size=40))
def test_row_hashes_against_brute_force(rows: list[tuple[int | None, str | None, bool]]) -> None:
    frame = pd.DataFrame(rows, columns=["number", "text", "flag"]).astype(
        {"number": "Int64", "text": "str", "flag": bool}
    )
    seen: dict[tuple[object, ...], int] = {}
    expected = [seen.setdefault(row, len(seen)) for row in rows]
    cut = len(rows) // 2
    hashes = row_hashes([frame.iloc[:cut], frame.iloc[cut:]], ["text"])
    assert pd.factorize(hashes)[0].tolist() == expected
