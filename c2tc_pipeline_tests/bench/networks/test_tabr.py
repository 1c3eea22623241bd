"""TabR's neighbours against brute force, and its sum over them against the formula written out."""

from __future__ import annotations

import pytest
import torch

from c2tc_pipeline.bench.networks import nearest
from c2tc_pipeline.bench.networks.nearest import nearest_keys
from c2tc_pipeline.bench.networks.tabr import TabrNetwork


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
    assert torch.equal(nearest_keys(queries, keys, 5, left_out=own), brute_force(queries, keys, 5, own))


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
    network, x, y = seen(60, most_candidates=20, context=10)
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


def test_gradients_reach_the_encoding_of_neighbours() -> None:
    """The row's own path is cut, so that what is left came through its neighbours."""
    network, _, _ = seen(12, context=5)
    used, places = torch.arange(5), torch.arange(5).repeat(2, 1)
    network._context(torch.zeros(2, 8), used, places).sum().backward()
    assert network.encoder.weight.grad is not None
    assert network.encoder.weight.grad.abs().sum() > 0


def test_prediction_goes_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    network, x, _ = seen(30)
    expected = network(x)
    monkeypatch.setattr("c2tc_pipeline.bench.networks.tabr._BLOCK_ROWS", 7)
    torch.testing.assert_close(network(x), expected)
