"""Seconds of condensation against rows or columns, on a made table of a real one's size."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from c2tc_pipeline.bench.experiments.contest import condense_split
from c2tc_pipeline.bench.experiments.grid import Experiment, Shape
from c2tc_pipeline.bench.experiments.spaces import EncodedSplit
from c2tc_pipeline.evaluation.trial import LabelledRows

# Directions in which rows of a made table really vary; the other columns follow them, with noise.
_RANK = 12
_CENTRES_A_CLASS = 8


def made_rows(shape: Shape, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in [0, 1] and their classes: clusters in few directions, seen through correlated columns.

    Each class is a mixture of normal distributions in a space of few dimensions; every column is a random combination
    of these dimensions plus noise, squeezed into [0, 1]. So columns are correlated and rows are clustered, as in real
    tables, where columns of pure noise would make every method look alike.

    Examples
    --------
    >>> X, y = made_rows(Shape(rows=1000, columns=20, classes=(0.9, 0.1)), seed=0)
    >>> X.shape, X.dtype.name, bool((X >= 0).all() and (X <= 1).all()), np.bincount(y).tolist()
    ((1000, 20), 'float32', True, [900, 100])
    """
    rng = np.random.default_rng(seed)
    shares = np.asarray(shape.classes) / sum(shape.classes)
    edges = np.round(np.cumsum([0, *shares]) * shape.rows).astype(int)
    y = np.repeat(np.arange(len(shares)), np.diff(edges))
    mixing = rng.standard_normal((_RANK, shape.columns), dtype=np.float32) / np.sqrt(_RANK, dtype=np.float32)
    X = np.empty((shape.rows, shape.columns), dtype=np.float32)
    for start, end in itertools.pairwise(edges.tolist()):
        centres = 2 * rng.standard_normal((_CENTRES_A_CLASS, _RANK), dtype=np.float32)
        # In blocks: the whole table is there once, and nothing of its size beside it.
        for first in range(start, end, 100_000):
            size = min(100_000, end - first)
            latent = centres[rng.integers(_CENTRES_A_CLASS, size=size)]
            latent += rng.standard_normal((size, _RANK), dtype=np.float32)
            block = latent @ mixing
            block += 0.3 * rng.standard_normal(block.shape, dtype=np.float32)
            X[first : first + size] = 1 / (1 + np.exp(-block))
    return X, y


def run_scaling(experiment: Experiment, progress: Callable[[float, float], Any]) -> list[dict[str, Any]]:
    """Condense parts of a made table, smallest first, with every method, and return the seconds.

    Nothing is looked up: seconds are worth comparing within one run only.
    """
    scaling = experiment.scaling
    assert scaling is not None
    X, y = made_rows(scaling.shape, seed=0)
    mixed = np.random.default_rng(1).permutation(len(X))
    cells = [
        (share, ratio, contender, seed)
        for share in sorted(scaling.shares)
        for ratio in experiment.ratios
        for contender in experiment.methods
        for seed in range(experiment.seeds)
    ]
    results = []
    for done, (share, ratio, contender, seed) in enumerate(cells):
        progress(done, len(cells))
        part = _part(X, y, mixed, scaling.vary, share)
        size = part.X.shape[0 if scaling.vary == "rows" else 1]
        empty = LabelledRows(part.X[:0], part.codes[:0])
        made = condense_split(
            contender,
            EncodedSplit(part, empty, empty, len(scaling.shape.classes)),
            ratio,
            seed,
            time_limit=experiment.time_limit,
            memory_limit=experiment.memory_limit,
        ).value
        results.append(
            {
                "experiment": experiment.name,
                "table": scaling.like,
                "ratio": ratio,
                "method": contender.method,
                "variant": ", ".join(filter(None, [contender.variant, f"{scaling.vary}={size}"])),
                "seed": seed,
                "rows": 0 if made.rows is None else len(made.rows),
                "status": made.status,
                "reason": made.reason,
                "objective": made.objective,
                "condense_seconds": made.seconds,
            }
        )
    progress(len(cells), len(cells))
    return results


def _part(X: np.ndarray, y: np.ndarray, mixed: np.ndarray, vary: str, share: float) -> LabelledRows:
    if vary == "columns":
        return LabelledRows(np.ascontiguousarray(X[:, : max(1, round(share * X.shape[1]))]), y)
    kept = np.sort(mixed[: round(share * len(X))])
    return LabelledRows(X[kept], y[kept])
