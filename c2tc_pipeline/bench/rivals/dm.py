"""Distribution matching: class means of embeddings under random networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from c2tc_pipeline.bench.rivals.matching import MatchingSampler, Task
from c2tc_pipeline.bench.rivals.relay import NetworkBuilder, row_bytes, weight_bytes, without_head


class DistributionMatching(MatchingSampler):
    """Learn rows whose classes have the same mean embeddings as real ones (Zhao and Bilen, WACV 2023).

    Every step builds a relay with fresh weights, embeds a batch of real rows and the synthetic rows of each class, and
    moves the synthetic rows along the gradient of the squared distance between class means, summed over classes.

    Parameters
    ----------
    ratio : float, default=0.01
        Share of the rows that is kept; ignored when ``rows`` is given.
    rows : int, optional
        Synthetic rows in all.
    relay : {"mlp", "ft_transformer"} or callable, default="mlp"
        The network; its embedding is what goes into its last linear layer. A callable is given the number of columns
        and of classes.
    steps : int, default=2000
        Steps of the rows, each with a network of its own; 20,000 in the method's paper.
    learning_rate : float, default=0.01
        Length of the first step, in columns of range 1; shrinks to nothing along a cosine.
    batch_size : int, default=256
        Real rows a class and step, as in the method's paper.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where networks run.
    time_limit : float, optional
        Seconds after which OutOfTime is raised; the C2TC paper allows 24 hours.
    memory_limit : float, optional
        Bytes; OutOfMemory is raised before the start when the estimate is above.
    random_state : int, default=0
        The same seed gives the same rows.

    Attributes
    ----------
    losses_ : ndarray of shape (steps,)
        The loss before each step; noisy, since every step has another network.

    Notes
    -----
    Left out: the image method's augmentation. Synthetic rows beyond the first of a class have no reason to differ but
    their start, since only the mean is matched.

    Examples
    --------
    >>> X = np.random.default_rng(0).random((60, 2))
    >>> dm = DistributionMatching(rows=4, steps=20, device="cpu")
    >>> X_small, y_small = dm.fit_resample(X, np.arange(60) % 3)
    >>> X_small.shape, y_small.tolist()
    ((4, 2), [0, 0, 1, 2])
    """

    name = "DM"
    smooth = False

    def __init__(
        self,
        ratio: float = 0.01,
        *,
        rows: int | None = None,
        relay: str | NetworkBuilder = "mlp",
        steps: int = 2000,
        learning_rate: float = 0.01,
        batch_size: int = 256,
        device: str = "auto",
        time_limit: float | None = None,
        memory_limit: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.ratio = ratio
        self.rows = rows
        self.relay = relay
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.device = device
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.random_state = random_state

    def start(self, task: Task) -> _MeanMatcher:
        """Return what matches class means."""
        return _MeanMatcher(task, self.batch_size)

    def memory(self, task: Task) -> float:
        """Estimate: what the relay keeps of real and of synthetic rows."""
        relay = task.build()
        rows = np.minimum(task.real.sizes, self.batch_size).sum() + task.counts.sum()
        return float(weight_bytes(relay) + rows * row_bytes(relay, task.real.X.shape[1]))


def mean_distance(
    embed: torch.nn.Module, real: Sequence[torch.Tensor], synthetic: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the squared distance of the class means of embeddings, summed over classes.

    Parameters
    ----------
    embed : torch.nn.Module
        From rows to embeddings.
    real, synthetic : sequence of tensors of shape (rows, d)
        The rows of each class. Gradients flow into synthetic ones only.

    Examples
    --------
    >>> real = [torch.tensor([[0.0], [2.0]]), torch.tensor([[5.0]])]
    >>> mean_distance(torch.nn.Identity(), real, [torch.tensor([[3.0]]), torch.tensor([[4.0], [6.0]])]).item()
    4.0
    """
    with torch.no_grad():
        wanted = _class_means(embed, real)
    return (_class_means(embed, synthetic) - wanted).square().sum()


def _class_means(embed: torch.nn.Module, classes: Sequence[torch.Tensor]) -> torch.Tensor:
    embedded = embed(torch.cat(list(classes))).split([len(rows) for rows in classes])
    return torch.stack([rows.mean(dim=0) for rows in embedded])


class _MeanMatcher:
    """Matches class means under a new network at each step."""

    extras = ()

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
