"""Models that judge a training set, one file each, all scikit-learn classifiers.

A model takes rows in [0, 1] and sample weights, survives three rows, and stores its parameters in ``__init__`` only. To
add one, write a file and name it in :data:`MODELS`; it then shows up wherever models are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

from c2tc_pipeline.errors import InputError

ModelFactory = Callable[[str, int, str], ClassifierMixin]
"""Called with (recipe, seed, device); models that are no networks make no use of recipe and device."""


def _mlp(recipe: str, seed: int, device: str) -> ClassifierMixin:
    from c2tc_pipeline.evaluation.models.mlp import MlpClassifier

    return MlpClassifier(recipe=recipe, device=device, random_state=seed)


def _boosting(recipe: str, seed: int, device: str) -> ClassifierMixin:
    from c2tc_pipeline.evaluation.models.boosting import BoostingClassifier

    return BoostingClassifier(random_state=seed)


MODELS: dict[str, ModelFactory] = {"mlp": _mlp, "boosting": _boosting}
"""Every model by its name in tables of scores."""


def make_model(name: str, *, recipe: str = "default", seed: int = 0, device: str = "auto") -> Any:
    """Return an unfitted model by its name.

    Parameters
    ----------
    name : str
        One of :data:`MODELS`.
    recipe : str
        How networks are trained; see :data:`~c2tc_pipeline.evaluation.training.RECIPES`.
    seed : int
        The model's ``random_state``.
    device : {"auto", "cpu", "cuda", "mps"}
        Where networks are trained.

    Examples
    --------
    >>> make_model("boosting", seed=3).random_state
    3
    """
    if name not in MODELS:
        raise InputError(f"Model {name!r} is unknown; choose one of: {', '.join(MODELS)}.")
    return MODELS[name](recipe, seed, device)
