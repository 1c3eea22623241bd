"""A multilayer perceptron over periodic features of every column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from c2tc_pipeline.bench.networks.mlp_plr import mlp_plr_network
from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe


class MlpPlrClassifier(NetworkClassifier):
    """MLP-PLR: each column becomes a few learnt waves of itself, then two rectified layers follow.

    See :func:`~c2tc_pipeline.bench.networks.mlp_plr.mlp_plr_network`. It needs the extra ``bench``.

    Parameters
    ----------
    widths : sequence of int, default=(256, 256)
        Units of each hidden layer.
    frequencies : int, default=16
        Frequencies a column.
    embedding : int, default=8
        Numbers that a column becomes.
    spread : float, default=0.1
        Standard deviation of the frequencies at the start. On validation rows 0.03, 0.1, 0.3 and 1 were within
        about a point of each other, and 1 was not half a point better than 0.1.
    lite : bool, default=False
        Whether all columns share one linear layer.
    recipe : str or Recipe, default="default"
        How it is trained; see :data:`~c2tc_pipeline.evaluation.training.RECIPES`.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where it is trained.
    random_state : int, RandomState or None, default=0
        Determines the start and the batches.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    network_ : torch.nn.Module
        The trained network.

    Examples
    --------
    >>> short = Recipe("adamw", 0.02, 0.0, epochs=40, batch_size=256)
    >>> model = MlpPlrClassifier((16,), recipe=short).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        widths: Sequence[int] = (256, 256),
        *,
        frequencies: int = 16,
        embedding: int = 8,
        spread: float = 0.1,
        lite: bool = False,
        recipe: str | Recipe = "default",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.widths = widths
        self.frequencies = frequencies
        self.embedding = embedding
        self.spread = spread
        self.lite = lite
        self.recipe = recipe
        self.device = device
        self.random_state = random_state

    def build(self, features: int, classes: int) -> torch.nn.Module:
        """Return an untrained network from ``features`` numbers to ``classes`` numbers a row."""
        return mlp_plr_network(
            features,
            classes,
            self.widths,
            frequencies=self.frequencies,
            embedding=self.embedding,
            spread=self.spread,
            lite=self.lite,
        )
