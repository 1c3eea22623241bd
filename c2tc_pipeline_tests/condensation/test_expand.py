"""Rows drawn from condensed rows reproduce what is stored of their members, and stay within the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, Condenser, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.expand import draws_by_row
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline.condensation.members import Votes
from c2tc_pipeline.condensation.spread import CategoryShares


def mixed_table(rows: int = 1_200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    label = rng.choice(3, rows, p=[0.6, 0.3, 0.1])
    income = rng.lognormal(label, 0.6)
    gain = np.where(rng.random(rows) < 0.8, 0.0, rng.exponential(1_000, rows))
    age = (rng.integers(18, 60, rows) + 8 * label).astype(float)
    age[rng.random(rows) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "income": income,
            "gain": gain,
            "age": age,
            "visits": rng.poisson(4 + label),
            "job": rng.choice(["nurse", "cook", "head cook", "pilot"], rows),
            "zone": rng.integers(1, 40, rows),
            "insured": rng.random(rows) < 0.3 + 0.2 * label,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**7, rows), unit="s"),
            "outcome": np.array(["no", "maybe", "yes"])[label],
        }
    )


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return mixed_table()


@pytest.fixture(scope="module")
def small(table: pd.DataFrame) -> CondensedTable:
    return condense(table, label="outcome", rows=40, roles={"zone": "code"}, column_weights="none")


def test_drawn_rows_are_rows_of_the_table(table: pd.DataFrame, small: CondensedTable) -> None:
    X, y, weight = small.expand(3_000)
    features = table.drop(columns="outcome")
    assert X.columns.tolist() == features.columns.tolist()
    assert X.dtypes.to_dict() == features.dtypes.to_dict()
    for name in ("income", "gain", "age", "visits", "since"):
        assert X[name].min() >= table[name].min()
        assert X[name].max() <= table[name].max()
    for name in ("job", "zone", "insured"):
        assert set(X[name]) <= set(table[name])
    assert set(y) == set(table["outcome"])
    assert weight.mean() == pytest.approx(1)
    # Zeros stay zeros, and whole values of a float column stay whole.
    assert (X["gain"] == 0).mean() == pytest.approx((table["gain"] == 0).mean(), abs=0.05)
    assert (X["age"].dropna() % 1 == 0).all()


def test_drawn_rows_have_the_members_means_deviations_and_shares(table: pd.DataFrame, small: CondensedTable) -> None:
    X, y, weight = small.expand(20_000, class_mix="source")
    drawn, source = X.assign(outcome=y), table
    for name in ("income", "visits", "age"):
        by_class = drawn.groupby("outcome")[name].mean()
        spread = source.groupby("outcome")[name].std()
        gaps = (by_class - source.groupby("outcome")[name].mean()).abs() / spread
        assert gaps.max() < 0.15, name
        middle = [each.groupby("outcome")[name].quantile(0.8) for each in (drawn, source)]
        assert ((middle[0] - middle[1]).abs() / spread).max() < 0.2, name
    for name in ("job", "insured", "zone"):
        found = X[name].value_counts(normalize=True)
        wanted = source[name].value_counts(normalize=True)
        assert (found - wanted).abs().max() < 0.02, name
    assert X["age"].isna().mean() == pytest.approx(source["age"].isna().mean(), abs=0.02)
    totals = weight.groupby(y).sum() / weight.sum()
    np.testing.assert_allclose(totals, source["outcome"].value_counts(normalize=True)[totals.index], atol=1e-6)


def test_deviations_and_correlations_are_those_of_the_members() -> None:
    """Against NumPy, on clusters that do not touch the limits of the columns."""
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(4, 4))
    y = np.repeat([0, 1], 2_000)
    X = rng.normal(size=(4_000, 4)) @ mixing + y[:, None]
    condenser = Condenser(rows=8, column_weights="none").fit(X, y)
    members, spread = condenser.membership_, condenser.spread_
    for row in range(8):
        np.testing.assert_allclose(spread.deviation[row], X[members == row].std(axis=0), rtol=1e-4)
    means = np.stack([X[members == row].mean(axis=0) for row in range(8)])
    residuals = (X - means[members]) / spread.deviation[members]
    for code in (0, 1):
        own = np.corrcoef(residuals[y == code].T)
        np.testing.assert_allclose(spread.correlation[code], own, atol=0.02)
    drawn, labels, _ = condenser.expand(20_000, class_mix="source")
    np.testing.assert_allclose(np.corrcoef(drawn[labels == 1].T), np.corrcoef(X[y == 1].T), atol=0.06)
    tolerance = 1e-6 * (X.max(axis=0) - X.min(axis=0))
    assert (drawn.min(axis=0) >= X.min(axis=0) - tolerance).all()
    assert (drawn.max(axis=0) <= X.max(axis=0) + tolerance).all()


@pytest.mark.parametrize("space", ["original", "encoded"])
def test_condensed_rows_of_one_source_row_are_drawn_as_they_are(space: str) -> None:
    table = mixed_table(60)
    small = condense(table, label="outcome", ratio=1.0, roles={"zone": "code"})
    assert not small.spread.deviation.any()
    X, y, _ = small.expand(500, space=space)
    known = pd.concat([small.original.drop(columns="outcome") if space == "original" else small.X, small.y], axis=1)
    drawn = pd.concat([X, y], axis=1)
    assert len(drawn.drop_duplicates()) == len(known.drop_duplicates())
    assert len(pd.concat([known, drawn]).drop_duplicates()) == len(known.drop_duplicates())


def test_columns_of_nothing_but_one_value_or_missing_values_in_a_cluster() -> None:
    x = np.arange(200.0)
    # Missing in a whole class, so in all members of its condensed rows; the other class has one value.
    given = np.where(x < 100, np.nan, 7.0)
    given[150] = 9.0
    table = pd.DataFrame({"x": x, "given": given, "same": 1, "y": np.where(x < 100, "a", "b")})
    X, y, _ = condense(table, label="y", rows=6).expand(400)
    assert X.loc[y == "a", "given"].isna().all()
    assert set(X.loc[y == "b", "given"]) <= {7.0, 9.0}
    assert (X["same"] == 1).all()


def test_drawn_rows_miss_as_many_numbers_as_the_source() -> None:
    rng = np.random.default_rng(0)
    # Values at the median, where missing ones are encoded, too: clusters without deviation have both.
    gain = np.where(rng.random(3_000) < 0.95, 0.0, rng.exponential(5, 3_000))
    gain[rng.random(3_000) < 0.6] = np.nan
    age = rng.uniform(18, 90, 3_000)
    table = pd.DataFrame({"age": age, "gain": gain, "outcome": np.where(np.sin(age / 4) > 0, "a", "b")})
    X, _, weight = condense(table, "outcome", rows=150).expand(9_000, class_mix="source")
    assert np.average(X["gain"].isna(), weights=weight) == pytest.approx(np.isnan(gain).mean(), abs=0.02)


def test_half_as_many_classes_as_rows() -> None:
    table = pd.DataFrame(
        {"x": np.arange(1_000) % 89, "z": np.arange(1_000) % 7, "y": [f"c{i // 2}" for i in range(1_000)]}
    )
    X, y, _ = condense(table, label="y", ratio=1.0).expand(4_000)
    known = set(table[["x", "z", "y"]].itertuples(index=False, name=None))
    assert set(X.assign(y=y)[["x", "z", "y"]].itertuples(index=False, name=None)) <= known


@given(
    st.lists(st.integers(0, 4), min_size=1, max_size=30),
    st.integers(1, 300),
    st.integers(0, 2**32 - 1),
)
def test_any_number_of_rows_is_drawn(codes: list[int], rows: int, seed: int) -> None:
    classes = np.sort(codes)
    weights = np.random.default_rng(seed).exponential(size=len(classes)) + 1e-3
    counts, worth = draws_by_row(weights, classes, rows)
    assert counts.sum() == rows
    assert np.repeat(worth, counts).mean() == pytest.approx(1)
    if rows >= len(classes):
        assert counts.min() >= 1
        np.testing.assert_allclose(counts * worth, rows * weights / weights.sum())
    elif rows >= len(set(codes)):
        assert set(classes[counts > 0].tolist()) == set(codes)


def test_seeds_and_class_mixes(table: pd.DataFrame, small: CondensedTable) -> None:
    first, again, other = (small.expand(300, random_state=seed)[0] for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)
    shares = {
        mix: weight.groupby(y).sum() / weight.sum()
        for mix in ("source", "condensed")
        for _, y, weight in [small.expand(900, class_mix=mix)]
    }
    own = small.training_weight.groupby(small.y).sum() / small.training_weight.sum()
    np.testing.assert_allclose(shares["condensed"], own[shares["condensed"].index])
    assert shares["source"]["yes"] < shares["condensed"]["yes"]


def test_the_spread_is_saved_and_read(small: CondensedTable, tmp_path: Path) -> None:
    small.save(tmp_path / "small")
    again = CondensedTable.load(tmp_path / "small")
    pd.testing.assert_frame_equal(again.expand(200)[0], small.expand(200)[0])
    pd.testing.assert_frame_equal(again.expand(200, space="encoded")[0], small.expand(200, space="encoded")[0])


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rows": 0}, "rows"),
        ({"rows": 2.5}, "rows"),
        ({"space": "both"}, "space"),
        ({"class_mix": "even"}, "class_mix"),
    ],
)
def test_settings_that_can_not_be_drawn_with(small: CondensedTable, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        small.expand(**wrong)


def test_medoids_are_expanded_around_the_means_of_their_members(table: pd.DataFrame) -> None:
    small = condense(table, label="outcome", rows=12, representative="medoid", column_weights="none")
    X, _, weight = small.expand(8_000, class_mix="source")
    assert np.average(X["visits"], weights=weight) == pytest.approx(table["visits"].mean(), rel=0.05)


def test_rare_categories_are_not_kept(table: pd.DataFrame) -> None:
    small = condense(table, label="outcome", rows=10, column_weights="none", min_category_rows=8)
    for shares in small.spread.shares.values():
        sizes = np.append(small.weight, small.weight.sum())
        counts = shares.shares * np.repeat(sizes, np.diff(shares.starts))
        assert counts.min() >= 8 - 1e-3
    members = table.assign(row=small.membership.sort_values("source_row")["condensed_row"].to_numpy())
    for row, job in small.original["job"].items():
        assert pd.isna(job) or (members.loc[members["row"] == row, "job"] == job).sum() >= 8
    with pytest.raises(InputError, match="min_category_rows"):
        condense(table, label="outcome", rows=10, min_category_rows=0)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=60), st.integers(1, 4))
def test_shares_against_counting(cells: list[tuple[int, int]], least: int) -> None:
    """The entries of each group are its most frequent categories, up to 99 % of its members."""
    frame = pd.DataFrame(cells, columns=["row", "value"])
    members = frame["row"].value_counts().reindex(range(4), fill_value=0).to_numpy()
    counted = frame.value_counts(sort=False).reset_index()
    votes = Votes(pd.Series(list("abcdef")), *(counted[name].to_numpy() for name in ("row", "value", "count")))
    shares = CategoryShares.of_votes(votes, members, least)
    for row in range(4):
        own = frame.loc[frame["row"] == row, "value"].value_counts()
        entries = slice(shares.starts[row], shares.starts[row + 1])
        kept = {
            value: round(share * members[row])
            for value, share in zip(shares.values[entries], shares.shares[entries], strict=True)
        }
        assert all(own["abcdef".index(value)] == count for value, count in kept.items())
        left = [count for value, count in own.items() if "abcdef"[int(str(value))] not in kept]
        assert all(count < least or sum(left) <= 0.01 * members[row] + max(left) for count in left)
    drawn = shares.draw(np.repeat(np.arange(4), 50)[np.repeat(members > 0, 50)], np.random.default_rng(0))
    assert set(drawn.dropna()) <= {"abcdef"[value] for value in frame["value"]}


def test_forgetting_rows_updates_the_spread(table: pd.DataFrame, small: CondensedTable) -> None:
    members = small.membership
    gone = members.loc[members["condensed_row"] == 5, "source_row"].to_numpy()[:7]
    forgotten = forget_rows(small, table, gone).table
    before, after = small.spread, forgotten.spread
    other = np.arange(len(small)) != 5
    np.testing.assert_array_equal(after.deviation[other], before.deviation[other])
    left = members[(members["condensed_row"] == 5) & ~members["source_row"].isin(gone)]["source_row"]
    wanted = table.loc[left, "job"].value_counts(normalize=True)
    shares = after.shares["job"]
    entries = slice(shares.starts[5], shares.starts[6])
    found = dict(zip(shares.values[entries], shares.shares[entries], strict=True))
    assert found == pytest.approx(wanted[wanted.index.isin(found)].to_dict(), abs=1e-6)
