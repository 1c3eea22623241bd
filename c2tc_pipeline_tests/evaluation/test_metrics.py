"""Metrics against scikit-learn's, and the random sample against its promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from c2tc_pipeline.evaluation.trial import random_rows, score_predictions

pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs)
def test_scores_are_scikit_learns_over_the_classes_of_the_test_rows(rows: list[tuple[int, int]]) -> None:
    truth, predicted = np.array(rows).T
    scores = score_predictions(truth, predicted, 4)
    present = np.unique(truth)
    assert scores.accuracy == pytest.approx(accuracy_score(truth, predicted))
    assert scores.macro_f1 == pytest.approx(
        f1_score(truth, predicted, labels=present, average="macro", zero_division=0)
    )
    by_class = f1_score(truth, predicted, labels=range(4), average=None, zero_division=0)
    assert len(scores.class_f1) == 4
    for number, (ours, theirs) in enumerate(zip(scores.class_f1, by_class, strict=True)):
        assert ours == (pytest.approx(theirs) if number in present else None)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=50), st.data())
def test_a_random_sample_has_every_class_and_no_row_twice(drawn: list[int], data: st.DataObject) -> None:
    codes = np.array(drawn)
    rows = data.draw(st.integers(len(set(drawn)), len(drawn)))
    sample = random_rows(codes, rows, seed=data.draw(st.integers(0, 9)))
    assert len(sample) == len(set(sample.tolist())) == rows
    assert set(codes[sample]) == set(drawn)


def test_a_random_sample_is_uniform_when_no_class_is_rare() -> None:
    codes = np.arange(20) % 2
    counts = sum(np.bincount(random_rows(codes, 10, seed=seed), minlength=20) for seed in range(2000))
    # Each row is drawn in half of the samples; five standard deviations are 112.
    assert np.abs(np.asarray(counts) - 1000).max() < 112
    kept_shares = {int(codes[random_rows(codes, 10, seed=seed)].sum()) for seed in range(50)}
    assert len(kept_shares) > 3, "a stratified sample would have the same share each time"


def test_a_class_that_was_missed_takes_one_place() -> None:
    codes = np.array([0] * 500 + [1] * 500 + [2])
    for seed in range(20):
        counts = np.bincount(codes[random_rows(codes, 10, seed=seed)])
        assert counts[2] == 1
        assert counts.sum() == 10
