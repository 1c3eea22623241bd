"""One pass over blocks: any division of the rows tells the same, and the same as the table in memory."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.category_counts import (
    CategoryCounter,
    CategoryCounts,
    DistinctCount,
    hashed_texts,
    mixed_bits,
)
from c2tc_pipeline.tables.column_facts import ColumnGatherer
from c2tc_pipeline.tables.overview import TableOverview, overview_of
from c2tc_pipeline.tables.preparation import prepare_table
from c2tc_pipeline.tables.row_sample import RowPicker, RowSample, sampled_numbers

Value = TypeVar("Value")

cells = {
    "amount": st.none() | st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    "size": st.none() | st.integers(-5, 40),
    "type_code": st.integers(1, 4),
    "flag": st.booleans(),
    "job": st.none() | st.sampled_from(["nurse", "cook", "senior cook", "Koch", ""]),
    "empty": st.none(),
    "same": st.just("x"),
    "y": st.sampled_from(["no", "yes"]) | st.none(),
}
DTYPES = {"amount": "float64", "size": "Int64", "flag": "bool", "job": "str", "same": "str", "y": "str"}
tables = st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=40).map(
    lambda rows: pd.DataFrame(rows).astype(DTYPES)
)


def in_blocks(frame: pd.DataFrame, edges: list[int]) -> list[pd.DataFrame]:
    """Cut a table, and give whole numbers without gaps the type that Arrow gives them in such a block."""
    cuts = [0, *sorted(edge % (len(frame) + 1) for edge in edges), len(frame)]
    blocks = []
    for start, end in itertools.pairwise(cuts):
        block = frame.iloc[start:end].reset_index(drop=True)
        blocks.append(block if block["size"].isna().any() else block.astype({"size": "int64"}))
    return blocks


def outcome(attempt: Callable[[], Value]) -> Value | str:
    """Return what comes of an attempt: its value, or why it failed."""
    try:
        return attempt()
    except InputError as error:
        return str(error)


def facts_of(overview: TableOverview) -> dict[str, Any]:
    return {
        "roles": overview.roles,
        "kinds": overview.kinds,
        "classes": (overview.classes.values.tolist(), overview.classes.rows.tolist(), overview.classes.dtype),
        "notices": overview.notices,
        "counts": {
            name: (counts.keys, counts.table.tolist(), counts.missing.tolist())
            for name, counts in overview.counts.items()
        },
        "ranges": {name: vars(numbers) for name, numbers in overview.ranges.items()},
        "sample": overview.sample.astype(object).where(overview.sample.notna(), None).to_dict("list"),
        "codes": overview.sample_codes.tolist(),
    }


@settings(deadline=None, max_examples=50)
@given(tables, st.lists(st.integers(0, 60), max_size=6))
def test_any_division_into_blocks_tells_the_same_as_the_table_in_memory(frame: pd.DataFrame, edges: list[int]) -> None:
    prepared = outcome(lambda: prepare_table(frame, label="y"))
    if isinstance(prepared, str):
        assert outcome(lambda: overview_of(in_blocks(frame, edges), label="y")) == prepared
        return
    whole, parts = (overview_of(blocks, label="y") for blocks in ([frame], in_blocks(frame, edges)))
    assert facts_of(whole) == facts_of(parts)
    assert whole.roles == prepared.roles
    assert whole.notices == prepared.notices
    assert whole.classes.values[whole.sample_codes].tolist() == prepared.y.tolist()
    pd.testing.assert_frame_equal(whole.sample, prepared.X)
    for name, counts in whole.counts.items():
        oracle = pd.crosstab(prepared.X[name].astype(object), prepared.y)
        assert counts.table.sum() == oracle.to_numpy().sum()
        assert sorted(counts.rows.tolist()) == sorted(oracle.sum(axis=1).tolist())
        assert counts.missing.sum() == prepared.X[name].isna().sum()


@pytest.mark.parametrize(
    ("column", "roles", "message"),
    [
        ([1.0, np.inf, 2.5, -np.inf], {}, r"Column 'x' holds 2 infinite values, the first in data row 2 "),
        (["1", "2", "x", "4"], {"x": "numeric"}, r"'x' in data row 3 \(the first is 1\) is not a number"),
        ([1, 2, 3, 4], {"x": "colour"}, "can't have the role 'colour'"),
        ([7, 7, 7, 7], {}, "No feature column is left"),
    ],
)
def test_what_is_wrong_is_said_as_for_a_table_in_memory(column: list[Any], roles: dict[str, str], message: str) -> None:
    frame = pd.DataFrame({"x": column, "y": list("abab")})
    for attempt in (
        lambda: prepare_table(frame, label="y", roles=roles),
        lambda: overview_of([frame.iloc[:1], frame.iloc[1:]], label="y", roles=roles),
    ):
        with pytest.raises(InputError, match=message):
            attempt()


def test_whole_numbers_are_the_same_in_blocks_with_and_without_gaps() -> None:
    frame = pd.DataFrame({"size": pd.array([1, 2, 3, None, 2, 3, 4, 5], dtype="Int64"), "y": list("abababab")})
    whole, parts = (overview_of(blocks, label="y") for blocks in ([frame], in_blocks(frame, [3])))
    assert whole.roles["size"].distinct == parts.roles["size"].distinct == 5


@pytest.mark.parametrize("blocks", [[], [3], [0, 5, 5]])
def test_labelled_rows_come_with_their_class_and_their_place_in_the_source(blocks: list[int]) -> None:
    frame = pd.DataFrame({"x": range(6), "y": ["b", None, "a", "b", None, "c"], "size": 1})
    parts = in_blocks(frame, blocks)
    found = list(overview_of(parts, label="y").labelled(parts))
    assert np.concatenate([block.row_ids for block in found]).tolist() == [0, 2, 3, 5]
    assert np.concatenate([block.codes for block in found]).tolist() == [1, 0, 1, 2]


@settings(deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=8), st.integers(0, 3))
def test_a_sample_does_not_depend_on_the_division_into_blocks(sizes: list[int], seed: int) -> None:
    rows = sum(sizes)
    sample = RowSample(seed, most=50)
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        sample.add(pd.DataFrame({"x": np.arange(start, start + size)}))
    expected = sampled_numbers(rows, seed=seed, most=50)
    assert len(expected) == min(rows, 50)
    if rows:
        assert sample.rows()["x"].tolist() == expected.tolist()


def test_a_sample_is_uniform_and_differs_between_seeds() -> None:
    picks = np.stack([np.isin(np.arange(1_000), sampled_numbers(1_000, seed=seed, most=200)) for seed in range(300)])
    assert (picks.sum(axis=1) == 200).all()
    # Each row is drawn in a fifth of 300 samples, with a standard deviation of 7.
    assert np.abs(picks.sum(axis=0) - 60).max() < 35
    assert len({tuple(pick) for pick in picks}) == 300


def test_a_picker_holds_few_rows_beyond_the_sample() -> None:
    picker, held = RowPicker(seed=0, most=100), 0
    for _ in range(200):
        held += len(picker.offer(1_000))
        if picker.is_crowded():
            picker.settle()
    assert held < 3_000
    assert len(picker.numbers()) == 100


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 2_000)), min_size=1), st.sampled_from([16, 10_000]))
def test_different_values_are_counted_or_estimated_alike_in_any_division(blocks: list[list[int]], kept: int) -> None:
    counted, whole = DistinctCount(kept), DistinctCount(kept)
    for block in blocks:
        counted.add(mixed_bits(np.array(block, dtype=np.uint64)))
    everything = [value for block in blocks for value in block]
    whole.add(mixed_bits(np.array(everything, dtype=np.uint64)))
    assert (counted.value, counted.is_exact) == (whole.value, whole.is_exact)
    if counted.is_exact:
        assert counted.value == len(set(everything))


def test_an_estimate_of_many_values_is_near() -> None:
    count = DistinctCount(kept=4_096)
    for start in range(0, 300_000, 50_000):
        count.add(mixed_bits(np.arange(start, start + 100_000, dtype=np.uint64)))
    assert not count.is_exact
    assert abs(count.value / 350_000 - 1) < 0.06


def test_too_many_categories_are_given_up_and_estimated() -> None:
    counter = CategoryCounter(most=1_000)
    for start in range(0, 20_000, 4_000):
        counter.add(pd.Series([f"id {number}" for number in range(start, start + 4_000)]), np.zeros(4_000, dtype=int))
    assert not counter.is_exact
    assert counter.distinct == 20_000
    assert len(set(hashed_texts(["a", "b", "ab"]).tolist())) == 3


def test_counts_of_classes_that_come_late_have_zeros_before() -> None:
    counter = CategoryCounter()
    counter.add(pd.Series(["a", None]), np.array([0, 0]))
    counter.add(pd.Series(["b", "a", None]), np.array([2, 1, 1]))
    counts = counter.counts(np.array([2, 0, 1]))
    assert (counts.keys, counts.table.tolist(), counts.missing.tolist()) == (
        ["a", "b"],
        [[0, 1, 1], [1, 0, 0]],
        [0, 1, 1],
    )
    assert CategoryCounts.of(pd.Series([1.0, 1, 2])).rows.tolist() == [2, 1]


def test_a_block_of_too_many_strings_and_classes_is_given_up_before_a_table_is_made_of_them() -> None:
    rows, classes = 20_000, 500
    strings = pd.Series([None, *(f"s{number}" for number in range(rows - 1))], dtype="str")
    codes = np.arange(rows) % classes
    at_once, bit_by_bit = CategoryCounter(most=1_000), CategoryCounter(most=1_000)
    tracemalloc.start()
    try:
        for _ in range(2):
            at_once.add(strings, codes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A table of all of them has 80 MB.
    assert peak < 20_000_000
    for start in range(0, rows, 300):
        bit_by_bit.add(strings[start : start + 300], codes[start : start + 300])
    for counter in (at_once, bit_by_bit):
        assert (counter.is_exact, counter.distinct, counter.distinct_is_exact) == (False, rows - 1, True)
    assert (at_once._missing.tolist(), bit_by_bit._missing.sum()) == ([2] + [0] * (classes - 1), 1)


def test_gaps_before_the_first_value_are_counted_by_class_and_take_no_memory() -> None:
    gatherer = ColumnGatherer()
    gaps, codes, rows = pd.Series([None] * 20_000, dtype="str"), np.arange(20_000) % 3, np.arange(20_000)
    tracemalloc.start()
    try:
        for _ in range(20):
            gatherer.add(gaps, codes.copy(), rows)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # One block's numbers of classes alone would take 160,000 bytes.
    assert held < 50_000
    gatherer.add(pd.Series(["a", None], dtype="str"), np.array([3, 0]), np.arange(2))
    assert gatherer.counter is not None
    counts = gatherer.counter.counts(np.arange(4))
    by_class = 20 * np.bincount(codes, minlength=4) + [1, 0, 0, 0]
    assert (counts.missing.tolist(), counts.table.tolist()) == (by_class.tolist(), [[0, 0, 0, 1]])
    assert gatherer.facts().missing == 20 * 20_000 + 1
