"""Random samples of rows: uniform, stratified by class, and lightweight coresets weighted by distance."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.bench.rivals import ClassRival, CondensedClass, CondensedRows, Rival, centred_float32
from c2tc_pipeline.evaluation.trial import random_rows


class RandomRows(Rival):
    """The paper's "Random": a uniform sample. A class that no draw hits gets one row, see :func:`random_rows`."""

    def condense(self, X: np.ndarray, edges: np.ndarray, budget: int) -> CondensedRows:
        codes = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        chosen = random_rows(codes, budget, seed=self.random_state)
        return CondensedRows(X[chosen], codes[chosen], chosen=chosen)


class StratifiedRows(ClassRival):
    """A random sample within each class, each class in proportion to its size."""

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        return CondensedClass(chosen=np.sort(rng.choice(len(X), count, replace=False)))


class LightweightCoreset(ClassRival):
    """Lightweight coresets (Bachem, Lucic and Krause, KDD 2018), one for each class.

    Half of a row's probability is uniform and half is proportional to its squared distance from the class mean; a row
    drawn with probability q among m independent draws weighs 1 / (m q), so that weighted sums are unbiased.
    """

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        rows = centred_float32(X)
        squares = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        total = squares.sum()
        uniform = np.full(len(rows), 1 / len(rows))
        chances = uniform if total == 0 else (uniform + squares / total) / 2
        chosen = np.sort(rng.choice(len(rows), count, p=chances / chances.sum()))
        return CondensedClass(chosen=chosen, weights=1 / (count * chances[chosen]))
