"""Rows with a one-sided feature: nothing else may change."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench.experiments.imbalance import imbalanced_rows
from c2tc_pipeline.common.errors import InputError


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "x": rng.random(rows), "y": rng.integers(0, 3, rows)})


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(20, 300), level=st.sampled_from([1, 10, 100, 1000]), seed=st.integers(0, 5))
def test_rows_and_classes_stay_and_the_feature_obeys(rows: int, level: int, seed: int) -> None:
    before = table(rows, seed)
    after = imbalanced_rows(before, "y", "sex", level, seed=seed)
    pd.testing.assert_series_equal(after["y"].value_counts().sort_index(), before["y"].value_counts().sort_index())
    for value, part in after.groupby("y"):
        kinds = before.loc[before["y"] == value, "sex"].unique()
        if len(kinds) == 2:
            assert abs((part["sex"] == "f").sum() - len(part) * level / (level + 1)) <= 1
    # Rows are real ones, each as often as the others of its kind, give or take once.
    assert set(after["x"]) <= set(before["x"])
    for _, kind in after.groupby(["y", "sex"]):
        repeats = kind["x"].value_counts()
        assert repeats.max() - repeats.min() <= 1


def test_values_are_halved_in_order_and_the_seed_decides() -> None:
    days = pd.DataFrame({"day": np.tile(np.arange(1, 8), 40), "y": [0, 1] * 140})
    drawn = imbalanced_rows(days, "y", "day", 9, seed=0)
    assert (drawn["day"] <= 4).mean() == pytest.approx(0.9)
    again = imbalanced_rows(days, "y", "day", 9, seed=0)
    pd.testing.assert_frame_equal(drawn, again)
    assert not drawn.index.equals(imbalanced_rows(days, "y", "day", 9, seed=1).index)


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(InputError, match="no column 'age'"):
        imbalanced_rows(table(20, 0), "y", "age", 10, seed=0)
