"""TabNet: several looks at a row, each at a few columns that it chooses itself."""

from __future__ import annotations

import math

import torch

from c2tc_pipeline.common.registry import bench_package

# Rows that are normalised together, and the most such groups in a batch. With up to 64 groups of 128 rows or more, the
# last group, which is what the others leave, has at least 65 rows.
_GHOST_ROWS = 128
_MOST_GHOSTS = 64
# How fast what is known of means and variances follows the batches. The package's 0.02 would still hold an eighth of
# the start after the 100 steps of a short training.
_MOMENTUM = 0.05


class SameVarianceNorm(torch.nn.BatchNorm1d):
    """Batch normalisation that remembers the variance by which it divides.

    torch remembers the estimate for a whole population, half as large again with three rows. Over the many layers of a
    TabNet, a network trained on few rows would then predict something else than it was trained to.

    Examples
    --------
    >>> norm = SameVarianceNorm(1, momentum=1.0)
    >>> _ = norm(torch.tensor([[0.0], [2.0]]))
    >>> norm.running_mean.item(), norm.running_var.item()
    (1.0, 1.0)
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows normalised."""
        if not self.training:
            return super().forward(rows)
        with torch.no_grad():
            variance, mean = torch.var_mean(rows, dim=0, correction=0)
            self.running_mean.lerp_(mean, self.momentum or 0.0)
            self.running_var.lerp_(variance, self.momentum or 0.0)
        return torch.nn.functional.batch_norm(rows, None, None, self.weight, self.bias, training=True, eps=self.eps)


class TabNetNetwork(torch.nn.Module):
    """The TabNet of Arik and Pfister 2021, with ghost batches as large as the batch allows.

    A batch is cut into groups that are normalised apart, of at least 128 rows, so that no group has a single row;
    a batch of fewer than 256 rows is one group. A lone training row is taken twice. Unlike the package's, the last
    layer has a bias.

    Parameters
    ----------
    features, classes : int
        Numbers a row that go in and come out.
    width : int, default=16
        Numbers that each look hands on, to the output and to the next look.
    looks : int, default=3
        Looks at a row.
    reuse : float, default=1.3
        How freely a look may choose columns that another has chosen; 1 lets each column be chosen once.
    sparsity : float, default=0.001
        How much it costs to look at many columns at a time.

    Examples
    --------
    >>> network = TabNetNetwork(3, 2).eval()
    >>> network(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
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
        self.tabnet = tabnet.TabNetNoEmbeddings(
            features,
            classes,
            n_d=width,
            n_a=width,
            n_steps=looks,
            gamma=reuse,
        )
        # A second normalisation that the package makes and never uses.
        self.tabnet.initial_bn = torch.nn.Identity()
        # Without it, classes would be equally likely wherever columns say nothing.
        self.tabnet.final_mapping.bias = torch.nn.Parameter(torch.zeros(classes))
        # A plain attribute there, which would stay behind when the network goes to a device.
        encoder = self.tabnet.encoder
        columns = encoder.group_attention_matrix
        del encoder.group_attention_matrix
        encoder.register_buffer("group_attention_matrix", columns, persistent=False)
        self._ghosts = [module for module in self.tabnet.modules() if isinstance(module, tabnet.GBN)]
        for ghost in self._ghosts:
            ghost.bn = SameVarianceNorm(ghost.input_dim, momentum=_MOMENTUM)
        encoder.initial_bn = SameVarianceNorm(features, momentum=_MOMENTUM)

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Set what is known of the columns' mean and variance at once; the steps would approach it slowly."""
        normalisation = self.tabnet.encoder.initial_bn
        normalisation.running_mean.copy_(rows.mean(dim=0))
        normalisation.running_var.copy_(rows.var(dim=0, correction=0))

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row and, in equal parts, what looking at many columns costs."""
        together = rows if len(rows) > 1 else rows.expand(2, -1)
        for ghost in self._ghosts:
            ghost.virtual_batch_size = ghost_rows(len(together))
        outputs, negative_entropy = self.tabnet(together)
        losses = torch.nn.functional.cross_entropy(outputs[: len(rows)], classes, reduction="none")
        return losses - self.sparsity * negative_entropy

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return one number a class for each row."""
        return torch.as_tensor(self.tabnet(rows)[0])


def ghost_rows(rows: int) -> int:
    """Return how many rows of a batch are normalised together.

    Examples
    --------
    >>> [ghost_rows(rows) for rows in (3, 255, 256, 1_025, 100_000)]
    [3, 255, 128, 129, 1563]
    """
    return math.ceil(rows / min(max(rows // _GHOST_ROWS, 1), _MOST_GHOSTS))
