"""``c2tc bench speed``: the core beside its references, as ratios within one run on one machine."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation import budget_for_ratio
from c2tc_pipeline.condensation import condense
from c2tc_pipeline.condensation.partition import ClassOrder, cluster_classes
from c2tc_pipeline.condensation.plan import PartitionSettings, plan_allocation
from c2tc_pipeline.condensation.stages import StageClock
from c2tc_pipeline.encoding import HybridEncoder
from c2tc_pipeline.encoding.autoencoder_training import AutoencoderSettings, default_batch_size, train_autoencoder
from c2tc_pipeline.encoding.categories import factorise
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.memory import peak_growth
from c2tc_pipeline.evaluation.reference import dense_matrix, printed_search, train_dense
from c2tc_pipeline.tables import Role, prepare_table, read_table

Report = Callable[[str], Any]


def measure_speed(data: Path, *, report: Report) -> dict[str, Any]:
    """Measure all comparisons on the tables in a directory and return them.

    Parameters
    ----------
    data : path
        A directory with ``diabetes130us.parquet`` and ``covertype.parquet``.
    report : callable
        Told each result as a line of text.
    """
    for name in ("diabetes130us", "covertype"):
        if not (data / f"{name}.parquet").exists():
            raise InputError(
                f"There is no {name}.parquet in {str(data)!r}; give the directory that has it with --data."
            )
    covertype = read_table(data / "covertype.parquet")
    results = {
        "autoencoder": autoencoder_speed(read_table(data / "diabetes130us.parquet"), "readmitted", report),
        "memory": memory_of_condense(covertype, "Cover_Type", 0.001, report),
        "allocation": allocation_speed(covertype, "Cover_Type", 0.001, report),
    }
    return results


def autoencoder_speed(frame: pd.DataFrame, label: str, report: Report) -> dict[str, float]:
    """Compare an epoch of the factorised autoencoder with one on the dense matrix, at the same batch size."""
    prepared = prepare_table(frame, label=label)
    names = [name for name in prepared.X.columns if prepared.roles[name].role is Role.STRING]
    vocabularies = [Vocabulary.of_column(prepared.X[name], (2, 4), 1000) for name in names]
    tables = [vocabulary.similarities() for vocabulary in vocabularies]
    places = np.stack(
        [v.nearest_places(*factorise(prepared.X[name])) for v, name in zip(vocabularies, names, strict=True)], axis=1
    )
    settings = AutoencoderSettings(latent=len(names), epochs=10)
    size = default_batch_size(len(np.unique(places, axis=0)))
    # Libraries load and threads start on the first step; that is not what an epoch costs.
    train_autoencoder(tables[:1], places[:100, :1], AutoencoderSettings(latent=1, epochs=1))
    factorised = _seconds(lambda: train_autoencoder(tables, places, settings)) / settings.epochs
    dense_rows = dense_matrix(tables, places)
    train_dense(dense_rows[:100], latent=1, hidden=2, batch_size=100)
    dense = _seconds(lambda: train_dense(dense_rows, latent=len(names), hidden=settings.hidden, batch_size=size))
    report(
        f"autoencoder, one epoch, {len(places):,} rows x {dense_rows.shape[1]:,} similarities: factorised "
        f"{factorised:.2f} s, dense {dense:.2f} s, {dense / factorised:.1f} times faster"
    )
    return {"factorised_seconds": factorised, "dense_seconds": dense, "ratio": dense / factorised}


def allocation_speed(frame: pd.DataFrame, label: str, ratio: float, report: Report) -> dict[str, Any]:
    """Compare the optimal allocation with the search as printed, on the same encoded rows."""
    prepared = prepare_table(frame, label=label)
    by_class = ClassOrder.of(prepared.y.to_numpy())
    edges = by_class.edges
    encoder = HybridEncoder(roles={name: prepared.roles[name].role for name in prepared.X.columns})
    encoded = encoder.fit(prepared.X, prepared.y).encode_rows(prepared.X, by_class.order)
    budget = budget_for_ratio(ratio, len(encoded), len(by_class.classes))
    results: dict[str, Any] = {}
    for name in ("optimal", "hfils"):
        clock = StageClock()
        settings = PartitionSettings(budget, allocation=name)
        plan = plan_allocation(encoded, edges, settings, clock=clock)
        done = cluster_classes(encoded, edges, plan, settings, clock=clock)
        results[name] = {
            "objective": done.allocation.objective,
            "bound": done.allocation.bound,
            "allocation_seconds": clock.seconds["curves"] + clock.seconds["allocate"],
            "clustering_seconds": clock.seconds["cluster"],
            "runs": done.allocation.evaluations,
        }
    started = time.perf_counter()
    rows = [encoded[a:b] for a, b in itertools.pairwise(edges)]
    objective, _, runs = printed_search(rows, budget, 0.25)
    printed = time.perf_counter() - started
    results["printed"] = {"objective": objective, "allocation_seconds": printed, "runs": runs}
    for name in ("optimal", "hfils"):
        found = results[name]
        found["ratio"] = printed / found["allocation_seconds"]
        found["ratio_with_clustering"] = printed / (found["allocation_seconds"] + found["clustering_seconds"])
        found["objective_against_printed"] = found["objective"] / objective
        report(
            f"{name}: allocation {found['allocation_seconds']:.2f} s, then clustering "
            f"{found['clustering_seconds']:.2f} s; printed search {printed:.1f} s ({runs} k-means runs): "
            f"{found['ratio']:.1f} times faster ({found['ratio_with_clustering']:.1f} with clustering), "
            f"objective {found['objective']:.1f} against {objective:.1f} "
            f"({found['objective_against_printed'] - 1:+.1%})"
        )
    return results


def memory_of_condense(frame: pd.DataFrame, label: str, ratio: float, report: Report) -> dict[str, float]:
    """Measure the peak memory of ``condense`` beyond the raw table, in sizes of the encoded matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Libraries load and threads start on the first call; that is not what a table costs.
        condense(frame.iloc[:: max(1, len(frame) // 5_000)], label, 0.02)
        table, grown = peak_growth(lambda: condense(frame, label, ratio))
    encoded = table.summary["rows_in"] * table.summary["columns_encoded"] * 4
    report(
        f"memory: condense rose {grown / 1e6:.0f} MB above the raw table, {grown / encoded:.2f} times the encoded "
        f"matrix of {encoded / 1e6:.0f} MB; seconds {table.summary['seconds']}"
    )
    return {"peak_bytes": float(grown), "encoded_bytes": float(encoded), "ratio": grown / encoded}


def _seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
