"""Part ``whole``: from file to files, against what a user would do instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from c2tc_pipeline.bench.speed.bench import Bench, beside
from c2tc_pipeline.bench.speed.network_training import time_training
from c2tc_pipeline.bench.speed.row import SpeedRow
from c2tc_pipeline.bench.speed.stages import CondenseFile, condense_to_nowhere
from c2tc_pipeline.bench.speed.tables import ClassRows, SpeedTable

_PART = "whole"
_LEAST_RATIOS = {"centroids": 2, "network": 10}
# How the network is trained, and how many of its epochs are timed: all, or some of those that all cost the same.
_RECIPES: dict[str, int | None] = {"default": None, "paper": 3}


def measure_whole(
    table: SpeedTable, bench: Bench, *, condense_file: CondenseFile, ratio: float = 0.001
) -> Iterator[SpeedRow]:
    """Condense from file to files; cluster the encoded rows with imbalanced-learn; train a network on all of them.

    The network is trained by the recipe of this package, which ends after some thousands of steps however many rows
    there are, and by the paper's, which is what its readers would do.

    Parameters
    ----------
    table : SpeedTable
        The table.
    bench : Bench
        Measures.
    condense_file : callable
        Condenses from file to files.
    ratio : float
        Condensed rows as a share of the rows.
    """
    ours = bench.time(lambda: condense_to_nowhere(condense_file, table, ratio))
    counts, encoded = ours.value.allocation.counts, table.encoded
    common: dict[str, Any] = {
        "part": _PART,
        "table": table.spec.name,
        "ratio": ratio,
        "what": "condense, file to files",
    }
    bench.report(f"{_PART}, {table.spec.name}: imbalanced-learn's ClusterCentroids")
    centroids = bench.once(lambda: cluster_centroids(encoded, counts))
    aim = _LEAST_RATIOS["centroids"]
    yield SpeedRow(
        **common,
        **beside("imbalanced-learn's ClusterCentroids with the same counts", centroids, ours.columns()),
        aim=f"{aim} x",
        holds=centroids.seconds >= aim * ours.seconds,
        note="reading and encoding count for ours alone",
    )
    aim = _LEAST_RATIOS["network"]
    for recipe, epochs in _RECIPES.items():
        bench.report(f"{_PART}, {table.spec.name}: the MLP on the whole table, recipe {recipe}")
        training = time_training(bench, encoded.X, encoded.codes, recipe=recipe, epochs=epochs)
        yield SpeedRow(
            **common,
            **beside(f"training the MLP on the whole encoded table, recipe {recipe}", training.timed, ours.columns())
            | {"reference_seconds": training.seconds},
            aim=f"{aim} x",
            holds=training.seconds >= aim * ours.seconds,
            note=f"{training.done}; reading and encoding count for ours alone",
        )


def cluster_centroids(encoded: ClassRows, counts: np.ndarray) -> np.ndarray:
    """Return the centroids of imbalanced-learn, so many of each class; a class that keeps all its rows passes through.

    Examples
    --------
    >>> rows = ClassRows(np.arange(6.0)[:, None], np.array([0, 4, 6]))
    >>> cluster_centroids(rows, np.array([2, 2])).shape
    (4, 1)
    """
    from imblearn.under_sampling import ClusterCentroids

    sizes = np.diff(encoded.edges)
    strategy = {code: int(counts[code]) for code in np.flatnonzero(counts < sizes).tolist()}
    made: np.ndarray = ClusterCentroids(sampling_strategy=strategy, random_state=0).fit_resample(
        encoded.X, encoded.codes
    )[0]
    return made
