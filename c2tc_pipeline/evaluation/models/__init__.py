"""Models that judge a training set, one file each, all scikit-learn classifiers.

A model takes rows in [0, 1] and sample weights, survives three rows, and stores its parameters in ``__init__`` only. To
add one, write a file and name it in :data:`MODELS`; it then shows up wherever models are compared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from sklearn.base import ClassifierMixin

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.networks.packages import bench_package

ModelFactory = Callable[[str, int, str], ClassifierMixin]
"""Called with (recipe, seed, device); a model takes what it has use for."""


def _made(file: str, name: str, *settings: str, package: str | None = None) -> ModelFactory:
    """Return a factory for the class of that name, which takes those of recipe, seed and device that are named."""

    def factory(recipe: str, seed: int, device: str) -> ClassifierMixin:
        if package is not None:
            bench_package(package)
        known = {"recipe": recipe, "random_state": seed, "device": device}
        # Torch and scikit-learn take seconds to import, and a name may be all that is wanted.
        model = getattr(importlib.import_module(f"{__name__}.{file}"), name)
        return model(**{setting: known[setting] for setting in settings})

    return factory


_NETWORK = ("recipe", "random_state", "device")

MODELS: dict[str, ModelFactory] = {
    "mlp": _made("mlp", "MlpClassifier", *_NETWORK),
    "mlp_plr": _made("mlp_plr", "MlpPlrClassifier", *_NETWORK, package="rtdl_num_embeddings"),
    "realmlp": _made("realmlp", "RealMlpClassifier", *_NETWORK),
    "ft_transformer": _made("ft_transformer", "FtTransformerClassifier", *_NETWORK, package="rtdl_revisiting_models"),
    "tabnet": _made("tabnet", "TabNetClassifier", *_NETWORK, package="pytorch_tabnet.tab_network"),
    "tabr": _made("tabr", "TabrClassifier", *_NETWORK),
    "boosting": _made("boosting", "BoostingClassifier", "random_state"),
    "logistic": _made("logistic", "LogisticClassifier"),
    "neighbour": _made("neighbour", "NeighbourClassifier"),
}
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
        The model's ``random_state``, if it draws anything by lot.
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
