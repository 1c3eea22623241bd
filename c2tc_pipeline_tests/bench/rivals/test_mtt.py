"""Trajectory matching: experts learn, students are differentiated right, and they come closer to experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from c2tc_pipeline.bench.networks.ft_transformer import ft_transformer_network
from c2tc_pipeline.bench.rivals.limits import Deadline
from c2tc_pipeline.bench.rivals.matching import Task, UnitRows
from c2tc_pipeline.bench.rivals.mtt import TrajectoryMatching, train_expert, train_student, trajectory_distance
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, relay_builder, weight_bytes
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline_tests.bench.rivals.test_matching import blobs, started

NARROW = partial(mlp_network, widths=(16,))
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
    start = torch.cat([tensor.detach().reshape(-1) for tensor in network.parameters()])
    reached = train_student(torch.nn.Linear(3, 2), start, rows, codes, torch.tensor(rate), batches)
    optimiser = torch.optim.SGD(network.parameters(), lr=rate)
    for batch in batches:
        optimiser.zero_grad()
        cross_entropy(network(rows[batch]), codes[batch]).backward()
        optimiser.step()
    torch.testing.assert_close(reached, torch.cat([tensor.detach().reshape(-1) for tensor in network.parameters()]))


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


def test_distances_are_measured_against_what_the_expert_covered() -> None:
    start, goal = torch.tensor([1.0, 1.0]), torch.tensor([4.0, 5.0])
    assert trajectory_distance(start, start, goal).item() == 1
    assert trajectory_distance(goal, start, goal).item() == 0
    assert trajectory_distance(torch.tensor([4.0, 0.0]), start, goal).item() == 1
    # An expert that stood still is no division by zero.
    assert trajectory_distance(start, start, start).item() == 0


def test_experts_learn_and_students_come_closer_to_experts_they_never_saw() -> None:
    X, y = blobs(300)
    mtt = TrajectoryMatching(rows=4, relay=NARROW, steps=80, learning_rate=0.03, **SHORT)
    made, labels = mtt.fit_resample(X, y)
    assert mtt.expert_losses_.shape == (2, 4)
    assert (mtt.expert_losses_[:, -1] < 0.9 * mtt.expert_losses_[:, 0]).all()
    assert np.mean(mtt.losses_[-20:]) < 0.5 * np.mean(mtt.losses_[:10])
    before, _ = started(mtt, X, y)
    at_first = distance_to_other_experts(X, y, before, labels, mtt.first_student_step)
    in_the_end = distance_to_other_experts(X, y, made, labels, mtt.student_learning_rate_)
    assert in_the_end < 0.6 * at_first
    assert in_the_end < 1, "a student that stands still is at a distance of 1"


def distance_to_other_experts(X: np.ndarray, y: np.ndarray, made: np.ndarray, labels: np.ndarray, rate: float) -> float:
    """Return the mean distance that students on some rows keep from experts that the rows were not learnt from."""
    real = UnitRows(X[np.argsort(y, kind="stable")], np.searchsorted(np.sort(y), [0, 1, 2]))
    build = relay_builder(NARROW, 2, 2)
    task = Task(real, np.bincount(labels), build, np.random.default_rng(12345), Deadline("MTT", None))
    rows = torch.from_numpy(((made - real.low) / real.span).astype(np.float32))
    distances = []
    with torch.random.fork_rng():
        torch.manual_seed(12345)
        for _ in range(4):
            expert = train_expert(task, epochs=4, epoch_steps=None, learning_rate=0.5, batch_size=32, name="expert")
            for start, goal in zip(expert.weights, expert.weights[2:], strict=False):
                batches = [torch.arange(len(rows))] * SHORT["student_steps"]
                reached = train_student(build(), start, rows, task.codes, torch.tensor(rate), batches)
                distances.append(trajectory_distance(reached, start, goal).item())
    return float(np.mean(distances))


def test_the_same_seed_trains_the_same_experts() -> None:
    X, y = blobs(60)
    runs = []
    for seed in (0, 0, 1):
        mtt = TrajectoryMatching(rows=4, relay=NARROW, steps=2, random_state=seed, **SHORT)
        mtt.fit_resample(X, y)
        runs.append(mtt.expert_losses_)
    assert (runs[0] == runs[1]).all()
    assert (runs[0] != runs[2]).any()


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
    start = torch.cat([tensor.detach().reshape(-1) for tensor in built.parameters()])
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


def test_a_student_must_not_run_past_the_last_epoch() -> None:
    X, y = blobs(60)
    with pytest.raises(InputError, match="starts from epoch 3 and goes 2 epochs ahead does not fit into 4 epochs"):
        TrajectoryMatching(rows=4, epochs=4, last_start=3).fit_resample(X, y)


def test_the_first_steps_suit_the_relay() -> None:
    steps = {relay: TrajectoryMatching(relay=relay).first_student_step for relay in ("mlp", "ft_transformer")}
    assert steps == {"mlp": 0.1, "ft_transformer": 0.02}
    assert TrajectoryMatching(relay="ft_transformer", student_learning_rate=0.3).first_student_step == 0.3
    # A student that is thrown off its way ends farther from the goal than where it began, at a loss far above 1.
    rng = np.random.default_rng(0)
    X = rng.random((400, 4))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    short = {"steps": 6, "experts": 1, "epochs": 4, "last_start": 2, "student_steps": 5, "epoch_steps": 10}
    losses = []
    for step in (None, 0.1):
        mtt = TrajectoryMatching(
            rows=8, relay="ft_transformer", student_learning_rate=step, batch_size=64, device="cpu", **short
        )
        mtt.fit_resample(X, y)
        losses.append(np.median(mtt.losses_))
    assert losses[0] < 1.5 < 3 < losses[1]
