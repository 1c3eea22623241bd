"""TabR, which looks at the training rows most like a row."""

from __future__ import annotations

import numpy as np
import torch

from c2tc_pipeline.bench.networks.tabr import TabrNetwork
from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe


class TabrClassifier(NetworkClassifier):
    """TabR: a row is judged together with its nearest training rows, in a space that is learnt.

    See :class:`~c2tc_pipeline.bench.networks.tabr.TabrNetwork`. Weights count in the loss, not among neighbours: a
    row given twice would find itself, one of weight two does not.

    Parameters
    ----------
    width : int, default=64
        Numbers that a row is encoded in.
    context : int, default=96
        Neighbours of a row; with n training rows, at most n - 1.
    most_candidates : int, default=12_000
        Training rows among which neighbours are looked for; if there are more, so many are drawn by lot.
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
    >>> short = Recipe("adamw", 0.006, 0.0, epochs=40, batch_size=256)
    >>> model = TabrClassifier(width=8, recipe=short).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        *,
        width: int = 64,
        context: int = 96,
        most_candidates: int = 12_000,
        recipe: str | Recipe = "default",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.width = width
        self.context = context
        self.most_candidates = most_candidates
        self.recipe = recipe
        self.device = device
        self.random_state = random_state

    def build(self, features: int, classes: int) -> torch.nn.Module:
        """Return an untrained network from ``features`` numbers to ``classes`` numbers a row."""
        return TabrNetwork(
            features, classes, width=self.width, context=self.context, most_candidates=self.most_candidates
        )
