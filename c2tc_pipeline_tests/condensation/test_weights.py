"""How much condensed rows count in training."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.condensation.weights import training_weights
from c2tc_pipeline_tests.made_tables import mixed_table


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 3)), min_size=1, max_size=40))
def test_mean_one_in_every_class_and_in_proportion_within(rows: list[tuple[int, int]]) -> None:
    members, classes = np.array(rows).T
    weights = training_weights(members, classes)
    for value in np.unique(classes):
        own = classes == value
        np.testing.assert_allclose(weights[own].mean(), 1)
        np.testing.assert_allclose(weights[own] * members[own].mean(), members[own])


def test_the_table_and_the_condenser_agree() -> None:
    small = condense(mixed_table(), "outcome", rows=15)
    expected = training_weights(small.weight.to_numpy(), small.y.to_numpy())
    np.testing.assert_allclose(small.training_weight, expected)
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat([0, 1], [80, 20])
    condenser = Condenser(rows=10).fit(X, y)
    _, labels = condenser.fit_resample(X, y)
    np.testing.assert_allclose(condenser.training_weights_, training_weights(condenser.weights_, labels))
