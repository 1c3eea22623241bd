"""Statistics gathered block by block do not depend on the division into blocks."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.category_counts import (
    FOLDS,
    CategoryCounter,
    CategoryCounts,
    DistinctCount,
    folds_of,
    hashed_texts,
    mixed_bits,
    strata_of,
)
from c2tc_pipeline.tables.column_facts import ColumnGatherer
from c2tc_pipeline.tables.kinds import category_key
from c2tc_pipeline.tables.row_sample import RowPicker, RowSample, sampled_numbers
from c2tc_pipeline.tables.table import Table, learn_table

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
    """Cut a table, and give integers without gaps the type that Arrow gives them in such a block."""
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


class CutBlocks(Blocks):
    """Blocks with given edges."""

    def __init__(self, parts: list[pd.DataFrame]) -> None:
        super().__init__(list(parts[0].columns))
        self.parts = parts

    def frames(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        for part in self.parts:
            yield part if columns is None else part[list(columns)]


def facts_of(table: Table) -> dict[str, Any]:
    found = table.statistics
    return {
        "roles": found.roles,
        "kinds": found.kinds,
        "classes": (table.classes.tolist(), table.class_rows.tolist(), table.label_dtype),
        "codes": table.codes.tolist(),
        "missing": table.missing,
        "notices": table.notices,
        "counts": {name: (counts.keys, counts.cells.toarray().tolist()) for name, counts in found.counts.items()},
        "ranges": {name: vars(numbers) for name, numbers in found.ranges.items()},
        "sample": found.sample.astype(object).where(found.sample.notna(), None).to_dict("list"),
        "sample rows": (found.sample_codes.tolist(), found.sample_row_ids.tolist()),
    }


# Integers, then gaps only, then integers with gaps.
SIZES = {"size": [1, 2, None, None, 3, None], "y": ["no", "yes"] * 3}
OTHERS = {"amount": 0.5, "type_code": 1, "flag": [True, False] * 3, "job": "cook", "empty": None, "same": "x"}
CHANGING = pd.DataFrame({**SIZES, **OTHERS}).astype(DTYPES)


@given(tables, st.lists(st.integers(0, 60), max_size=6))
@example(CHANGING, [2, 4])
def test_any_division_into_blocks_gives_the_same_statistics(frame: pd.DataFrame, edges: list[int]) -> None:
    whole = outcome(lambda: facts_of(learn_table(Blocks.of_frame(frame), label="y")))
    parts = outcome(lambda: facts_of(learn_table(CutBlocks(in_blocks(frame, edges)), label="y")))
    assert whole == parts
    if isinstance(whole, str):
        return
    labelled = frame[frame["y"].notna()].reset_index(drop=True)
    source_rows = np.flatnonzero(frame["y"].notna())
    strata = (pd.factorize(labelled["y"], sort=True)[0] * FOLDS + folds_of(source_rows)).tolist()
    for name, (keys, cells) in whole["counts"].items():
        rows = np.zeros((len(keys) + 1, len(cells[0])), dtype=int)
        spelled = [None if pd.isna(value) or value == "" else category_key(value) for value in labelled[name]]
        for value, stratum in zip(spelled, strata, strict=True):
            rows[len(keys) if value is None else keys.index(value), stratum] += 1
        assert rows.tolist() == cells
    for name, limits in whole["ranges"].items():
        assert limits["missing"] == labelled[name].isna().sum()
        assert limits["high"] == labelled[name].max()


@pytest.mark.parametrize("blocks", [[], [3], [0, 5, 5]])
def test_labelled_rows_come_with_their_class_and_their_place_in_the_source(blocks: list[int]) -> None:
    frame = pd.DataFrame({"x": range(6), "y": ["b", None, "a", "b", None, "c"], "size": 1})
    found = list(learn_table(CutBlocks(in_blocks(frame, blocks)), label="y").rows())
    assert np.concatenate([block.row_ids for block in found]).tolist() == [0, 2, 3, 5]
    assert np.concatenate([block.codes for block in found]).tolist() == [1, 0, 1, 2]


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
        if picker.needs_pruning():
            picker.prune()
    assert held < 3_000
    assert len(picker.numbers()) == 100


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
    counter.add(pd.Series(["a", None]), strata_of(np.array([0, 0]), np.array([0, 1])))
    counter.add(pd.Series(["b", "a", None]), strata_of(np.array([2, 1, 1]), np.array([2, 3, 4])))
    counts = counter.counts(3)
    assert (counts.keys, counts.by_class().toarray().tolist(), counts.missing) == (
        ["a", "b"],
        [[1, 1, 0], [0, 0, 1], [1, 1, 0]],
        2,
    )
    assert sum(counts.of_fold(fold).toarray() for fold in range(FOLDS)).tolist() == counts.by_class().toarray().tolist()
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


def test_gaps_before_the_first_value_are_counted_by_class_and_take_no_memory() -> None:
    gatherer = ColumnGatherer()
    gaps, codes, rows = pd.Series([None] * 20_000, dtype="str"), np.arange(20_000) % (3 * FOLDS), np.arange(20_000)
    tracemalloc.start()
    try:
        for _ in range(20):
            gatherer.add(gaps, codes.copy(), rows)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # One block's numbers of classes alone would take 160,000 bytes.
    assert held < 50_000
    gatherer.add(pd.Series(["a", None], dtype="str"), np.array([3 * FOLDS, 0]), np.arange(2))
    assert gatherer.counter is not None
    counts = gatherer.counter.counts(4)
    missing = 20 * np.bincount(codes, minlength=4 * FOLDS)
    missing[0] += 1
    assert counts.cells.toarray()[1].tolist() == missing.tolist()
    assert counts.by_class().toarray()[0].tolist() == [0, 0, 0, 1]
    assert gatherer.facts().missing == 20 * 20_000 + 1
