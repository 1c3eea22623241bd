"""The trainer against a plain torch loop, and the recipes against what they say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.training import RECIPES, Recipe, recipe_named, train
from c2tc_pipeline.optimisers import AdamW, FlatWeights, Sgd

SHORT = Recipe("adamw", 1e-2, 0.1, epochs=3, batch_size=8, cosine=True)


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
    steps = recipe.epochs * math.ceil(len(rows) / recipe.batch_size)
    taken = 0
    for _ in range(recipe.epochs):
        for batch in torch.randperm(len(rows)).split(recipe.batch_size):
            optimiser.param_groups[0]["lr"] = recipe.rate(taken, steps)
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
        (
            Recipe("sgd", 0.05, 0.01, epochs=4, batch_size=7),
            lambda parameters, **settings: torch.optim.SGD(parameters, momentum=0.9, **settings),
        ),
    ],
    ids=["adamw", "sgd"],
)
def test_training_is_that_of_a_plain_loop(recipe: Recipe, optimiser: Callable[..., torch.optim.Optimizer]) -> None:
    trained = train(build, *some_rows(), recipe=recipe, seed=3)
    expected = plain_loop(recipe, optimiser, seed=3)
    for ours, theirs in zip(trained.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    assert not trained.training


def test_training_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    train(build, *some_rows(), recipe=SHORT, seed=0)
    assert torch.equal(torch.rand(3), expected)


def test_a_seed_decides_everything() -> None:
    first, again, other = (train(build, *some_rows(), recipe=SHORT, seed=seed)(some_rows()[0]) for seed in (4, 4, 5))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_every_row_is_visited_before_any_comes_again() -> None:
    seen: list[list[float]] = []

    class Watching(torch.nn.Linear):
        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            seen.append(rows[:, 0].tolist())
            return super().forward(rows)

    rows = torch.arange(10.0).reshape(-1, 1)
    recipe = Recipe("sgd", 0.0, 0.0, epochs=1, batch_size=4, least_steps=7)
    train(lambda: Watching(1, 2), rows, torch.zeros(10).long(), torch.ones(10), recipe=recipe, seed=0)
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
    assert [default.steps(rows) for rows in (1, 3, 500, 10**8)] == [300, 300, 300, 4000]
    rates = [default.rate(taken, 400) for taken in range(400)]
    assert max(rates) <= default.learning_rate
    assert rates[0] < 0.1 * default.learning_rate
    assert rates[-1] < 0.001 * default.learning_rate
    assert isinstance(default.start(FlatWeights(build())), AdamW)


def test_an_unknown_recipe() -> None:
    assert recipe_named(SHORT) is SHORT
    with pytest.raises(InputError, match="Recipe 'papr' is unknown; choose one of: default, paper"):
        recipe_named("papr")
