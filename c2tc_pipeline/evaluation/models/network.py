"""Base of the network models (tensors, training, probabilities), and the multilayer perceptron."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from c2tc_pipeline.common.devices import Place, on_device, resolve_device
from c2tc_pipeline.common.seeds import seed_of
from c2tc_pipeline.evaluation.models.base import ProbabilityClassifier, checked_weights
from c2tc_pipeline.evaluation.training import Recipe, recipe_named, train

# Rows that go through a network at once when it predicts.
_BLOCK_ROWS = 65_536


class NetworkClassifier(ProbabilityClassifier):
    """Base of classifiers that are torch networks.

    A subclass stores its parameters, ``recipe``, ``device`` and ``random_state`` among them, and returns the network
    from :meth:`build`. :attr:`rate_factor` scales the steps of a network, alike for every training set.
    """

    rate_factor = 1.0
    """Multiplies a recipe's learning rate under AdamW; not under SGD."""

    recipe: str | Recipe
    device: str
    random_state: int | np.random.RandomState | None

    @abstractmethod
    def build(self, features: int, classes: int) -> torch.nn.Module:
        """Return an untrained network from ``features`` numbers to ``classes`` numbers per row."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NetworkClassifier:
        """Train the network on rows X, best in [0, 1], their classes y and how much each row counts."""
        recipe, device = self.own_recipe(), resolve_device(self.device)
        rows, labels = validate_data(self, X, y, dtype=np.float32, order="C")
        check_classification_targets(labels)
        weights = checked_weights(sample_weight, rows)
        counted = weights > 0
        self.classes_, codes = np.unique(labels[counted], return_inverse=True)
        self.network_ = train(
            lambda: self.build(rows.shape[1], len(self.classes_)),
            torch.from_numpy(rows[counted]),
            torch.from_numpy(codes),
            torch.from_numpy(weights[counted]),
            recipe=recipe,
            seed=seed_of(self.random_state),
            device=device,
        )
        return self

    def own_recipe(self) -> Recipe:
        """Return the recipe with the model's rate factor."""
        recipe = recipe_named(self.recipe)
        if recipe.optimiser != "adamw":
            return recipe
        return replace(recipe, learning_rate=recipe.learning_rate * self.rate_factor)

    def predict_proba(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "network_")
        rows = torch.from_numpy(validate_data(self, X, reset=False, dtype=np.float32, order="C"))

        def attempt(place: Place) -> np.ndarray:
            network = self.network_.to(place.device)
            with torch.no_grad():
                # Doubles are made on the CPU: MPS has none.
                blocks = [
                    network(block.to(place.device)).cpu().double().softmax(dim=1)
                    for block in rows.split(place.part_of(min(len(rows), _BLOCK_ROWS)))
                ]
            return torch.cat(blocks).numpy()

        return on_device("network prediction", resolve_device(self.device), attempt)


def mlp_network(features: int, classes: int, widths: Sequence[int] = (256, 256)) -> torch.nn.Module:
    """Return an untrained network of rectified linear layers, without dropout or normalisation."""
    layers: list[torch.nn.Module] = []
    for before, after in itertools.pairwise([features, *widths]):
        layers += [torch.nn.Linear(before, after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear([features, *widths][-1], classes))


@dataclass(eq=False, repr=False)
class MlpClassifier(NetworkClassifier):
    """Layers of rectified linear units, two of 256 by default, without dropout or normalisation."""

    widths: Sequence[int] = (256, 256)
    _: KW_ONLY
    recipe: str | Recipe = "default"
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0

    def build(self, features: int, classes: int) -> torch.nn.Module:
        return mlp_network(features, classes, self.widths)
