"""How much condensed rows count in training."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline import Condenser, condense
from c2tc_pipeline.condensation.table import PULL, training_weights
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 3)), min_size=1, max_size=40))
def test_rows_of_a_class_count_by_their_members(rows: list[tuple[int, int]]) -> None:
    members, classes = np.array(rows).T
    weights = training_weights(members, classes)
    np.testing.assert_allclose(weights.mean(), 1)
    for value in np.unique(classes):
        own = classes == value
        np.testing.assert_allclose(weights[own] / weights[own].mean(), members[own] / members[own].mean())


def test_classes_weigh_between_what_they_were_given_and_what_they_have() -> None:
    """A class of a tenth of the rows that got half of the condensed ones weighs less than half, more than a tenth."""
    weights = training_weights(np.array([45, 45, 5, 5]), np.array(["a", "a", "b", "b"]))
    share = weights[2:].sum() / weights.sum()
    np.testing.assert_allclose(share, 0.5 * (1 - PULL) + 0.1 * PULL)
    assert 0.1 < share < 0.5


def test_the_table_and_the_condenser_agree() -> None:
    small = condense(mixed_table(), "outcome", rows=15)
    expected = training_weights(small.weight.to_numpy(), small.y.to_numpy())
    np.testing.assert_allclose(small.training_weight, expected)
    X, y = np.random.default_rng(0).random((100, 2)), np.repeat([0, 1], [80, 20])
    condenser = Condenser(rows=10).fit(X, y)
    _, labels = condenser.fit_resample(X, y)
    np.testing.assert_allclose(condenser.training_weights_, training_weights(condenser.weights_, labels))
