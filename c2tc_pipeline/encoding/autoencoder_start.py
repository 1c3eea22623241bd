"""A start for the autoencoder: the best linear one, from principal components.

Ten epochs are few. From random weights they end above the loss of a plain PCA, so training starts at the PCA: the first
hidden units pass the components through (their biases keep the ReLUs open on every training row), the others are random
and find what is not linear.
"""

from __future__ import annotations

import torch

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_inputs import Inputs

# Directions tried beyond those wanted, and rounds of refining them: enough for the leading ones to settle.
_SPARE_DIRECTIONS = 8
_ROUNDS = 4
# How far open a ReLU is on the row that comes closest to closing it.
_MARGIN = 0.1


@torch.no_grad()
def start_at_components(
    model: FactorisedAutoencoder, inputs: Inputs, weight: torch.Tensor, generator: torch.Generator
) -> None:
    """Set a model's weights to a PCA of the weighted rows, as far as its layers are wide enough.

    Parameters
    ----------
    model : FactorisedAutoencoder
        Changed in place.
    inputs : Inputs
        All training rows.
    weight : tensor
        How many times each row counts.
    generator : torch.Generator
        Determines where the search for components begins.

    Examples
    --------
    >>> generator = torch.Generator().manual_seed(0)
    >>> model = FactorisedAutoencoder([torch.eye(3)], latent=2, hidden=4, generator=generator)
    >>> rows = torch.tensor([[0], [1], [2]])
    >>> start_at_components(model, model.inputs_at(rows), torch.ones(3), generator)
    >>> bool((model.loss(rows) < 1e-4).all())
    True
    """
    latent, hidden = model.w_code.shape[1], model.w_in.shape[1]
    wanted = min(latent, hidden, model.width)
    mean, directions = _components(inputs, weight, wanted, generator)
    places = inputs.times(directions) - mean @ directions
    low = places.min(dim=0).values - _MARGIN
    model.w_in[:, :wanted] = directions
    model.b_in[:wanted] = -low - mean @ directions
    # The code is scaled dimension by dimension later. Components of falling size would all be stretched to the same
    # length; turned at random, every dimension has a like share of each, and distances keep their proportions.
    turn = torch.linalg.qr(torch.randn(wanted, wanted, generator=generator, dtype=weight.dtype))[0].to(weight.device)
    model.w_code.zero_()
    model.w_code[:wanted, :wanted] = turn
    model.b_code[:wanted] = low @ turn
    model.w_back[:, :wanted] = 0
    model.w_back[:wanted, :wanted] = turn.T
    model.b_back[:wanted] = -low
    model.w_out.zero_()
    model.w_out[:, :wanted] = directions
    model.b_out.copy_(mean + directions @ low)


def _components(
    inputs: Inputs, weight: torch.Tensor, wanted: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean input and its leading principal directions, by subspace iteration on looked-up products."""
    total = weight.sum()
    mean = inputs.back(weight[:, None])[:, 0] / total
    tried = min(wanted + _SPARE_DIRECTIONS, len(mean))
    start = torch.randn(len(mean), tried, generator=generator, dtype=weight.dtype)
    directions = torch.linalg.qr(start.to(weight.device))[0]
    for _ in range(_ROUNDS):
        places = (inputs.times(directions) - mean @ directions) * weight[:, None]
        pulled = inputs.back(places) - torch.outer(mean, places.sum(dim=0))
        directions = torch.linalg.qr(pulled)[0]
    places = inputs.times(directions) - mean @ directions
    spread = (places * weight[:, None]).T @ places / total
    rotation = torch.linalg.eigh(spread)[1].flip(1)[:, :wanted]
    return mean, directions @ rotation
