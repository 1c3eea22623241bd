"""Random and stratified samples: chances that are what they should be."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.bench.rivals.random_rows import RandomRows
from c2tc_pipeline.bench.rivals.stratified import StratifiedRows

EDGES = np.array([0, 12, 20])
X = np.arange(20.0)[:, None]


def test_every_row_is_as_likely_in_a_random_sample() -> None:
    drawn = np.zeros(20)
    shares = set()
    for seed in range(600):
        made = RandomRows(random_state=seed).condense(X, EDGES, 10)
        drawn[made.chosen] += 1
        shares.add(int(made.codes.sum()))
    # Half of the samples have a row: five standard deviations are 61.
    assert np.abs(drawn - 300).max() < 61
    assert len(shares) > 3, "the classes' counts vary, unlike those of a stratified sample"


def test_every_row_of_a_class_is_as_likely_in_a_stratified_sample() -> None:
    drawn = np.zeros(20)
    for seed in range(600):
        made = StratifiedRows(random_state=seed).condense(X, EDGES, 10)
        drawn[made.chosen] += 1
        assert np.bincount(made.codes).tolist() == [6, 4]
    assert np.abs(drawn - 300).max() < 61


def test_classes_are_drawn_independently() -> None:
    edges = np.array([0, 10, 20])
    made = [StratifiedRows(random_state=seed).condense(X, edges, 2).chosen for seed in range(40)]
    pairs = [(int(chosen[0]), int(chosen[1]) - 10) for chosen in made if chosen is not None]
    assert len(pairs) == 40
    assert any(first != second for first, second in pairs), "one draw served both classes"
