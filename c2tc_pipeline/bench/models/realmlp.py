"""RealMLP-TD-S (Holzmueller et al. 2024): an MLP with tuned scaling, initialisation and activations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch

from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe


@dataclass(eq=False, repr=False)
class RealMlpClassifier(NetworkClassifier):
    """RealMLP-TD-S, reimplemented; :class:`RealMlpNetwork` lists what is left out.

    Its weights are some sixteen times as large as those of a usual layer, so that its learning rate is ten times the
    recipe's. ``smoothing`` is the label smoothing.

    Examples
    --------
    >>> short = Recipe("adamw", 0.005, 0.0, epochs=40, batch_size=256)
    >>> model = RealMlpClassifier((16,), recipe=short).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    # Of 0.3, 1, 3 and 10, on validation rows: 3 points better than 1 there, 1 better than 3.
    rate_factor = 10.0

    widths: Sequence[int] = (256, 256, 256)
    _: KW_ONLY
    smoothing: float = 0.1
    recipe: str | Recipe = "default"
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0

    def build(self, features: int, classes: int) -> torch.nn.Module:
        return RealMlpNetwork(features, classes, self.widths, smoothing=self.smoothing)


class RealMlpNetwork(torch.nn.Module):
    """RealMLP-TD-S without what belongs to a trainer.

    Included: robust scaling with smooth clipping, a learnt factor for each column at six times the learning rate, the
    neural tangent parametrisation, biases at a tenth of the learning rate, SELU, an output of zeros at the start, label
    smoothing, and parametric activations from the larger RealMLP-TD. Left out: one-hot codes (columns come encoded),
    the learning-rate schedule and Adam's betas (the recipe decides, as for every network), and of RealMLP-TD numerical
    embeddings, dropout, data-driven bias initialisation and ensembles.
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
        """Fit the scaling to the training rows."""
        self.scaling.fit(rows, weights)

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row with smoothed labels."""
        return torch.nn.functional.cross_entropy(self(rows), classes, reduction="none", label_smoothing=self.smoothing)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.layers(self.scaling(rows) * self.column_factors()))


class RobustScaling(torch.nn.Module):
    """Subtract the median, divide by the interquartile range, and clip smoothly to (-3, 3).

    A column whose quartiles are equal is divided by half its range, and a constant one becomes 0.
    """

    median: torch.Tensor
    factor: torch.Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("median", torch.zeros(features))
        self.register_buffer("factor", torch.ones(features))

    def fit(self, rows: torch.Tensor, weights: torch.Tensor) -> None:
        """Take median and quartiles from rows; a row of weight two counts as two rows."""
        lower, median, upper = (weighted_quantile(rows, weights, share) for share in (0.25, 0.5, 0.75))
        half_range = (rows.amax(dim=0) - rows.amin(dim=0)) / 2
        width = torch.where(upper > lower, upper - lower, half_range)
        self.median.copy_(median)
        self.factor.copy_(torch.where(width > 0, 1 / width, torch.zeros_like(width)))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        scaled = (rows - self.median) * self.factor
        return scaled / (1 + (scaled / 3) ** 2).sqrt()


def weighted_quantile(rows: torch.Tensor, weights: torch.Tensor, share: float) -> torch.Tensor:
    """Return for each column the smallest value with that share of the weight at or below it."""
    values, order = rows.sort(dim=0)
    reached = weights[order].cumsum(dim=0)
    # Sums of float32 may fall short of a share by their rounding.
    place = (reached < share * reached[-1] * (1 - 1e-6)).sum(dim=0)
    return values.gather(0, place[None])[0]


class ScaledParameter(torch.nn.Module):
    """A parameter that moves ``speed`` times as fast as others under Adam, whose steps do not depend on scale."""

    def __init__(self, start: torch.Tensor, *, speed: float) -> None:
        super().__init__()
        self.speed = speed
        self.value = torch.nn.Parameter(start / speed)

    def forward(self) -> torch.Tensor:
        return self.speed * self.value


class NtpLinear(torch.nn.Module):
    """A linear layer in the neural tangent parametrisation: unit weights, divided by the root of the fan-in."""

    def __init__(self, before: int, after: int, *, zero: bool = False) -> None:
        super().__init__()
        size = 0.0 if zero else 1.0
        self.weight = torch.nn.Parameter(size * torch.randn(before, after))
        self.bias = ScaledParameter(size * torch.randn(after), speed=0.1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows @ self.weight / math.sqrt(len(self.weight)) + self.bias()


class ParametricSelu(torch.nn.Module):
    """SELU mixed with the identity in a learnt proportion per unit; pure SELU at the start."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.share = ScaledParameter(torch.ones(units), speed=0.1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.lerp(rows, torch.nn.functional.selu(rows), self.share())
