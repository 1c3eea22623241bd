"""The trainer against a plain torch loop, and the recipes against what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch

from c2tc_pipeline.common.optimisers import AdamW, FlatWeights, Sgd
from c2tc_pipeline.evaluation.training import RECIPES, Recipe, train

SHORT = Recipe("adamw", 1e-2, 0.1, epochs=3, batch_size=8, cosine=True)


class Watching(torch.nn.Linear):
    """A network that keeps the rows it is given."""

    def __init__(self, columns: int, seen: list[torch.Tensor]) -> None:
        super().__init__(columns, 2)
        self.seen = seen

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.seen.append(rows.detach())
        return super().forward(rows)


def build() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def some_rows(n: int = 20) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    rows = torch.rand(n, 3, generator=generator)
    return rows, (rows.sum(dim=1) > 1.5).long(), 0.5 + torch.rand(n, generator=generator)


def plain_loop(recipe: Recipe, optimiser_of: Callable[..., torch.optim.Optimizer], seed: int) -> torch.nn.Module:
    """The same training with torch's own optimisers, tensor by tensor."""
    rows, classes, weights = some_rows()
    weights = weights / weights.mean()
    torch.manual_seed(seed)
    network = build()
    optimiser = optimiser_of(network.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    taken = 0
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(rows)).split(recipe.batch_size):
            optimiser.param_groups[0]["lr"] = recipe.rate(taken, len(rows))
            optimiser.zero_grad()
            losses = torch.nn.functional.cross_entropy(network(rows[batch]), classes[batch], reduction="none")
            (losses * weights[batch]).mean().backward()
            optimiser.step()
            taken += 1
    return network


@pytest.mark.parametrize(
    ("recipe", "optimiser"),
    [
        (SHORT, torch.optim.AdamW),
        (Recipe("sgd", 0.05, 0.01, epochs=4, batch_size=7), partial(torch.optim.SGD, momentum=0.9)),
    ],
    ids=["adamw", "sgd"],
)
def test_training_is_that_of_a_plain_loop(recipe: Recipe, optimiser: Callable[..., torch.optim.Optimizer]) -> None:
    trained = train(build, *some_rows(), recipe=recipe, seed=3)
    expected = plain_loop(recipe, optimiser, seed=3)
    for ours, theirs in zip(trained.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    assert not trained.training


def test_a_seed_decides_everything_and_the_global_random_state_stays() -> None:
    before = torch.get_rng_state()
    first, again, other = (train(build, *some_rows(), recipe=SHORT, seed=seed)(some_rows()[0]) for seed in (4, 4, 5))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_every_row_is_visited_before_any_comes_again() -> None:
    batches: list[torch.Tensor] = []
    rows = torch.arange(10.0).reshape(-1, 1)
    recipe = Recipe("sgd", 0.0, 0.0, epochs=1, batch_size=4, least_steps=7)
    train(lambda: Watching(1, batches), rows, torch.zeros(10).long(), torch.ones(10), recipe=recipe, seed=0)
    seen = [batch[:, 0].tolist() for batch in batches]
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2, 4]
    for epoch in (seen[:3], seen[3:6]):
        assert sorted(itertools.chain(*epoch)) == list(range(10))


def test_the_papers_recipe_is_the_papers() -> None:
    paper = RECIPES["paper"]
    assert (paper.optimiser, paper.learning_rate, paper.weight_decay) == ("sgd", 1e-3, 5e-4)
    assert [paper.rate(taken, 100) for taken in (0, 50, 99)] == [1e-3] * 3
    # 100 epochs of batches of min(2048, n).
    assert [paper.steps(rows) for rows in (3, 2048, 2049, 500_000)] == [100, 100, 200, 24_500]
    optimiser = paper.start(FlatWeights(build()))
    assert isinstance(optimiser, Sgd)
    assert optimiser.momentum == 0.9


def test_the_default_recipe_is_bounded_and_ends_at_rest() -> None:
    default = RECIPES["default"]
    assert [default.steps(rows) for rows in (1, 3, 500, 10**8)] == [400, 400, 480, 8000]
    rates = [default.rate(taken, 10) for taken in range(400)]
    assert max(rates) <= default.learning_rate
    assert rates[0] < 0.1 * default.learning_rate
    assert rates[-1] < 0.001 * default.learning_rate
    assert isinstance(default.start(FlatWeights(build())), AdamW)
    # Large tables take larger batches and longer steps.
    assert [default.batch(rows) for rows in (3, 6_400, 20_000, 10**6)] == [64, 64, 200, 512]
    few, many = (max(default.rate(taken, rows) for taken in range(default.steps(rows))) for rows in (100, 10**6))
    assert many / few == pytest.approx(math.sqrt(512 / 64), rel=0.01)


def test_noise_is_what_the_recipe_says_and_shrinks_with_rows() -> None:
    seen: list[torch.Tensor] = []
    recipe = Recipe("sgd", 0.01, 0.0, epochs=40, batch_size=4_000, noise=0.1)
    for rows in (1_000, 4_000):
        seen.clear()
        still = torch.full((rows, 3), 0.5)
        train(lambda: Watching(3, seen), still, torch.arange(rows) % 2, torch.ones(rows), recipe=recipe, seed=0)
        added = torch.stack(seen) - 0.5
        assert float(added.std()) == pytest.approx(0.1 if rows == 1_000 else 0.05, rel=0.05)
        assert not torch.equal(seen[0], seen[1])


class Hooked(torch.nn.Linear):
    """A network that says everything it may to its trainer, and remembers what it was told."""

    min_batch = 3

    def __init__(self) -> None:
        super().__init__(3, 2)
        self.told: list[torch.Tensor] = []
        self.numbers: list[list[int]] = []

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        self.told = [rows, classes, weights]

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        assert torch.equal(rows, self.told[0][numbers])
        assert torch.equal(classes, self.told[1][numbers])
        self.numbers.append(numbers.tolist())
        return torch.nn.functional.mse_loss(self(rows)[:, 0], classes.float(), reduction="none")


def test_a_network_may_have_a_loss_of_its_own() -> None:
    rows, classes, weights = some_rows(20)
    recipe = Recipe("sgd", 0.3, 0.0, epochs=60, batch_size=6)
    trained = train(Hooked, rows, classes, weights, recipe=recipe, seed=0)
    assert isinstance(trained, Hooked)
    assert trained.told[2].mean().item() == pytest.approx(1)
    # Six, six, and what would leave two rows alone; every row once in an epoch.
    assert [len(batch) for batch in trained.numbers[:3]] == [6, 6, 8]
    assert sorted(itertools.chain(*trained.numbers[:3])) == list(range(20))
    # Least squares fit the class number in the first output; cross-entropy would not.
    assert (trained(rows)[:, 0] - classes).square().mean() < 0.15
