"""Rivals that learn synthetic rows: what they share, and what each of them matches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from torch.nn.functional import cross_entropy

from c2tc_pipeline.bench.limits import Deadline, OutOfMemory, OutOfTime
from c2tc_pipeline.bench.models.ft_transformer import ft_transformer_network
from c2tc_pipeline.bench.rivals.dm import DistributionMatching, mean_distance
from c2tc_pipeline.bench.rivals.gm import GradientMatching, class_gradients, gradient_distance
from c2tc_pipeline.bench.rivals.matching import (
    RELAYS,
    MatchingSampler,
    NetworkBuilder,
    Task,
    UnitRows,
    relay_builder,
    weight_bytes,
    without_head,
)
from c2tc_pipeline.bench.rivals.mtt import TrajectoryMatching, train_student, trajectory_distance
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
    brief(method).fit_resample(X, y)
    looks = next(ticks) - 1
    ticks = iter(range(10_000))
    brief(method, time_limit=looks).fit_resample(X, y)
    ticks = iter(range(10_000))
    with pytest.raises(OutOfTime, match="step 3 of 3"):
        brief(method, time_limit=looks - 1).fit_resample(X, y)
    if method == "mtt":
        ticks = iter(range(10_000))
        with pytest.raises(OutOfTime, match="epoch 2 of 2 of expert 1 of 1"):
            brief("mtt", time_limit=1).fit_resample(X, y)


@pytest.mark.parametrize("method", METHODS)
def test_memory_is_estimated_before_the_start(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: object, task: object) -> None:
        raise AssertionError("it started")

    X, y = blobs(60)
    brief(method, memory_limit=1e9).fit_resample(X, y)
    monkeypatch.setattr(METHODS[method], "start", never)
    with pytest.raises(OutOfMemory):
        brief(method, memory_limit=1000).fit_resample(X, y)


def relay_of(forward: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> NetworkBuilder:
    """Return networks whose first layer has its rows and outputs changed by a function."""

    class Changed(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return forward(rows, super().forward(rows))

    def relay(features: int, classes: int) -> torch.nn.Module:
        return torch.nn.Sequential(Changed(features, 4), torch.nn.Tanh(), torch.nn.Linear(4, classes))

    return relay


@pytest.mark.parametrize("method", METHODS)
def test_memory_that_runs_out_on_the_way_is_said_so(method: str) -> None:
    def greedy(rows: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        if len(rows) > 20:
            raise torch.OutOfMemoryError(MESSAGE)
        return outputs

    with pytest.raises(OutOfMemory):
        brief(method, relay=relay_of(greedy)).fit_resample(*blobs(60))


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_that_runs_to_infinity_moves_nothing(method: str) -> None:
    X, y = blobs(60)
    exploding = relay_of(lambda rows, outputs: outputs * torch.inf)
    rows, _ = brief(method, relay=exploding, learning_rate=0.3).fit_resample(X, y)
    np.testing.assert_allclose(rows, started(brief(method), X, y)[0], atol=1e-6)


@pytest.mark.parametrize(
    ("method", "setting", "value"),
    [
        *((method, name, 0) for method in METHODS for name in ("steps", "batch_size", "learning_rate")),
        ("mtt", "last_start", 3),
    ],
)
def test_settings_that_make_no_sense(method: str, setting: str, value: int) -> None:
    with pytest.raises(InputError, match=setting):
        brief(method, **{setting: value}).fit_resample(*blobs(60))


def test_batches_are_different_rows_of_one_class() -> None:
    X = np.arange(50.0)[:, None]
    real = UnitRows(X, np.array([0, 40, 50]))
    rng = np.random.default_rng(0)
    drawn = [real.draw(rng, 1, 4) for _ in range(100)]
    assert all(len(set(batch.tolist())) == 4 for batch in drawn)
    assert set(np.concatenate(drawn).tolist()) == set(range(40, 50))
    assert real.draw(rng, 1, 10).tolist() == real.draw(rng, 1, 99).tolist() == list(range(40, 50))
    assert real.codes(np.array([0, 39, 40, 49])).tolist() == [0, 0, 1, 1]


def flat(network: torch.nn.Module) -> torch.Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in network.parameters()])


@pytest.mark.parametrize("relay", RELAYS)
def test_a_relay_is_fresh_each_time_follows_the_seed_and_has_a_head(relay: str) -> None:
    build = relay_builder(relay, 3, 2)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = flat(build()), flat(build())
        torch.manual_seed(0)
        assert torch.equal(flat(build()), first)
    assert not torch.equal(first, second)
    network, rows = build(), torch.rand(5, 3)
    assert not network.training
    outputs = network(rows)
    head = [module for module in network.modules() if isinstance(module, torch.nn.Linear)][-1]
    embeddings = without_head(network)(rows)
    torch.testing.assert_close(head(embeddings), outputs)
    assert embeddings.shape == (5, head.in_features)


def test_smooth_relays_have_second_derivatives() -> None:
    own = mlp_network(3, 2)
    assert relay_builder(lambda features, classes: own, 3, 2, smooth=True)() is own
    assert any(isinstance(module, torch.nn.ReLU) for module in own.modules())
    with pytest.raises(InputError, match="resnet"):
        relay_builder("resnet", 3, 2)
    sharp, smooth = relay_builder("mlp", 3, 2)(), relay_builder("mlp", 3, 2, smooth=True)()
    for network, curved in ((sharp, False), (smooth, True)):
        rows = torch.rand(1, 3, requires_grad=True)
        (gradient,) = torch.autograd.grad(network(rows)[0, 0], rows, create_graph=True)
        assert bool(gradient.requires_grad) is True
        (second,) = torch.autograd.grad(gradient.sum(), rows, allow_unused=True, materialize_grads=True)
        assert bool((second != 0).any()) is curved


IDENTITY = partial(mlp_network, widths=())


@pytest.mark.parametrize(("batch_size", "error"), [(1000, 1e-3), (40, 0.06)])
def test_with_the_rows_as_embeddings_one_row_a_class_becomes_the_class_mean(batch_size: int, error: float) -> None:
    X, y = blobs(300)
    dm = DistributionMatching(rows=2, relay=IDENTITY, steps=300, learning_rate=0.03, batch_size=batch_size)
    rows, labels = dm.fit_resample(X, y)
    means = np.stack([X[y == label].mean(axis=0) for label in labels])
    # Whole classes give the mean itself; batches of 40 give it up to the noise that the last steps leave.
    np.testing.assert_allclose(rows, means, atol=error)


def test_mean_distance_is_that_of_a_plain_computation() -> None:
    embed = without_head(mlp_network(3, 2, (4,)))
    real = [torch.rand(5, 3), torch.rand(2, 3)]
    synthetic = [torch.rand(1, 3), torch.rand(4, 3)]
    plain = 0.0
    for a, b in zip(real, synthetic, strict=True):
        mean_a = sum(embed(row) for row in a) / len(a)
        mean_b = sum(embed(row) for row in b) / len(b)
        plain += sum((p - q) ** 2 for p, q in zip(mean_a.tolist(), mean_b.tolist(), strict=True))
    assert mean_distance(embed, real, synthetic).item() == pytest.approx(plain, rel=1e-4)
    assert mean_distance(embed, real, real).item() == 0.0


def test_gradient_distance_is_that_of_a_plain_computation() -> None:
    generator = torch.Generator().manual_seed(0)
    real, synthetic = (
        [torch.randn(4, 3, generator=generator), torch.randn(2, 3, 2, generator=generator)] for _ in range(2)
    )
    plain = 0.0
    for a, b in zip(real, synthetic, strict=True):
        for output in range(len(a)):
            p, q = a[output].reshape(-1).tolist(), b[output].reshape(-1).tolist()
            dot = sum(x * y for x, y in zip(p, q, strict=True))
            plain += 1 - dot / math.sqrt(sum(x * x for x in p) * sum(y * y for y in q))
    assert gradient_distance(real, synthetic).item() == pytest.approx(plain, rel=1e-5)


def test_the_gradient_in_the_rows_is_that_of_finite_differences() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        parameter.data.normal_(generator=generator)
    wanted = class_gradients(network, torch.rand(6, 2, dtype=torch.float64, generator=generator), 0)
    rows = torch.rand(2, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x: gradient_distance(wanted, class_gradients(network, x, 0, differentiable=True)), (rows,)
    )


def test_networks_are_renewed_and_trained_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    trained: list[int] = []

    def build(features: int, classes: int) -> torch.nn.Module:
        built.append(mlp_network(features, classes, (4,)))
        return built[-1]

    X, y = blobs(60)
    gm = GradientMatching(rows=4, relay=build, steps=7, matches_per_network=3, inner_steps=2)
    train = "c2tc_pipeline.bench.rivals.gm.Sgd.step"
    monkeypatch.setattr(train, lambda self, rate: trained.append(len(built)))
    gm.fit_resample(X, y)
    # The first network is the one whose size was estimated; the third to match has no time to train.
    assert len(built) == 1 + 3
    assert trained == [2] * 4 + [3] * 4


SHORT: dict[str, Any] = {
    "experts": 2,
    "epochs": 4,
    "last_start": 2,
    "student_steps": 4,
    "expert_learning_rate": 0.5,
    "batch_size": 32,
}


def test_a_student_takes_the_steps_of_plain_sgd() -> None:
    network = torch.nn.Linear(3, 2)
    rows, codes, rate = torch.rand(6, 3), torch.tensor([0, 0, 0, 1, 1, 1]), 0.3
    batches = [torch.tensor([0, 1, 3]), torch.tensor([2, 4, 5]), torch.arange(6)]
    start = flat(network)
    reached = train_student(torch.nn.Linear(3, 2), start, rows, codes, torch.tensor(rate), batches)
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    for batch in batches:
        optimiser.zero_grad()
        cross_entropy(network(rows[batch]), codes[batch]).backward()
        optimiser.step()
    torch.testing.assert_close(reached, flat(network))


def test_the_unrolled_gradient_is_that_of_finite_differences() -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 2)).double()
    generator = torch.Generator().manual_seed(0)
    start, goal = (torch.randn(17, dtype=torch.float64, generator=generator) for _ in range(2))
    rows = torch.rand(4, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    log_rate = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    codes = torch.tensor([0, 0, 1, 1])
    batches = [torch.tensor([0, 2]), torch.tensor([1, 3]), torch.arange(4)]

    def distance(rows: torch.Tensor, log_rate: torch.Tensor) -> torch.Tensor:
        reached = train_student(network, start, rows, codes, log_rate.exp(), batches)
        return trajectory_distance(reached, start, goal)

    assert torch.autograd.gradcheck(distance, (rows, log_rate))


@pytest.mark.parametrize(("epoch_steps", "steps"), [(None, 8), (3, 3), (100, 8)])
def test_an_epoch_may_be_cut_short(monkeypatch: pytest.MonkeyPatch, epoch_steps: int | None, steps: int) -> None:
    taken = []
    step = "c2tc_pipeline.bench.rivals.mtt.Sgd.step"
    monkeypatch.setattr(step, lambda self, rate: taken.append(rate))
    settings = {**SHORT, "batch_size": 8, "epoch_steps": epoch_steps}
    X, y = blobs(60)
    TrajectoryMatching(rows=4, relay=NARROW, steps=1, **settings).fit_resample(X, y)
    assert taken == [0.5] * (2 * 4 * steps)


@pytest.mark.parametrize("relay", ["mlp", partial(ft_transformer_network, blocks=1, width=8)])
@pytest.mark.parametrize("rows", [10, 100])
def test_the_estimate_of_memory_is_near_what_the_unrolled_graph_keeps(relay: str | NetworkBuilder, rows: int) -> None:
    built = relay_builder(relay, 5, 2, smooth=True)()
    start = flat(built)
    made = torch.rand(rows, 5, requires_grad=True)
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        rate, codes = torch.tensor(0.1, requires_grad=True), torch.zeros(rows, dtype=torch.int64)
        reached = train_student(built, start, made, codes, rate, [torch.arange(rows)] * 6)
    measured = sum(storage.nbytes() for storage in kept.values())
    assert reached.requires_grad
    real = UnitRows(np.zeros((300, 5)), np.array([0, 150, 300]))
    task = Task(real, np.array([rows // 2, rows // 2]), lambda: built, np.random.default_rng(0), Deadline("MTT", None))
    stored = 3 * (5 + 1) * weight_bytes(built)
    estimated = TrajectoryMatching(experts=3, epochs=5, student_steps=6).memory(task)
    assert 0.8 < (estimated - stored) / measured < 1.25


def test_experts_and_students_learn() -> None:
    mtt = TrajectoryMatching(rows=4, relay=NARROW, steps=80, learning_rate=0.03, **SHORT)
    mtt.fit_resample(*blobs(300))
    assert mtt.expert_losses_.shape == (2, 4)
    assert (mtt.expert_losses_[:, -1] < 0.9 * mtt.expert_losses_[:, 0]).all()
    assert np.mean(mtt.losses_[-20:]) < 0.5 * np.mean(mtt.losses_[:10])
    rates = [TrajectoryMatching(relay=relay).initial_student_rate for relay in ("mlp", "ft_transformer", NARROW)]
    assert rates == [0.1, 0.02, 0.1]
    assert TrajectoryMatching(student_learning_rate=0.3).initial_student_rate == 0.3
