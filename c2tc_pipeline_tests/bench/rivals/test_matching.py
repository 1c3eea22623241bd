"""What the three methods that learn synthetic rows share."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from c2tc_pipeline.bench.rivals.dm import DistributionMatching
from c2tc_pipeline.bench.rivals.gm import GradientMatching
from c2tc_pipeline.bench.rivals.limits import OutOfMemory, OutOfTime
from c2tc_pipeline.bench.rivals.matching import MatchingSampler, UnitRows
from c2tc_pipeline.bench.rivals.mtt import TrajectoryMatching
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline_tests.tools.faults import MESSAGE

NARROW = partial(mlp_network, widths=(16,))
# Settings with which each method does little, and with which it does enough for a toy table.
BRIEF: dict[str, dict[str, Any]] = {
    "dm": {},
    "gm": {"inner_steps": 2},
    "mtt": {"experts": 1, "epochs": 2, "last_start": 0, "student_steps": 2, "epoch_steps": 5},
}
JUDGES = (KNeighborsClassifier(1), LogisticRegression(C=100))
METHODS = {"dm": DistributionMatching, "gm": GradientMatching, "mtt": TrajectoryMatching}


def brief(method: str, **settings: Any) -> MatchingSampler:
    return METHODS[method](**{"rows": 4, "steps": 3, "relay": NARROW, "device": "cpu", **BRIEF[method], **settings})


def blobs(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with outliers that overlap so much that a single row says little, while their means tell all."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(np.where(y == 0, 0.4, 0.6)[:, None], 0.15, (n, 2))
    outliers = rng.random(n) < 0.1
    X[outliers] = rng.random((outliers.sum(), 2))
    return X.clip(0, 1), y


def classes_of(X: np.ndarray, y: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(X[y == label].astype(np.float32)) for label in np.unique(y)]


def started(sampler: MatchingSampler, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that a sampler began with: one step that is too short to be seen."""
    made: tuple[np.ndarray, np.ndarray] = clone(sampler).set_params(steps=1, learning_rate=1e-12).fit_resample(X, y)
    return made


@pytest.mark.parametrize("method", METHODS)
def test_the_start_is_real_rows_of_the_right_classes(method: str) -> None:
    X, y = blobs(60)
    rows, labels = started(brief(method, rows=7), X, y)
    for row, label in zip(rows, labels, strict=True):
        nearest = np.abs(X - row).max(axis=1).argmin()
        np.testing.assert_allclose(X[nearest], row, atol=1e-6)
        assert y[nearest] == label
    assert len(np.unique(rows.round(5), axis=0)) == 7


@pytest.mark.parametrize("method", METHODS)
def test_they_beat_random_rows_where_single_rows_mislead(method: str) -> None:
    X, y = blobs(300)
    X_new, y_new = blobs(1000, seed=1)
    settings: dict[str, Any] = {"rows": 2, "steps": 60, "learning_rate": 0.03, "batch_size": 64}
    if method == "mtt":
        settings |= {"experts": 2, "epochs": 4, "last_start": 2, "student_steps": 4, "expert_learning_rate": 0.5}
    scores = []
    for seed in range(4):
        sampler = brief(method, **settings, random_state=seed)
        made = (started(sampler, X, y), sampler.fit_resample(X, y))
        scores.append([[judge.fit(*rows).score(X_new, y_new) for rows in made] for judge in JUDGES])
    for random, learnt in np.mean(scores, axis=0):
        assert learnt > random + 0.05


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_rows_and_leaves_the_global_seed_alone(method: str) -> None:
    X, y = blobs(60)
    rows = []
    for seed in (0, 0, 1):
        before = torch.get_rng_state()
        rows.append(brief(method, random_state=seed).fit_resample(X, y)[0])
        assert torch.equal(torch.get_rng_state(), before)
        torch.rand(3)
    assert (rows[0] == rows[1]).all()
    assert (rows[0] != rows[2]).any()


@pytest.mark.parametrize("method", METHODS)
def test_rows_stay_within_the_range_of_their_columns(method: str) -> None:
    X, y = blobs(60)
    X = np.column_stack([X * [1, 1000] - [0, 500], np.full(60, 7.5)])
    rows, _ = brief(method, learning_rate=0.5, steps=5, rows=8).fit_resample(X, y)
    assert (rows >= X.min(axis=0)).all()
    assert (rows <= X.max(axis=0)).all()
    assert (rows[:, 2] == 7.5).all()


@pytest.mark.parametrize("method", METHODS)
def test_networks_never_see_rows_out_of_range(method: str) -> None:
    seen = []

    class Watching(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            seen.append((rows.min().item(), rows.max().item()))
            return super().forward(rows)

    def relay(features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(Watching(features, 4), torch.nn.Tanh(), torch.nn.Linear(4, classes))

    brief(method, relay=relay, learning_rate=0.5, steps=5).fit_resample(*blobs(60))
    assert min(low for low, _ in seen) >= 0
    assert max(high for _, high in seen) <= 1


@pytest.mark.parametrize("method", METHODS)
def test_units_make_no_difference(method: str) -> None:
    X, y = blobs(60)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    rows, _ = brief(method).fit_resample(X, y)
    units, zero = np.array([1024, 0.25]), np.array([512, 0])
    scaled, _ = brief(method).fit_resample(X * units - zero, y)
    np.testing.assert_allclose((scaled + zero) / units, rows, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("classes", "rows"), [([0, 0, 1], 2), ([0, 0, 1], 3), ([0, 1, 2], 3), ([0] * 30 + [1], 3), ([0, 1], 2)]
)
def test_three_rows_and_classes_of_one_row(method: str, classes: list[int], rows: int) -> None:
    X = np.random.default_rng(0).random((len(classes), 3)).astype(np.float32)
    sampler = brief(method, rows=rows)
    made, labels = sampler.fit_resample(X, np.array(classes))
    assert made.shape == (rows, 3)
    assert made.dtype == np.float32
    assert np.isfinite(made).all()
    assert set(labels) == set(classes)
    assert np.isfinite(sampler.losses_).all()
    assert len(sampler.losses_) == 3


@pytest.mark.parametrize("method", METHODS)
def test_time_runs_out_at_the_step_that_is_too_late(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = blobs(60)
    ticks = iter(range(10_000))
    monkeypatch.setattr(MatchingSampler, "clock", lambda self: next(ticks))
    whole = brief(method)
    whole.fit_resample(X, y)
    looks = next(ticks) - 1
    ticks = iter(range(10_000))
    brief(method, time_limit=looks).fit_resample(X, y)
    ticks = iter(range(10_000))
    with pytest.raises(OutOfTime, match=f"^{whole.name} took longer than its limit of .* come to step 3 of 3.$"):
        brief(method, time_limit=looks - 1).fit_resample(X, y)


def test_experts_are_timed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10_000))
    monkeypatch.setattr(MatchingSampler, "clock", lambda self: next(ticks))
    with pytest.raises(
        OutOfTime, match=r"MTT took longer than its limit of 1 seconds .* epoch 2 of 2 of expert 1 of 1\.$"
    ):
        brief("mtt", time_limit=1).fit_resample(*blobs(60))


@pytest.mark.parametrize("method", METHODS)
def test_memory_is_estimated_before_the_start(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: object, task: object) -> None:
        raise AssertionError("it started")

    X, y = blobs(60)
    brief(method, memory_limit=1e9).fit_resample(X, y)
    monkeypatch.setattr(METHODS[method], "start", never)
    with pytest.raises(OutOfMemory, match=r"needs about \d+ MB, more than its limit of 0 MB") as caught:
        brief(method, memory_limit=1000).fit_resample(X, y)
    assert caught.value.code == "OOM"


@pytest.mark.parametrize("method", METHODS)
def test_memory_that_runs_out_on_the_way_is_said_so(method: str) -> None:
    class Greedy(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            if len(rows) > 20:
                raise torch.OutOfMemoryError(MESSAGE)
            return super().forward(rows)

    def relay(features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(Greedy(features, 4), torch.nn.Tanh(), torch.nn.Linear(4, classes))

    with pytest.raises(OutOfMemory, match="ran out of memory"):
        brief(method, relay=relay).fit_resample(*blobs(60))


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_runs_to_infinity_moves_nothing(method: str) -> None:
    class Exploding(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return super().forward(rows) * torch.inf

    def relay(features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(Exploding(features, 4), torch.nn.Tanh(), torch.nn.Linear(4, classes))

    X, y = blobs(60)
    rows, _ = brief(method, relay=relay, learning_rate=0.3).fit_resample(X, y)
    np.testing.assert_allclose(rows, started(brief(method), X, y)[0], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("setting", ["steps", "batch_size", "learning_rate"])
def test_settings_that_make_no_sense(method: str, setting: str) -> None:
    with pytest.raises(InputError, match=f"Setting {setting} is 0; it must be "):
        brief(method, **{setting: 0}).fit_resample(*blobs(60))


def test_batches_are_different_rows_of_one_class() -> None:
    X = np.arange(50.0)[:, None]
    real = UnitRows(X, np.array([0, 40, 50]))
    rng = np.random.default_rng(0)
    drawn = [real.draw(rng, 1, 4) for _ in range(100)]
    assert all(len(set(batch.tolist())) == 4 for batch in drawn)
    assert set(np.concatenate(drawn).tolist()) == set(range(40, 50))
    assert real.draw(rng, 1, 10).tolist() == real.draw(rng, 1, 99).tolist() == list(range(40, 50))
    assert real.codes(np.array([0, 39, 40, 49])).tolist() == [0, 0, 1, 1]
