"""Models that evaluate a training set, all scikit-learn classifiers.

A model takes rows in [0, 1] and sample weights, can be fitted to three rows, and stores its parameters in ``__init__``
only. To add one, write a file and name it in :data:`MODELS`. The bench adds its networks on import.
"""

from __future__ import annotations

from typing import Any

from c2tc_pipeline.common.registry import Registry

MODELS = Registry(
    "model",
    {
        "mlp": f"{__name__}.network:MlpClassifier",
        "boosting": f"{__name__}.sklearn_models:BoostingClassifier",
        "lightgbm": f"{__name__}.lightgbm:LightGbmClassifier",
        "logistic": f"{__name__}.sklearn_models:LogisticClassifier",
        "neighbour": f"{__name__}.sklearn_models:NeighbourClassifier",
    },
)
"""Every model by its name in tables of scores."""


def make_model(name: str, *, recipe: str = "default", seed: int = 0, device: str = "auto") -> Any:
    """Return an unfitted model by its name."""
    return MODELS.make(name, recipe=recipe, random_state=seed, device=device)
