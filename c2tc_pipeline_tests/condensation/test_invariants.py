"""What holds for every condensed table, whatever the table: sizes, weights, membership, means, bounds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, Condenser, condense, evaluate
from c2tc_pipeline.condensation.clusters import SingletonWarning
from c2tc_pipeline_tests.tools.made_tables import labelled_frames, mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")

RATIOS = st.sampled_from([1e-6, 0.05, 0.2, 0.5, 1.0])


def check_invariants(small: CondensedTable, frame: pd.DataFrame, label: str, budget: int) -> None:
    labelled = frame[label].notna().to_numpy()
    rows = frame.loc[labelled]
    assert len(small) == len(small.X) == len(small.y) == len(small.weight) == len(small.original) == budget
    assert small.classes == sorted(rows[label].unique())
    assert small.class_rows == [int((rows[label] == value).sum()) for value in small.classes]
    assert int(small.allocation.counts.sum()) == budget
    assert (small.allocation.counts >= 1).all()
    assert (small.allocation.counts <= small.class_rows).all()
    assert small.y.value_counts().to_dict() == dict(zip(small.classes, small.allocation.counts, strict=True))

    assert small.membership["source_row"].tolist() == np.flatnonzero(labelled).tolist()
    group = small.membership["condensed_row"].to_numpy()
    assert np.bincount(group, minlength=budget).tolist() == small.weight.tolist()
    assert int(small.weight.sum()) == len(rows)
    assert (small.y.to_numpy()[group] == rows[label].to_numpy()).all()
    assert (small.original[label] == small.y).all()

    training = small.encoder.encode_training(rows, rows[label], row_ids=np.flatnonzero(labelled))
    encoded = pd.DataFrame(training, columns=small.X.columns)
    means = encoded.astype(np.float64).groupby(group).mean()
    shown, names = means.to_numpy().copy(), small.X.columns
    for mark in small.encoder.missing_marks():
        present = rows[names[mark.column]].notna().groupby(group).sum().to_numpy()
        # Numbers of fewer members than the minimum are stored as missing.
        few = (present > 0) & (present < small.summary["settings"]["min_rows_per_condensed_row"])
        shown[few, mark.column], shown[few, mark.mark] = mark.height, 1
    np.testing.assert_allclose(small.X.to_numpy(), shown, atol=2e-6)
    offsets = encoded.to_numpy(np.float64) - means.to_numpy()[group]
    losses = pd.Series((offsets**2).sum(axis=1)).groupby(rows[label].to_numpy()).sum()
    sizes = np.array(small.class_rows, dtype=np.float64)
    measured = float((losses.loc[small.classes].to_numpy() / sizes**small.allocation.gamma).sum())
    assert small.allocation.objective == pytest.approx(measured, rel=1e-4, abs=1e-9)
    assert small.summary["singletons"] == int((small.weight == 1).sum())


@settings(max_examples=20)
@given(frame=labelled_frames(), ratio=RATIOS, seed=st.integers(0, 5))
def test_any_table(frame: pd.DataFrame, ratio: float, seed: int) -> None:
    labels = frame["outcome"].dropna()
    budget = max(labels.nunique(), round(ratio * len(labels)))
    small = condense(frame, "outcome", ratio, random_state=seed)
    check_invariants(small, frame, "outcome", budget)
    if ratio == 1:
        assert (small.weight == 1).all()
        assert small.allocation.objective == 0


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(6, 120),
    classes=st.integers(2, 5),
    columns=st.integers(1, 4),
    ratio=RATIOS,
    allocation=st.sampled_from(["hfils", "optimal", "ratio", "fipc"]),
    gamma=st.floats(0, 1),
)
def test_the_bound_never_exceeds_the_objective(
    seed: int, rows: int, classes: int, columns: int, ratio: float, allocation: str, gamma: float
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).round(rng.integers(0, 4)).astype(rng.choice(["float32", "float64"]))
    y = np.append(np.arange(classes), rng.integers(0, classes, rows - classes))
    condenser = Condenser(ratio, allocation=allocation, gamma=gamma)
    condenser.fit_resample(X, y)
    allocated = condenser.allocation_
    assert allocated.bound is not None
    assert allocated.gap is not None
    assert 0 <= allocated.bound <= allocated.objective
    assert 0 <= allocated.gap <= 1
    assert allocated.gamma == gamma


@pytest.mark.parametrize("rows_of_rare", [1, 2])
@pytest.mark.parametrize("ratio", [1e-9, 0.1, 1.0])
def test_a_class_of_one_or_two_rows(rows_of_rare: int, ratio: float) -> None:
    frame = mixed_table(60, classes=2).assign(outcome=["rare"] * rows_of_rare + ["usual"] * (60 - rows_of_rare))
    small = condense(frame, "outcome", ratio)
    check_invariants(small, frame, "outcome", max(2, round(ratio * 60)))


@pytest.mark.parametrize("equal", ["one class", "both classes"])
@pytest.mark.parametrize("rows", [2, 9, 30])
def test_all_rows_equal(equal: str, rows: int) -> None:
    frame = pd.DataFrame({"x": [0.5] * 20 + [1.5] * 10, "y": ["a"] * 20 + ["b"] * 10})
    if equal == "one class":
        frame.loc[:19, "x"] = np.linspace(2, 9, 20)
    small = condense(frame, "y", rows=rows)
    check_invariants(small, frame, "y", rows)
    if equal == "both classes":
        assert small.allocation.objective == 0
        assert small.original["x"].tolist() == [0.5 if label == "a" else 1.5 for label in small.y]


def test_ratio_one_keeps_every_row() -> None:
    frame = mixed_table(80)
    small = condense(frame, "outcome", 1.0)
    repeated = small.original.iloc[small.membership["condensed_row"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(repeated, frame)


def test_singletons_are_counted_in_a_warning() -> None:
    frame = mixed_table(60)
    with pytest.warns(SingletonWarning, match=" of 40 ") as caught:
        small = condense(frame, "outcome", rows=40)
    singletons = int((small.weight == 1).sum())
    assert singletons > 0
    assert [str(warning.message).startswith(f"{singletons} of 40") for warning in caught] == [True]
    assert caught[0].filename == __file__
    assert [notice.kind for notice in small.notices] == ["singletons"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert condense(frame, "outcome", rows=3).summary["singletons"] == 0


def learnt(table: pd.DataFrame, test: pd.DataFrame, seed: int = 0) -> float:
    """Return the AUC of a model trained on rows drawn from a condensed table."""
    small = condense(table, "outcome", rows=24, random_state=seed)
    return float(evaluate(small, test, models=["logistic"], seeds=[seed])["auc"].iloc[0])


def test_names_of_classes_and_the_order_of_columns_and_rows_hardly_change_scores() -> None:
    table = mixed_table(2_400)
    known = table["age"].fillna(40) + 9 * (table["job"] == table["job"].iloc[0])
    table["outcome"] = pd.qcut(known + np.random.default_rng(0).normal(0, 5, 2_400), 3, labels=["a", "b", "c"]).astype(
        str
    )
    train, test = table[:1_600], table[1_600:]
    names = {"a": "z", "b": "m", "c": "a"}
    renamed = [each.assign(outcome=each["outcome"].map(names)) for each in (train, test)]
    changed = [
        learnt(renamed[0], renamed[1]),
        learnt(train[train.columns[::-1]], test),
        learnt(train.sample(frac=1, random_state=0), test),
        learnt(train, test, seed=1),
    ]
    # Of a model that learns something.
    assert learnt(train, test) > 0.9
    np.testing.assert_allclose(changed, learnt(train, test), atol=0.01)
