"""Rivals that pick rows or cluster them: the common contract, and each against its definition."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.under_sampling import ClusterCentroids
from imblearn.utils import estimator_checks
from scipy.spatial.distance import cdist

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.bench.rivals import make_rival
from c2tc_pipeline.bench.rivals.base import Sampler
from c2tc_pipeline.bench.rivals.cluster_centroids import ClusterCentroidsRows
from c2tc_pipeline.bench.rivals.herding import Herding
from c2tc_pipeline.bench.rivals.k_center import KCenter
from c2tc_pipeline.bench.rivals.minibatch import fill_empty
from c2tc_pipeline.bench.rivals.random_rows import LightweightCoreset, RandomRows, StratifiedRows
from c2tc_pipeline.common.errors import InputError

PICKING = ("random", "stratified", "herding", "k_center", "lightweight")

MAKING = ("cluster_centroids", "minibatch_kmeans")

ALL = PICKING + MAKING


# k-means says that equal rows make fewer clusters than it was asked for; here that is the point.
few_distinct = pytest.mark.filterwarnings("ignore:Number of distinct clusters")


def rows_and_classes(rows: int = 120, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose classes lie far apart, shuffled, the last class with two rows only."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(0, classes - 1, rows))
    y[:2] = classes - 1
    y = rng.permutation(y)
    return rng.random((rows, 4)) + 10 * y[:, None], y


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("rows", [3, 17, 119])
def test_the_budget_is_exact_and_rows_are_those_of_their_classes(name: str, rows: int) -> None:
    X, y = rows_and_classes()
    rival = make_rival(name, ratio=0.5, rows=rows)
    X_small, y_small = rival.fit_resample(X, y)
    assert X_small.shape == (rows, 4)
    assert set(y_small) == {0, 1, 2}
    # A class fills its own stretch of ten, so that a row tells its class.
    np.testing.assert_array_equal(X_small[:, 0] // 10, y_small)
    np.testing.assert_array_equal(rival.counts_, np.bincount(y_small))
    if name != "random":
        sizes = np.bincount(y)
        assert rival.counts_.tolist() == proportional_counts(sizes, rows, sizes).tolist()
    if rival.weights_ is not None:
        assert len(rival.weights_) == rows
        assert (rival.weights_ > 0).all()
    if name in MAKING:
        assert rival.sample_indices_ is None
        return
    assert rival.sample_indices_ is not None
    np.testing.assert_array_equal(X[rival.sample_indices_], X_small)
    np.testing.assert_array_equal(y[rival.sample_indices_], y_small)
    if name != "lightweight":
        assert len(set(rival.sample_indices_.tolist())) == rows


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_rows(name: str) -> None:
    X, y = rows_and_classes()
    one, same, other = (make_rival(name, ratio=0.2, seed=seed).fit_resample(X, y)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.array_equal(one, other) == (name in ("herding", "k_center"))


@pytest.mark.parametrize("name", ["herding", "cluster_centroids"])
def test_frames_come_back_as_frames(name: str) -> None:
    X, y = rows_and_classes()
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"), index=pd.Index(range(900, 1020)))
    labels = pd.Series(np.array(["no", "yes", "maybe"])[y], name="answer", dtype="category")
    X_small, y_small = make_rival(name, ratio=0.1).fit_resample(frame, labels)
    assert X_small.columns.tolist() == list("abcd")
    assert (X_small.dtypes == np.float32).all()
    assert y_small.name == "answer"
    assert y_small.dtype == labels.dtype


@pytest.mark.parametrize("name", [name for name in ALL if name != "lightweight"])
def test_a_budget_of_all_rows_keeps_them_all(name: str) -> None:
    X, y = rows_and_classes(40)
    X_small, y_small = make_rival(name, ratio=1.0).fit_resample(X, y)
    order, order_small = np.lexsort((X[:, 0], y)), np.lexsort((X_small[:, 0], y_small))
    np.testing.assert_allclose(X_small[order_small], X[order], rtol=1e-12)
    np.testing.assert_array_equal(y_small[order_small], y[order])


@few_distinct
@pytest.mark.parametrize("name", ALL)
def test_equal_rows(name: str) -> None:
    # Sixty rows of class 0 with two values, sixty of class 1 with one: fewer distinct rows than the budget.
    X = np.repeat([[0.0, 1.0], [1.0, 0.0], [5.0, 5.0]], [30, 30, 60], axis=0)
    y = np.repeat([0, 1], 60)
    rival = make_rival(name, ratio=0.1)
    X_small, y_small = rival.fit_resample(X, y)
    assert len(X_small) == 12
    assert (X_small[y_small == 1] == 5.0).all()
    first = X_small[y_small == 0]
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
    if name in PICKING and name != "lightweight":
        assert rival.sample_indices_ is not None
        assert len(set(rival.sample_indices_.tolist())) == 12, "equal rows are still different rows"
    if name in ("herding", "k_center", "cluster_centroids", "minibatch_kmeans"):
        assert set(map(tuple, first.tolist())) == {(0.0, 1.0), (1.0, 0.0)}


@pytest.mark.parametrize("name", ALL)
def test_wrong_input_is_refused(name: str) -> None:
    X, y = rows_and_classes()
    with pytest.raises(InputError, match="2 condensed rows"):
        make_rival(name, ratio=0.1, rows=2).fit_resample(X, y)
    with pytest.raises(InputError, match="class"):
        make_rival(name, ratio=0.1).fit_resample(X, np.zeros(120))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@few_distinct
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("check", ["check_target_type", "check_samplers_list", "check_samplers_2d_target"])
def test_imbalanced_learn_check(name: str, check: str) -> None:
    getattr(estimator_checks, check)(name, make_rival(name, ratio=0.1))


@pytest.mark.parametrize(
    ("name", "settings"),
    [("hurding", {}), ("herding", {"pace": 3}), ("k_center", {"pace": 3}), ("k_center", {"start": "end"})],
)
def test_an_unknown_rival_or_setting_is_refused(name: str, settings: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=str(settings.get("start", name))):
        make_rival(name, ratio=0.1, **settings).fit_resample(*rows_and_classes())


EDGES = np.array([0, 12, 20])
X = np.arange(20.0)[:, None]


@pytest.mark.parametrize("kind", [RandomRows, StratifiedRows])
def test_every_row_is_as_likely_in_a_random_sample(kind: type[Sampler]) -> None:
    drawn, shares = np.zeros(20), set()
    for seed in range(600):
        made = kind(random_state=seed).condense(X, EDGES, 10)
        drawn[made.chosen] += 1
        shares.add(int(made.codes.sum()))
    # Half of the samples have a row: five standard deviations are 61.
    assert np.abs(drawn - 300).max() < 61
    assert (len(shares) == 1) == (kind is StratifiedRows), "the class counts of a random sample vary"


def greedy_herding(X: np.ndarray, count: int) -> list[int]:
    """Try every row that is left at every pick, and measure."""
    mean = X.mean(axis=0)
    picked: list[int] = []
    for _ in range(count):
        left = [row for row in range(len(X)) if row not in picked]
        picked.append(min(left, key=lambda row: float(np.linalg.norm(X[[*picked, row]].mean(axis=0) - mean))))
    return picked


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_herding_brute_force(seed: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    # Rows of very different length: without their squares, long rows would win every product.
    X = rng.normal(size=(60, 3)) * rng.exponential(size=(60, 1)) + offset
    herding = Herding(rows=40)
    herding.fit_resample(X, np.repeat([0, 1], 30))
    expected = [*greedy_herding(X[:30], 20), *(30 + row for row in greedy_herding(X[30:], 20))]
    assert herding.sample_indices_ is not None
    assert herding.sample_indices_.tolist() == expected


def farthest_first(X: np.ndarray, first: int, count: int) -> list[int]:
    """Measure every row against every pick."""
    picked = [first]
    while len(picked) < count:
        distances = cdist(X, X[picked]).min(axis=1)
        distances[picked] = -1
        picked.append(int(distances.argmax()))
    return picked


@pytest.mark.parametrize("start", ["mean", "random"])
@pytest.mark.parametrize("seed", range(3))
def test_k_center_brute_force(seed: int, start: str) -> None:
    X, y = np.random.default_rng(seed).normal(size=(60, 3)), np.repeat([0, 1], 30)
    sampler = KCenter(rows=40, start=start, random_state=seed).fit(X, y)
    chosen = sampler.sample_indices_
    assert chosen is not None
    for offset, picks in ((0, chosen[:20]), (30, chosen[20:] - 30)):
        rows = X[offset : offset + 30]
        if start == "mean":
            assert picks[0] == np.linalg.norm(rows - rows.mean(axis=0), axis=1).argmin()
        assert picks.tolist() == farthest_first(rows, int(picks[0]), 20)


def chances(rows: np.ndarray) -> np.ndarray:
    """The formula as it is printed, row by row."""
    mean = rows.mean(axis=0)
    squares = [float(((row - mean) ** 2).sum()) for row in rows]
    return np.array([1 / (2 * len(rows)) + square / (2 * sum(squares)) for square in squares])


def skewed_class() -> np.ndarray:
    return np.random.default_rng(0).exponential(size=(12, 2)) ** 2


def test_weights_are_the_inverse_of_chances_times_draws() -> None:
    X = np.vstack([skewed_class(), skewed_class() + 5])
    coreset = LightweightCoreset(rows=10).fit(X, np.repeat([0, 1], 12))
    expected = 1 / (5 * chances(skewed_class()))
    assert coreset.sample_indices_ is not None
    assert coreset.weights_ is not None
    np.testing.assert_allclose(coreset.weights_, expected[coreset.sample_indices_ % 12], rtol=1e-5)


@pytest.mark.parametrize("count", [1, 5])
def test_rows_come_as_often_as_their_chances_say_and_weighted_sums_are_right_on_average(count: int) -> None:
    X = skewed_class()
    rng = np.random.default_rng(count)
    drawn, sums = np.zeros(12), []
    draws = 1500
    for _ in range(draws):
        made = LightweightCoreset().condense_class(X, count, rng)
        assert made.chosen is not None
        assert made.weights is not None
        np.add.at(drawn, made.chosen, 1)
        sums.append([made.weights.sum(), *(made.weights @ X[made.chosen]), made.weights @ X[made.chosen, 0] ** 2])
    q = chances(X)
    spread = np.sqrt(draws * count * q * (1 - q))
    assert (np.abs(drawn - draws * count * q) < 5 * spread).all()
    truth = np.array([12, *X.sum(axis=0), (X[:, 0] ** 2).sum()])
    found = np.array(sums)
    error = found.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found.mean(axis=0) - truth) < 5 * error).all()
    # The test can tell: unweighted sums are off by far more.
    assert np.abs(np.mean(X[:, 0]) * 12 - 12 * (q @ X[:, 0])) > 5 * error[1]


@settings(max_examples=30)
@given(st.data())
def test_no_centre_is_left_empty(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    k = data.draw(st.integers(1, n))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    X, centres = rng.integers(0, 3, (n, 2)).astype(float), rng.random((k, 2)) * 9
    labels = cdist(X, centres).argmin(axis=1)
    filled, sizes = fill_empty(X, centres, labels)
    assert (sizes >= 1).all()
    assert sizes.sum() == n
    kept = np.bincount(labels, minlength=k) > 0
    np.testing.assert_array_equal(filled[kept], centres[kept])
    assert set(map(tuple, filled[~kept])) <= set(map(tuple, X))


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((100, 4)), rng.permutation(np.repeat(["a", "b", "c"], [60, 39, 1]))


@pytest.mark.parametrize("seed", [0, 7])
def test_the_rows_are_imbalanced_learns(seed: int) -> None:
    X, y = three_classes()
    sampler = ClusterCentroidsRows(ratio=0.1, random_state=seed)
    ours, labels = sampler.fit_resample(X, y)
    counts = dict(zip(["a", "b", "c"], sampler.counts_.tolist(), strict=True))
    # Class c has one row, which both keep.
    expected, expected_labels = ClusterCentroids(
        sampling_strategy={name: counts[name] for name in ("a", "b")}, random_state=seed
    ).fit_resample(X, y)
    np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(labels, expected_labels)
    np.testing.assert_array_equal(ours[labels == "c"], X[y == "c"])
    assert sampler.weights_ is None


def test_without_imbalanced_learn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imblearn", None)
    monkeypatch.setitem(sys.modules, "imblearn.under_sampling", None)
    with pytest.raises(InputError, match="imblearn"):
        ClusterCentroidsRows().fit_resample(*three_classes())
