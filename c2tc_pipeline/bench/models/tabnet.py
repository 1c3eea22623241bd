"""TabNet (Arik and Pfister 2021): sequential attention over columns, with a sparse choice at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from c2tc_pipeline.bench.models import bench_package
from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe

# Rows that are normalised together, and the most such groups in a batch. With up to 64 groups of 128 rows or more, the
# last group, which is what the others leave, has at least 65 rows.
_GHOST_ROWS = 128
_MAX_GHOSTS = 64
# Momentum of running means and variances. The package's 0.02 would still hold an eighth of the start after the 100
# steps of a short training.
_MOMENTUM = 0.05


@dataclass(kw_only=True, eq=False, repr=False)
class TabNetClassifier(NetworkClassifier):
    """The network of pytorch-tabnet with our trainer, which can train on fewer rows than a batch.

    Weights count in the loss, not in the batch normalisation: a weight of two is not quite a row given twice. The
    learning rate is thirty times the recipe's. ``looks`` is the number of attention steps, ``reuse`` the paper's gamma.

    Examples
    --------
    >>> short = Recipe("adamw", 0.0007, 0.0, epochs=100, batch_size=256, cosine=True)
    >>> model = TabNetClassifier(width=4, recipe=short).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    # Of 1, 3, 10 and 30, on validation rows: 1 point better than 10 there; with 1 and 3 it hardly learnt Covertype.
    rate_factor = 30.0

    width: int = 16
    looks: int = 3
    reuse: float = 1.3
    sparsity: float = 0.001
    recipe: str | Recipe = "default"
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0

    def build(self, features: int, classes: int) -> torch.nn.Module:
        return TabNetNetwork(
            features, classes, width=self.width, looks=self.looks, reuse=self.reuse, sparsity=self.sparsity
        )


class TabNetNetwork(torch.nn.Module):
    """pytorch-tabnet's module with ghost batches of at least 128 rows, so that none has a single row.

    A lone training row is used twice. Unlike the package's, the last layer has a bias.
    """

    least_batch = 2

    def __init__(
        self,
        features: int,
        classes: int,
        *,
        width: int = 16,
        looks: int = 3,
        reuse: float = 1.3,
        sparsity: float = 0.001,
    ) -> None:
        super().__init__()
        self.sparsity = sparsity
        tabnet = bench_package("pytorch_tabnet.tab_network")
        self.tabnet = tabnet.TabNetNoEmbeddings(features, classes, n_d=width, n_a=width, n_steps=looks, gamma=reuse)
        # A second normalisation that the package makes and never uses.
        self.tabnet.initial_bn = torch.nn.Identity()
        # Without it, classes would be equally likely wherever columns say nothing.
        self.tabnet.final_mapping.bias = torch.nn.Parameter(torch.zeros(classes))
        # A plain attribute there, which would stay behind when the network moves to a device.
        encoder = self.tabnet.encoder
        columns = encoder.group_attention_matrix
        del encoder.group_attention_matrix
        encoder.register_buffer("group_attention_matrix", columns, persistent=False)
        self._ghosts = [module for module in self.tabnet.modules() if isinstance(module, tabnet.GBN)]
        for ghost in self._ghosts:
            ghost.bn = SameVarianceNorm(ghost.input_dim, momentum=_MOMENTUM)
        encoder.initial_bn = SameVarianceNorm(features, momentum=_MOMENTUM)

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Set the running mean and variance of the columns at once; training would approach them slowly."""
        normalisation = self.tabnet.encoder.initial_bn
        normalisation.running_mean.copy_(rows.mean(dim=0))
        normalisation.running_var.copy_(rows.var(dim=0, correction=0))

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row plus an equal part of the sparsity penalty."""
        together = rows if len(rows) > 1 else rows.expand(2, -1)
        for ghost in self._ghosts:
            ghost.virtual_batch_size = ghost_rows(len(together))
        outputs, negative_entropy = self.tabnet(together)
        losses = torch.nn.functional.cross_entropy(outputs[: len(rows)], classes, reduction="none")
        return losses - self.sparsity * negative_entropy

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.tabnet(rows)[0])


class SameVarianceNorm(torch.nn.BatchNorm1d):
    """Batch normalisation that remembers the biased variance, by which it divides in training.

    torch remembers the unbiased one, half as large again with three rows. Over the many layers of a TabNet, a network
    trained on few rows would then predict something else than it was trained to.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return super().forward(rows)
        with torch.no_grad():
            variance, mean = torch.var_mean(rows, dim=0, correction=0)
            self.running_mean.lerp_(mean, self.momentum or 0.0)
            self.running_var.lerp_(variance, self.momentum or 0.0)
        return torch.nn.functional.batch_norm(rows, None, None, self.weight, self.bias, training=True, eps=self.eps)


def ghost_rows(rows: int) -> int:
    """Return how many rows of a batch are normalised together: all below 256, else 128 or more."""
    return math.ceil(rows / min(max(rows // _GHOST_ROWS, 1), _MAX_GHOSTS))
