"""The bench's networks: shapes, gradients, devices, and each against its paper's formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench.models import tabr as nearest
from c2tc_pipeline.bench.models.ft_transformer import ft_transformer_network
from c2tc_pipeline.bench.models.mlp_plr import MlpPlrClassifier
from c2tc_pipeline.bench.models.realmlp import NtpLinear, RealMlpNetwork, RobustScaling, weighted_quantile
from c2tc_pipeline.bench.models.tabnet import SameVarianceNorm, TabNetNetwork, ghost_rows
from c2tc_pipeline.bench.models.tabr import TabrNetwork, nearest_keys
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline.evaluation.training import Recipe, SeesTrainingRows, row_losses, train

NETWORKS: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "mlp": mlp_network,
    "mlp_plr": MlpPlrClassifier().build,
    "realmlp": RealMlpNetwork,
    "ft_transformer": ft_transformer_network,
    "tabnet": TabNetNetwork,
    "tabr": TabrNetwork,
}


def made(name: str, rows: torch.Tensor, classes: torch.Tensor) -> torch.nn.Module:
    torch.manual_seed(0)
    network = NETWORKS[name](rows.shape[1], 3)
    if isinstance(network, SeesTrainingRows):
        network.see(rows, classes, torch.ones(len(rows)))
    return network


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("columns", [1, 5])
def test_outputs_are_finite_and_one_a_class(name: str, columns: int) -> None:
    rows, classes = torch.rand(7, columns), torch.arange(7) % 3
    rows[:, 0] = 0.5
    network = made(name, rows, classes)
    losses = row_losses(network, rows, classes, torch.arange(7))
    assert losses.shape == (7,)
    assert losses.isfinite().all()
    losses.mean().backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in network.parameters())
    outputs = network.eval()(rows[:4])
    assert outputs.shape == (4, 3)
    assert outputs.isfinite().all()


@pytest.mark.parametrize("name", NETWORKS)
def test_nothing_stays_behind_when_a_network_changes_devices(name: str) -> None:
    """Only parameters and buffers move, so no tensor may be a plain attribute."""
    network = made(name, torch.rand(9, 4), torch.arange(9) % 3)
    plain = [
        (type(module).__name__, attribute)
        for module in network.modules()
        for attribute, value in vars(module).items()
        if isinstance(value, torch.Tensor)
    ]
    assert plain == []


def test_a_width_that_heads_do_not_divide() -> None:
    with pytest.raises(InputError, match="20"):
        ft_transformer_network(2, 2, width=20)


def test_a_package_that_lacks_a_package_of_its_own_is_not_taken_for_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torchless'", name="torchless")

    monkeypatch.setattr("c2tc_pipeline.common.registry.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="torchless"):
        bench_package("rtdl_num_embeddings")


@pytest.mark.parametrize("lite", [False, True])
def test_the_network_is_periodic_then_linear_then_rectified(lite: bool) -> None:
    torch.manual_seed(0)
    network = MlpPlrClassifier((4,), frequencies=5, embedding=6, spread=0.7, lite=lite).build(2, 3)
    assert isinstance(network, torch.nn.Sequential)
    rows = torch.rand(7, 2)
    weights = dict(network[0].named_parameters())
    embedded = []
    for column in range(2):
        angles = 2 * math.pi * rows[:, column, None] * weights["periodic.weight"][column]
        waves = torch.cat([angles.cos(), angles.sin()], dim=1)
        if lite:
            linear = waves @ weights["linear.weight"].T + weights["linear.bias"]
        else:
            linear = waves @ weights["linear.weight"][column] + weights["linear.bias"][column]
        embedded.append(linear.clamp(min=0))
    assert torch.cat(embedded, dim=1).shape == (7, 12)
    torch.testing.assert_close(network(rows), network[2](torch.cat(embedded, dim=1)))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=12),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_quantiles_are_those_of_repeated_rows(pairs: list[tuple[int, int]], share: float) -> None:
    values, counts = (np.array(numbers) for numbers in zip(*pairs, strict=True))
    expected = np.quantile(np.repeat(values, counts), share, method="inverted_cdf")
    rows = torch.tensor(values, dtype=torch.float32)[:, None]
    # Weights as the trainer gives them: 1 on average.
    weights = torch.tensor(counts, dtype=torch.float32)
    assert weighted_quantile(rows, weights / weights.mean(), share).tolist() == [expected]


def test_columns_are_scaled_robustly_and_clipped_smoothly() -> None:
    scaling = RobustScaling(3)
    usual = torch.arange(101.0)
    rows = torch.stack([usual, torch.where(usual < 90, 0.0, 8.0), torch.full((101,), 7.0)], dim=1)
    scaling.fit(rows, torch.ones(101))
    # Median 50 and quartiles 25 and 75; equal quartiles and a range of 8; a constant.
    scaled = torch.tensor([[100.0, 8.0, 7.0], [50.0, 0.0, 9.0], [1e12, -1e12, 1.0]])
    one, two = 1 / np.sqrt(1 + 1 / 9), 2 / np.sqrt(1 + 4 / 9)
    expected = torch.tensor([[one, two, 0.0], [0.0, 0.0, 0.0], [3.0, -3.0, 0.0]])
    torch.testing.assert_close(scaling(scaled)[1:], expected[1:].float())
    torch.testing.assert_close(scaling(scaled)[0], torch.tensor([one, two, 0.0]).float())


def test_an_untrained_network_takes_no_side_and_smooths_labels() -> None:
    network = RealMlpNetwork(2, 4, (8,), smoothing=0.1)
    rows, classes = torch.rand(3, 2), torch.tensor([0, 1, 3])
    assert (network(rows) == 0).all()
    last = network.layers[-1]
    assert isinstance(last, NtpLinear)
    torch.nn.init.normal_(last.weight)
    shares = network(rows).log_softmax(dim=1)
    target = 0.9 * torch.nn.functional.one_hot(classes, 4) + 0.1 / 4
    torch.testing.assert_close(network.row_losses(rows, classes, torch.arange(3)), -(target * shares).sum(dim=1))


def small() -> TabNetNetwork:
    return TabNetNetwork(3, 2, width=4, looks=2)


@pytest.mark.parametrize("rows", [2, 3, 40, 65, 257, 500, 1025])
def test_weights_move_whatever_the_number_of_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    normalise = SameVarianceNorm.forward

    def counted(self: SameVarianceNorm, batch: torch.Tensor) -> torch.Tensor:
        seen.append(len(batch))
        return normalise(self, batch)

    monkeypatch.setattr(SameVarianceNorm, "forward", counted)
    torch.manual_seed(0)
    x = torch.rand(rows, 3)
    start: list[torch.Tensor] = []

    def build() -> torch.nn.Module:
        network = small()
        start.extend(tensor.detach().clone() for tensor in network.parameters())
        return network

    recipe = Recipe("adamw", 1e-2, 0.0, epochs=2, batch_size=64)
    trained = train(build, x, torch.arange(rows) % 2, torch.ones(rows), recipe=recipe, seed=0)
    moved = [not torch.equal(before, after) for before, after in zip(start, trained.parameters(), strict=True)]
    assert all(moved)
    assert min(seen) >= 2
    assert sum(seen) >= 2 * rows
    assert trained(x).isfinite().all()


def test_no_group_has_a_single_row() -> None:
    for rows in range(2, 40_000):
        groups = int(np.ceil(rows / ghost_rows(rows)))
        size = -(-rows // groups)
        last = rows - (-(-rows // size) - 1) * size
        assert last == rows or last >= 65


def test_the_loss_is_cross_entropy_and_the_price_of_columns() -> None:
    torch.manual_seed(0)
    network = small().eval()
    rows, classes, numbers = torch.rand(5, 3), torch.tensor([0, 1, 0, 1, 1]), torch.arange(5)
    plain = torch.nn.functional.cross_entropy(network(rows), classes, reduction="none")
    # Entropy of each look's choice of columns.
    _, masks = network.tabnet.forward_masks(rows)
    entropy = -sum((mask * (mask + 1e-15).log()).sum(dim=1).mean() for mask in masks.values()) / len(masks)
    assert entropy > 0.01
    network.sparsity = 2.0
    torch.testing.assert_close(network.row_losses(rows, classes, numbers), plain + 2 * entropy)


def test_predictions_follow_the_variance_of_training() -> None:
    """Trained on three rows to rest, the network predicts what it was trained to."""
    torch.manual_seed(0)
    rows, norm = torch.rand(3, 2), SameVarianceNorm(2, momentum=1.0)
    torch.testing.assert_close(norm(rows), norm.eval()(rows))
    torch.testing.assert_close(norm.train()(rows), torch.nn.BatchNorm1d(2)(rows))


def brute_force(queries: torch.Tensor, keys: torch.Tensor, count: int, own: torch.Tensor | None) -> torch.Tensor:
    found = []
    for number, query in enumerate(queries):
        distances = [((query - key).square().sum().item(), place) for place, key in enumerate(keys)]
        others = [pair for pair in sorted(distances) if own is None or pair[1] != own[number]]
        found.append([place for _, place in others[:count]])
    return torch.tensor(found)


@pytest.mark.parametrize("block", [1, 50, 1 << 24])
@pytest.mark.parametrize("leave_out", [False, True])
def test_neighbours_are_those_of_brute_force(block: int, leave_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "_BLOCK_DISTANCES", block)
    generator = torch.Generator().manual_seed(1)
    keys = torch.rand(30, 4, generator=generator)
    own = torch.randint(-1, 30, (12,), generator=generator) if leave_out else None
    queries = torch.rand(12, 4, generator=generator) if own is None else keys[own.clamp(min=0)]
    assert torch.equal(nearest_keys(queries, keys, 5, excluded=own), brute_force(queries, keys, 5, own))


def seen(rows: int, **settings: int) -> tuple[TabrNetwork, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    network = TabrNetwork(3, 2, width=8, **settings)
    x, y = torch.rand(rows, 3), torch.arange(rows) % 2
    network.see(x, y, torch.ones(rows))
    torch.nn.init.normal_(network.label_values.weight)
    return network, x, y


def watched(network: TabrNetwork, monkeypatch: pytest.MonkeyPatch) -> list[tuple[torch.Tensor, torch.Tensor | None]]:
    """Return a list that fills with the neighbours found and the candidates that were left out."""
    calls: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    find = network.neighbours

    def neighbours(rows: torch.Tensor, keys: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        calls.append((find(rows, keys, own), own))
        return calls[-1][0]

    monkeypatch.setattr(network, "neighbours", neighbours)
    return calls


@pytest.mark.parametrize(("rows", "context"), [(2, 1), (3, 2), (40, 10), (150, 37), (500, 96)])
def test_a_training_row_is_never_its_own_neighbour(rows: int, context: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, y = seen(rows)
    calls = watched(network, monkeypatch)
    numbers = torch.randperm(rows)[:20]
    network.row_losses(x[numbers], y[numbers], numbers)
    [(found, _)] = calls
    assert found.shape == (len(numbers), context)
    assert (found != numbers[:, None]).all()
    # The same row as one to predict is its own nearest.
    calls.clear()
    network(x[numbers])
    assert torch.equal(calls[0][0][:, 0], numbers)


def test_more_rows_than_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, y = seen(60, max_candidates=20, context=10)
    places = network.candidate_of_row
    assert (places >= 0).sum() == 20
    for row, place in enumerate(places.tolist()):
        assert place < 0 or torch.equal(network.candidates[place], x[row])
    calls = watched(network, monkeypatch)
    assert network.row_losses(x, y, torch.arange(60)).isfinite().all()
    assert (calls[0][0] != places[:, None]).all()


def test_the_output_is_the_formula_neighbour_by_neighbour() -> None:
    network, x, y = seen(20, context=5)
    rows = torch.rand(4, 3)
    expected = []
    for row in rows:
        encoded = network.encoder(row)
        key, keys = network.key(encoded), network.key(network.encoder(x))
        distances = (key - keys).square().sum(dim=1)
        near = distances.argsort()[:5]
        shares = (-distances[near]).softmax(dim=0)
        for share, other in zip(shares, near, strict=True):
            difference = network.difference_out(network.difference_in(key - keys[other]).relu())
            encoded = encoded + share * (network.label_values(y[other]) + difference)
        expected.append(network.head(encoded + network.block(encoded)))
    torch.testing.assert_close(network(rows), torch.stack(expected), rtol=1e-4, atol=1e-5)
