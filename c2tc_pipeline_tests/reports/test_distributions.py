"""Distributions of the source are those of its rows, though only the condensed table is at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import condense
from c2tc_pipeline.reports.distributions import MAX_COLUMNS, column_distributions

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


def people(rows: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "gain": np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 40_000, rows)),
            "height": rng.normal(170, 10, rows),
            "owner": rng.random(rows) < 0.3,
            "score": np.where(rng.random(rows) < 0.2, np.nan, rng.integers(0, 3, rows)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "town": rng.choice([*"abcdefghijkl"], rows, p=np.arange(12, 0, -1) / 78),
        }
    )
    return frame.assign(retired=np.where(age + rng.normal(0, 8, rows) > 66, "yes", "no"))


@pytest.fixture(scope="module")
def small() -> Any:
    return condense(people(), label="retired", rows=40, roles={"owner": "numeric"}, random_state=0)


def test_numbers_are_those_of_the_source_in_every_bin_and_drawn_rows_resemble_them(small: Any) -> None:
    source = people()
    found = {each.column: each for each in column_distributions(small) if each.edges is not None}
    assert set(found) == {"age", "gain", "height", "owner", "score", "since"}
    for name, each in found.items():
        assert each.edges is not None
        values = source[name].dropna()
        if each.is_moment:
            values = (values - pd.Timestamp(0)) / pd.Timedelta("1s")
        inside = np.clip(values.astype(float), each.edges[0], np.nextafter(each.edges[-1], -np.inf))
        expected = np.histogram(inside, each.edges)[0] / len(values)
        # The encoder's heights are rounded, which may move a row to a neighbouring value.
        np.testing.assert_allclose(each.source, expected, atol=2 / len(values))
        assert np.abs(np.cumsum(each.drawn) - np.cumsum(each.source)).max() < 0.15
        assert each.missing[0] == pytest.approx(source[name].isna().mean())
    assert found["score"].missing[1] == pytest.approx(0.2, abs=0.05)


def test_categories_are_the_most_frequent_and_all_others(small: Any) -> None:
    (found,) = [each for each in column_distributions(small) if each.categories]
    shares = people()["town"].value_counts(normalize=True)
    assert found.categories[:-1] == tuple(shares.index[: len(found.categories) - 1])
    np.testing.assert_allclose(found.source[:-1], shares[: len(found.source) - 1], atol=1e-6)
    assert found.source.sum() == pytest.approx(1)
    assert found.drawn.sum() == pytest.approx(1)


def test_the_most_important_columns_come_first_and_numbers_scaled_by_limits_are_left_out(small: Any) -> None:
    importance = {name: place / 7 for place, name in enumerate(people().columns[:-1], start=1)}
    small.summary["column_weights"] = {"importance": importance, "power": 1.0}
    assert [each.column for each in column_distributions(small)] == list(importance)[::-1]
    wide = people().assign(**{f"noise_{place}": np.arange(800.0) ** place for place in range(1, 12)})
    assert len(column_distributions(condense(wide, label="retired", rows=20))) == MAX_COLUMNS
    plain = condense(people(), label="retired", rows=20, numeric="minmax", roles={"owner": "numeric"})
    assert [each.column for each in column_distributions(plain)] == ["town"]
