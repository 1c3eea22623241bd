"""A least number of source rows behind every condensed row: kept, or refused in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline.condensation.plan import check_room
from c2tc_pipeline_tests.condensation.test_invariants import check_invariants
from c2tc_pipeline_tests.tools.made_tables import labelled_frames, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


@settings(max_examples=10)
@given(frame=labelled_frames(), ratio=st.sampled_from([0.05, 0.2, 0.5]), least=st.integers(1, 6))
def test_every_row_stands_for_enough_or_none_is_made(frame: pd.DataFrame, ratio: float, least: int) -> None:
    sizes = frame["outcome"].value_counts()
    budget = max(len(sizes), round(ratio * int(sizes.sum())))
    possible = sizes.min() >= least and budget <= int((sizes // least).sum())
    if not possible:
        with pytest.raises(InputError, match=f"min_rows_per_condensed_row={least}"):
            condense(frame, "outcome", ratio, min_rows_per_condensed_row=least)
        return
    small = condense(frame, "outcome", ratio, min_rows_per_condensed_row=least)
    assert small.weight.min() >= least
    assert (small.allocation.counts * least <= small.class_rows).all()
    check_invariants(small, frame, "outcome", budget)


@pytest.mark.parametrize(
    "settings",
    [
        {"allocation": "optimal"},
        {"allocation": "fipc"},
        {"allocation": "ratio", "gamma": 1.0},
        {"gamma": "auto"},
    ],
    ids=str,
)
def test_with_every_way_to_share_out(settings: dict[str, Any]) -> None:
    frame = mixed_table(200, classes=3)
    X, y = frame[["amount", "age", "day"]].to_numpy(float), frame["outcome"].to_numpy()
    # As many rows as there is room for, so that every class is at its limit.
    room = int((frame["outcome"].value_counts() // 8).sum())
    condenser = Condenser(rows=room, min_rows_per_condensed_row=8, **settings)
    condenser.fit_resample(X, y)
    assert condenser.weights_.min() >= 8
    assert len(condenser.weights_) == room


def test_numbers_of_too_few_members_are_missing() -> None:
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 600)
    salary = pd.Series(np.round(rng.lognormal(10, 1, 600), 2), name="salary").where(rng.random(600) < 0.4)
    table = pd.DataFrame({"age": rng.normal(40 + 9 * label, 9), "salary": salary, "outcome": label.astype(str)})
    small = condense(table, "outcome", rows=120, min_rows_per_condensed_row=3)
    present = small.membership.join(salary, on="source_row").groupby("condensed_row")["salary"].count()
    few = present.to_numpy() < 3
    assert 0 < (few & (present > 0)).sum() < len(small)
    assert small.original.loc[few, "salary"].isna().all()
    (mark,) = small.encoder.missing_marks()
    X, deviation = small.X.to_numpy(), small.spread.deviation
    # Of these, neither mean nor deviation says anything.
    assert (X[few, mark.mark] == 1).all()
    assert (X[few, mark.column] == np.float32(mark.height)).all()
    assert (deviation[few][:, [mark.column, mark.mark]] == 0).all()
    left = forget_rows(small, table, np.arange(40)).table
    present = left.membership.join(salary, on="source_row").groupby("condensed_row")["salary"].count()
    few = present.to_numpy() < 3
    assert left.original.loc[few, "salary"].isna().all()
    assert (left.X.to_numpy()[few, mark.mark] == 1).all()


def test_ends_of_gaps_are_values_of_enough_rows() -> None:
    amounts = np.repeat([0.0, 1.0, 2.0, 9.0], [40, 40, 2, 38])
    frame = pd.DataFrame({"amount": amounts, "y": np.resize(["a", "b"], 120)})
    options: dict[str, Any] = {"rows": 6, "numeric": "minmax", "roles": {"amount": "numeric"}}
    for least, ends in ((1, [[0, 1], [1, 2], [2, 9]]), (3, [[0, 1]])):
        [gaps] = condense(frame, "y", min_rows_per_condensed_row=least, **options).spread.gaps
        np.testing.assert_allclose(9 * gaps, ends, atol=1e-5)


def test_one_is_no_demand() -> None:
    frame = mixed_table(120)
    plain, least = condense(frame, "outcome", 0.2), condense(frame, "outcome", 0.2, min_rows_per_condensed_row=1)
    pd.testing.assert_frame_equal(plain.X, least.X)
    assert least.summary["settings"]["min_rows_per_condensed_row"] == 1


def test_a_small_class_is_named() -> None:
    frame = mixed_table(60, classes=2).assign(outcome=["rare"] * 3 + ["usual"] * 57)
    with pytest.raises(InputError, match="'rare' has 3 rows"):
        condense(frame, "outcome", 0.05, min_rows_per_condensed_row=4)
    assert condense(frame, "outcome", 0.05, min_rows_per_condensed_row=3).weight.min() >= 3


@pytest.mark.parametrize(("sizes", "more"), [([9, 1, 2], 1), ([1, 1, 9, 1], 2)])
def test_several_small_classes_are_counted(sizes: list[int], more: int) -> None:
    with pytest.raises(InputError, match=f"=4, and {more} more"):
        check_room(sizes, 4, 4)


def test_a_budget_without_room_is_refused() -> None:
    frame = mixed_table(60, classes=2).assign(outcome=["a"] * 29 + ["b"] * 31)
    with pytest.raises(InputError, match=r"11 .* 12 "):
        condense(frame, "outcome", rows=12, min_rows_per_condensed_row=5)
    assert condense(frame, "outcome", rows=11, min_rows_per_condensed_row=5).weight.min() >= 5


UNUSABLE = [(0, "centroid"), (-1, "centroid"), (2.5, "centroid"), (True, "centroid"), ("3", "centroid"), (2, "medoid")]


@pytest.mark.parametrize(("least", "representative"), UNUSABLE)
def test_a_minimum_that_can_not_be_used_is_refused(least: Any, representative: str) -> None:
    with pytest.raises(InputError, match="min_rows_per_condensed_row"):
        condense(mixed_table(60), "outcome", 0.1, representative=representative, min_rows_per_condensed_row=least)


def test_class_numbers_keep_their_spelling() -> None:
    X, y = np.random.default_rng(0).random((20, 2)), np.array([7] * 2 + [8] * 18)
    with pytest.raises(InputError, match="Class 7 has 2 rows"):
        Condenser(0.1, min_rows_per_condensed_row=3).fit_resample(X, y)
