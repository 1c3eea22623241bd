"""Distribution matching (Zhao and Bilen, WACV 2023): class means of embeddings under random networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch

from c2tc_pipeline.bench.rivals.matching import MatchingSampler, Task, row_bytes, weight_bytes, without_head


@dataclass(eq=False, repr=False)
class DistributionMatching(MatchingSampler):
    """Learn rows whose classes have the same mean embeddings as real rows.

    Every step embeds a batch of real rows and the synthetic rows of each class with a fresh relay, and moves the
    synthetic rows along the gradient of the squared distance between class means. The method's paper takes 20,000
    steps. Only means are matched, so rows of a class differ by their start alone.
    """

    name = "DM"
    smooth = False

    _: KW_ONLY
    steps: int = 2000

    def start(self, task: Task) -> _MeanMatcher:
        """Return the matcher of class means."""
        return _MeanMatcher(task, self.batch_size)

    def memory(self, task: Task) -> float:
        """Estimate the activations of real and of synthetic rows."""
        relay = task.build()
        rows = np.minimum(task.real.sizes, self.batch_size).sum() + task.counts.sum()
        return float(weight_bytes(relay) + rows * row_bytes(relay, task.real.X.shape[1]))


def mean_distance(
    embed: torch.nn.Module, real: Sequence[torch.Tensor], synthetic: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the squared distance of the class means of embeddings, summed over classes."""
    with torch.no_grad():
        wanted = _class_means(embed, real)
    return (_class_means(embed, synthetic) - wanted).square().sum()


def _class_means(embed: torch.nn.Module, classes: Sequence[torch.Tensor]) -> torch.Tensor:
    embedded = embed(torch.cat(list(classes))).split([len(rows) for rows in classes])
    return torch.stack([rows.mean(dim=0) for rows in embedded])


class _MeanMatcher:
    """Matches class means under a new network at each step."""

    extras: Sequence[torch.nn.Parameter] = ()

    def __init__(self, task: Task, batch_size: int) -> None:
        self.task = task
        self.batch_size = batch_size

    def backward(self, rows: torch.Tensor) -> float:
        task = self.task
        embed = without_head(task.build()).requires_grad_(False)
        real = [task.real.take(task.real.draw(task.rng, code, self.batch_size)) for code in range(len(task.counts))]
        loss = mean_distance(embed, real, rows.split(task.counts.tolist()))
        loss.backward()
        return loss.item()
