"""Relays: the networks through which rival methods look at rows.

What belongs here: building them, looking at their embeddings and their weights as one vector, and what they cost in
memory. What does not: what is matched, which is the business of each method. Relays run in evaluation mode, without
dropout, so that real and synthetic rows pass through the same function.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models.network import mlp_network

RELAYS = ("mlp", "ft_transformer")

NetworkBuilder = Callable[[int, int], torch.nn.Module]


def relay_builder(
    relay: str | NetworkBuilder, features: int, classes: int, *, smooth: bool = False, device: str = "cpu"
) -> Callable[[], torch.nn.Module]:
    """Return a function that builds a freshly initialised relay.

    Weights are drawn on the CPU, so that a seed means the same networks on every device.

    Parameters
    ----------
    relay : {"mlp", "ft_transformer"} or callable
        Which network. A callable is given the number of columns and of classes, and what it returns is left as it is.
    features, classes : int
        Its inputs and outputs.
    smooth : bool
        Whether layers of ReLU become GELU. Methods that differentiate a gradient need it: a ReLU that no synthetic row
        switches on has a gradient of zero and none of its own, so no row is ever moved to switch it on.
    device : str
        Where it will run.

    Examples
    --------
    >>> relay_builder("mlp", 3, 2)()(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """
    builder = relay if callable(relay) else _named(relay, smooth)
    return lambda: builder(features, classes).to(device).eval()


def _named(relay: str, smooth: bool) -> NetworkBuilder:
    if relay not in RELAYS:
        raise InputError(f"Relay {relay!r} is unknown; choose one of: {', '.join(RELAYS)}.")
    builder: NetworkBuilder = mlp_network
    if relay == "ft_transformer":
        from c2tc_pipeline.bench.networks.ft_transformer import ft_transformer_network

        builder = ft_transformer_network
    return (lambda features, classes: _smoothed(builder(features, classes))) if smooth else builder


def _smoothed(network: torch.nn.Module) -> torch.nn.Module:
    for name, module in list(network.named_modules()):
        if isinstance(module, torch.nn.ReLU):
            network.set_submodule(name, torch.nn.GELU())
    return network


def without_head(network: torch.nn.Module) -> torch.nn.Module:
    """Take the last linear layer off a network, so that it returns embeddings; of a linear network nothing is left.

    Examples
    --------
    >>> without_head(mlp_network(3, 2, (8,)))(torch.zeros(5, 3)).shape
    torch.Size([5, 8])
    >>> without_head(mlp_network(3, 2, ()))(torch.ones(1, 3)).tolist()
    [[1.0, 1.0, 1.0]]
    """
    name = [name for name, module in network.named_modules() if isinstance(module, torch.nn.Linear)][-1]
    if not name:
        return torch.nn.Identity()
    network.set_submodule(name, torch.nn.Identity())
    return network


def named_views(network: torch.nn.Module, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    """Cut a vector into tensors with the names and shapes of a network's weights, for ``torch.func.functional_call``.

    Examples
    --------
    >>> views = named_views(torch.nn.Linear(2, 1), torch.tensor([1.0, 2.0, 3.0]))
    >>> views["weight"].tolist(), views["bias"].tolist()
    ([[1.0, 2.0]], [3.0])
    """
    named = [(name, tensor) for name, tensor in network.named_parameters() if tensor.requires_grad]
    parts = weights.split([tensor.numel() for _, tensor in named])
    return {name: part.view(tensor.shape) for (name, tensor), part in zip(named, parts, strict=True)}


def weight_bytes(network: torch.nn.Module) -> int:
    """Return the size of a network's weights.

    Examples
    --------
    >>> weight_bytes(torch.nn.Linear(9, 1))
    40
    """
    return sum(tensor.numel() * tensor.element_size() for tensor in network.parameters())


def row_bytes(network: torch.nn.Module, features: int) -> int:
    """Return what a network keeps of one row for its backward pass.

    Examples
    --------
    >>> row_bytes(torch.nn.Sequential(torch.nn.Linear(3, 10), torch.nn.Tanh()), 3)
    52
    """
    first = next(network.parameters())
    weights = {tensor.untyped_storage().data_ptr() for tensor in network.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    rows = torch.zeros(2, features, dtype=first.dtype, device=first.device)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(rows)
    return sum(storage.nbytes() for storage in kept.values()) // len(rows)
