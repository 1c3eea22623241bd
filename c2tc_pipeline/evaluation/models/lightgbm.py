"""LightGBM with settings that hold on few rows and on rare classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.common.seeds import seed_of
from c2tc_pipeline.evaluation.models.trees import PATIENCE, Rows, TreesClassifier, rows_of_a_leaf


@dataclass(kw_only=True, eq=False, repr=False)
class LightGbmClassifier(TreesClassifier):
    """LightGBM's boosted trees, with the settings of ``boosting``, on encoded rows or on source columns.

    ``penalty`` is LightGBM's ``lambda_l2``.

    Examples
    --------
    >>> model = LightGbmClassifier().fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    iterations: int = 200
    learning_rate: float = 0.1
    leaf_share: float = 0.02
    penalty: float = 10.0
    threads: int = 1
    random_state: int | np.random.RandomState | None = 0

    def fitted_trees(self, training: Rows, aside: Rows | None, categories: np.ndarray | None) -> Any:
        lightgbm = bench_package("lightgbm")
        classes, codes = np.unique(training.labels, return_inverse=True)
        least = rows_of_a_leaf(len(codes), self.leaf_share)
        settings = {
            **({"objective": "multiclass", "num_class": len(classes)} if len(classes) > 2 else {"objective": "binary"}),
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": least,
            # The default of three rows leaves no place to split three rows at.
            "min_data_in_bin": min(least, 3),
            # The fewest rows of a category that is split off, and the rows by which a rare one is discounted.
            "min_data_per_group": least,
            "cat_smooth": least / 2,
            "lambda_l2": self.penalty,
            "seed": seed_of(self.random_state),
            "num_threads": self.threads,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        category_columns = [] if categories is None else np.flatnonzero(categories).tolist()
        data = lightgbm.Dataset(
            training.X, codes, weight=training.weights, categorical_feature=category_columns, params=settings
        )
        if aside is None:
            return Trees(lightgbm.train(settings, data, self.iterations), classes)
        kept = data.create_valid(aside.X, np.searchsorted(classes, aside.labels), weight=aside.weights)
        stopping = lightgbm.early_stopping(PATIENCE, verbose=False)
        return Trees(lightgbm.train(settings, data, self.iterations, valid_sets=[kept], callbacks=[stopping]), classes)


class Trees:
    """LightGBM's trees with scikit-learn's ``predict_proba``."""

    def __init__(self, booster: Any, classes: np.ndarray) -> None:
        self.booster = booster
        self.classes_ = classes

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        """Return the probability of each class for each row."""
        found = np.asarray(self.booster.predict(rows))
        return np.column_stack([1 - found, found]) if found.ndim == 1 else found
