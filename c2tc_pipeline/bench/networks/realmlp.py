"""RealMLP-TD-S: a multilayer perceptron with the tricks that helped most over many tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch


class RobustScaling(torch.nn.Module):
    """Columns around their median, in units of their interquartile range, with far values drawn in.

    The bounds come from :meth:`fit`, not from gradients. A column whose quartiles are equal is scaled by half its
    range, a constant one becomes 0. A value z in those units becomes z / sqrt(1 + (z / 3)^2), within -3 and 3.

    Parameters
    ----------
    features : int
        Columns.

    Examples
    --------
    >>> scaling = RobustScaling(1)
    >>> scaling.fit(torch.tensor([[0.0], [1.0], [2.0]]), torch.ones(3))
    >>> scaling(torch.tensor([[1.0], [1e9]])).tolist()
    [[0.0], [3.0]]
    """

    median: torch.Tensor
    factor: torch.Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("median", torch.zeros(features))
        self.register_buffer("factor", torch.ones(features))

    def fit(self, rows: torch.Tensor, weights: torch.Tensor) -> None:
        """Take the bounds from rows; a row of weight two counts as two rows."""
        lower, median, upper = (weighted_quantile(rows, weights, share) for share in (0.25, 0.5, 0.75))
        half_range = (rows.amax(dim=0) - rows.amin(dim=0)) / 2
        width = torch.where(upper > lower, upper - lower, half_range)
        self.median.copy_(median)
        self.factor.copy_(torch.where(width > 0, 1 / width, torch.zeros_like(width)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows scaled."""
        scaled = (rows - self.median) * self.factor
        return scaled / (1 + (scaled / 3) ** 2).sqrt()


def weighted_quantile(rows: torch.Tensor, weights: torch.Tensor, share: float) -> torch.Tensor:
    """Return, column by column, the least value with that share of the weight at or below it.

    Examples
    --------
    >>> weighted_quantile(torch.tensor([[3.0], [1.0], [2.0]]), torch.tensor([2.0, 1.0, 1.0]), 0.5)
    tensor([2.])
    """
    values, order = rows.sort(dim=0)
    reached = weights[order].cumsum(dim=0)
    # Sums of float32 may fall short of a share by their rounding.
    place = (reached < share * reached[-1] * (1 - 1e-6)).sum(dim=0)
    return values.gather(0, place[None])[0]


class ScaledParameter(torch.nn.Module):
    """A parameter that moves ``speed`` times as fast as others under Adam, whose steps do not depend on its units.

    Examples
    --------
    >>> ScaledParameter(torch.ones(2), speed=6.0)().tolist()
    [1.0, 1.0]
    """

    def __init__(self, start: torch.Tensor, *, speed: float) -> None:
        super().__init__()
        self.speed = speed
        self.value = torch.nn.Parameter(start / speed)

    def forward(self) -> torch.Tensor:
        """Return the parameter."""
        return self.speed * self.value


class NtpLinear(torch.nn.Module):
    """A linear layer in the neural tangent parametrisation: weights of size 1, divided by the root of their number.

    Examples
    --------
    >>> NtpLinear(4, 2, zero=True)(torch.ones(1, 4)).tolist()
    [[0.0, 0.0]]
    """

    def __init__(self, before: int, after: int, *, zero: bool = False) -> None:
        super().__init__()
        size = 0.0 if zero else 1.0
        self.weight = torch.nn.Parameter(size * torch.randn(before, after))
        self.bias = ScaledParameter(size * torch.randn(after), speed=0.1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows transformed."""
        return rows @ self.weight / math.sqrt(len(self.weight)) + self.bias()


class ParametricSelu(torch.nn.Module):
    """SELU in a learnt proportion with the identity, unit by unit; all SELU at the start."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.share = ScaledParameter(torch.ones(units), speed=0.1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the rows transformed."""
        return torch.lerp(rows, torch.nn.functional.selu(rows), self.share())


class RealMlpNetwork(torch.nn.Module):
    """RealMLP-TD-S of Holzmueller et al. 2024, less what belongs to a trainer.

    There are: robust scaling and smooth clipping, a learnt factor for each column at six times the rate, layers in the
    neural tangent parametrisation, biases at a tenth of the rate, SELU, an output of zeros at the start, label
    smoothing, and, from the larger RealMLP-TD, parametric activations. There are not: one-hot codes (columns come
    encoded), the learning-rate schedule with four cosine cycles and Adam's shorter memory of squares (0.95) (the recipe
    decides, as for every network), and of RealMLP-TD numerical embeddings, dropout, the start of biases from data, and
    ensembles.

    Parameters
    ----------
    features, classes : int
        Numbers a row that go in and come out.
    widths : sequence of int, default=(256, 256, 256)
        Units of each hidden layer.
    smoothing : float, default=0.1
        Share of a label that is spread evenly over all classes.

    Examples
    --------
    >>> RealMlpNetwork(3, 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self, features: int, classes: int, widths: Sequence[int] = (256, 256, 256), *, smoothing: float = 0.1
    ) -> None:
        super().__init__()
        self.smoothing = smoothing
        self.scaling = RobustScaling(features)
        self.column_factors = ScaledParameter(torch.ones(features), speed=6.0)
        layers: list[torch.nn.Module] = []
        for before, after in itertools.pairwise([features, *widths]):
            layers += [NtpLinear(before, after), ParametricSelu(after)]
        self.layers = torch.nn.Sequential(*layers, NtpLinear([features, *widths][-1], classes, zero=True))

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Scale columns by what is usual among the training rows."""
        self.scaling.fit(rows, weights)

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row with its label smoothed."""
        return torch.nn.functional.cross_entropy(self(rows), classes, reduction="none", label_smoothing=self.smoothing)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return one number a class for each row."""
        return torch.as_tensor(self.layers(self.scaling(rows) * self.column_factors()))
