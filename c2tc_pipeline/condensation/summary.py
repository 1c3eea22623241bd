"""Summary of a condensation for people: settings, sizes, roles of the columns, and a 2-D PCA projection."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.condensation.clusters import Clusters
from c2tc_pipeline.condensation.column_weights import ColumnWeights
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.plan import AllocationPlan
from c2tc_pipeline.condensation.repeated import RepeatedRows
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.tables.kinds import Kind
from c2tc_pipeline.tables.roles import ColumnRole
from c2tc_pipeline.tables.table import Table


def summarise(
    name: str,
    shape: tuple[int, int],
    encoder: TableEncoder,
    condenser: Condenser,
    plan: AllocationPlan,
    clusters: Clusters,
    repeated: RepeatedRows,
    *,
    min_category_rows: int,
    weights: ColumnWeights | None,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Return the summary of a finished condensation as plain JSON values."""
    allocation = clusters.allocation
    rows_in, rows_out = shape[0], len(clusters.weights)
    return {
        "table": name,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "ratio": rows_out / rows_in,
        "columns_in": shape[1],
        "columns_encoded": len(encoder.get_feature_names_out()),
        "objective": allocation.objective,
        "bound": allocation.bound,
        "gap": allocation.gap,
        "gamma": allocation.gamma,
        "column_weights": None if weights is None else weights.to_dict(),
        "gamma_scores": [asdict(score) for score in plan.gamma_scores],
        "kmeans_runs": allocation.evaluations + plan.gamma_trials + len(allocation.counts),
        "singletons": clusters.singletons,
        "repeated_rows": repeated.to_dict(),
        "cache_hits": {
            "autoencoder": getattr(encoder, "cache_hit_", None),
            "loss_curves": None if condenser.cache_dir is None else plan.curves_cached,
        },
        "seed": condenser.random_state,
        "settings": {
            "encoder": type(encoder).__name__,
            "strings": getattr(encoder, "strings", None),
            "numeric": encoder.get_params().get("numeric"),
            "allocation": allocation.method,
            "gamma": condenser.gamma,
            "representative": condenser.representative,
            "min_rows_per_condensed_row": condenser.min_rows_per_condensed_row,
            "min_category_rows": min_category_rows,
        },
        "seconds": dict(seconds),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in ("numpy", "pandas", "scikit-learn", "torch")},
        },
    }


def roles_table(roles: Mapping[str, ColumnRole], kinds: Mapping[str, Kind], encoder: TableEncoder) -> pd.DataFrame:
    """Return role, kind and encoding of each source column, and the reasons for them."""
    choices = {choice.column: choice for choice in getattr(encoder, "string_choices_", [])}
    return pd.DataFrame(
        [
            {
                "column": name,
                "role": column.role.value,
                "kind": kinds[name].value,
                "encoding": encoder.encoding_of(name),
                "reason": f"{column.reason}; {choices[name].reason}" if name in choices else column.reason,
                "distinct": column.distinct,
                "missing": column.missing,
            }
            for name, column in roles.items()
        ],
        columns=["column", "role", "kind", "encoding", "reason", "distinct", "missing"],
    )


_SOURCE_ROWS = 2_000


def project(
    X: np.ndarray, edges: np.ndarray, condensed: np.ndarray, clusters: Clusters, table: Table, seed: int
) -> pd.DataFrame:
    """Return a sample of source rows and all condensed rows in two dimensions, with their labels."""
    rng = np.random.default_rng([seed, 0xB])
    picked = np.sort(rng.choice(len(X), size=min(_SOURCE_ROWS, len(X)), replace=False))
    # Of a mapped file they are read: looking at them would map whole stretches of the file around each.
    sample = RowSource.of(X).take(picked).astype(np.float64)
    center = sample.mean(axis=0)
    directions = np.linalg.svd(sample - center, full_matrices=False)[2][:2]
    # The sign of a direction is arbitrary; the largest entry is made positive so that reruns agree.
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    if len(directions) < 2:
        directions = np.vstack([directions, np.zeros((2 - len(directions), X.shape[1]))])
    places = (np.vstack([sample, condensed]) - center) @ directions.T
    codes = np.concatenate([np.searchsorted(edges, picked, side="right") - 1, clusters.codes])
    return pd.DataFrame(
        {
            "x": places[:, 0],
            "y": places[:, 1],
            "label": pd.Series(table.classes[codes]),
            "kind": np.repeat(["source", "condensed"], [len(sample), len(condensed)]),
            "weight": np.concatenate([np.ones(len(sample), dtype=np.int64), clusters.weights]),
        }
    )
