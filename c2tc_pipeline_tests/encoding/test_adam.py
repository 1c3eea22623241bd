"""The autoencoder's steps against torch's own Adam, with the same clipping and schedule."""

from __future__ import annotations

import math

import torch

from c2tc_pipeline.common.optimisers import AdamW, FlatWeights
from c2tc_pipeline.encoding.autoencoder_training import _clip, step_length


def test_they_move_parameters_as_torchs_adam_does() -> None:
    steps, rate = 40, 0.05
    inputs = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    targets = 30 * inputs.sum(dim=1, keepdim=True)
    ours, theirs = torch.nn.Linear(5, 1), torch.nn.Linear(5, 1)
    theirs.load_state_dict(ours.state_dict())

    flat = FlatWeights(ours)
    optimiser = AdamW(flat)
    expected = torch.optim.Adam(theirs.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        expected, lambda step: min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))
    )
    for _ in range(steps):
        flat.gradients.zero_()
        ((ours(inputs) - targets) ** 2).mean().backward()
        flat.gradients.mul_(_clip(flat.gradients))
        optimiser.step(step_length(rate, optimiser.taken, steps))
        expected.zero_grad()
        ((theirs(inputs) - targets) ** 2).mean().backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 5.0)
        expected.step()
        schedule.step()
    torch.testing.assert_close(ours.weight, theirs.weight, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(ours.bias, theirs.bias, rtol=1e-4, atol=1e-6)
