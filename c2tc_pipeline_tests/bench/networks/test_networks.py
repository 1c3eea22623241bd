"""What every network shares: shapes, finite outputs, gradients in its inputs, one device."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from c2tc_pipeline.bench.networks.ft_transformer import ft_transformer_network
from c2tc_pipeline.bench.networks.mlp_plr import mlp_plr_network
from c2tc_pipeline.bench.networks.realmlp import RealMlpNetwork
from c2tc_pipeline.bench.networks.tabnet import TabNetNetwork
from c2tc_pipeline.bench.networks.tabr import TabrNetwork
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.evaluation.models.network import mlp_network
from c2tc_pipeline.evaluation.training import SeesTrainingRows, least_batch, row_losses

NETWORKS: dict[str, Callable[[int, int], torch.nn.Module]] = {
    "mlp": mlp_network,
    "mlp_plr": mlp_plr_network,
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


@pytest.mark.parametrize("name", ["mlp", "ft_transformer"])
def test_relays_are_differentiable_in_their_inputs(name: str) -> None:
    """In double precision, where a difference of outputs is as good as the gradient."""
    rows = torch.rand(3, 2, dtype=torch.double, requires_grad=True)
    torch.manual_seed(0)
    networks = {"mlp": mlp_network(2, 2, (8,)), "ft_transformer": ft_transformer_network(2, 2, blocks=1, width=8)}
    assert torch.autograd.gradcheck(networks[name].double(), (rows,))
    rows.grad = None
    networks[name](rows)[0, 0].backward()
    assert rows.grad is not None
    # A row's output depends on that row alone, and on every column of it.
    assert (rows.grad[0] != 0).all()
    assert (rows.grad[1:] == 0).all()


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


def test_only_batch_normalisation_needs_company() -> None:
    rows, classes = torch.rand(4, 2), torch.arange(4) % 3
    assert {name: least_batch(made(name, rows, classes)) for name in NETWORKS} == dict.fromkeys(NETWORKS, 1) | {
        "tabnet": 2
    }


def test_a_width_that_heads_do_not_divide() -> None:
    with pytest.raises(InputError, match=r"width 20 is no multiple of its 8 heads"):
        ft_transformer_network(2, 2, width=20)


def test_a_package_that_lacks_a_package_of_its_own_is_not_taken_for_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torchless'", name="torchless")

    monkeypatch.setattr("importlib.import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="torchless"):
        bench_package("rtdl_num_embeddings")
