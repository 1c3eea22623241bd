"""Parts of the speed benchmark, the tables that they need, and a run of some or all of them."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.experiments.grid import Shape, paper_table
from c2tc_pipeline.bench.experiments.spaces import encode_sorted, string_categories, synthetic_rows
from c2tc_pipeline.bench.limits import OutOfMemory, OutOfTime
from c2tc_pipeline.bench.rivals import COSTLY, make_rival
from c2tc_pipeline.bench.rivals.cluster_centroids import cluster_centroids
from c2tc_pipeline.bench.speed.autoencoder import PAPER_SECONDS, measure_autoencoder
from c2tc_pipeline.bench.speed.measuring import (
    Bench,
    SpeedRow,
    Timed,
    beside,
    machine_facts,
    reaches,
    spread,
    to_frame,
)
from c2tc_pipeline.bench.speed.search import measure_search
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.common.stages import PeakWatch
from c2tc_pipeline.condensation.api import condense
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.models.network import MlpClassifier
from c2tc_pipeline.evaluation.training import recipe_named
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.spec import TableSpec

CondenseFile = Callable[[TableSpec, Path, float], CondensedTable]
"""Condenses a table from its source to a directory, as ``c2tc condense`` does."""

RELAYS = {"ft_transformer": "relay FT-Transformer, as in the paper", "mlp": "relay MLP"}

_MAX_MEMORY = 1.5
_MIN_RATIOS = {"centroids": 2, "network": 10, "rivals": 100}
# Recipes of the network, and how many epochs are timed: all, or some of those that all cost the same.
_RECIPES: dict[str, int | None] = {"default": None, "paper": 3}


class SpeedTable:
    """A table of the benchmark, read and encoded once."""

    def __init__(self, spec: TableSpec) -> None:
        self.spec = spec

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The table as it was read."""
        return read_table(self.spec.source)

    @cached_property
    def encoded(self) -> EncodedRows:
        """All rows with the default encoding."""
        return encode_sorted(self.frame, self.spec)


def measure_stages(
    table: SpeedTable, bench: Bench, *, condense_file: CondenseFile, ratio: float = 0.001
) -> Iterator[SpeedRow]:
    """Part ``stages``: seconds of each stage from a file to a directory of results, and the peak memory."""
    common: dict[str, Any] = {"part": "stages", "table": table.spec.name, "ratio": ratio}
    # Before anything of its size was allocated and freed: memory that the process kept would hide the growth.
    memory = _memory_of_condense(table, ratio)
    times: dict[str, list[float]] = {}

    def run() -> None:
        for stage, seconds in _condense_to_nowhere(condense_file, table, ratio).summary["seconds"].items():
            times.setdefault(stage, []).append(seconds)

    timed = bench.time(run)
    for name, seconds in times.items():
        yield SpeedRow(**common, what=name, **spread(seconds))
    yield SpeedRow(**common, what="from file to files", **spread(timed.times), note="all stages")
    yield replace(memory, **common)


def _condense_to_nowhere(condense_file: CondenseFile, table: SpeedTable, ratio: float) -> CondensedTable:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return condense_file(table.spec, Path(folder) / "condensed", ratio)


def _memory_of_condense(table: SpeedTable, ratio: float) -> SpeedRow:
    """Measure the peak memory of ``condense`` beyond the raw table, in sizes of the encoded matrix."""
    frame, label = table.frame, table.spec.label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Starting threads and loading libraries are not costs of the table.
        condense(frame.iloc[:: max(1, len(frame) // 5_000)], label, 0.02)
        watch = PeakWatch()
        made = condense(frame, label, ratio)
        grown = watch.growth()
    encoded = made.summary["rows_in"] * made.summary["columns_encoded"] * 4
    return SpeedRow(
        part="stages",
        what="peak memory beyond the raw table",
        amount=grown / encoded,
        unit="times the encoded matrix",
        aim=f"at most {_MAX_MEMORY:g}",
        holds=grown <= _MAX_MEMORY * encoded,
        note=f"{grown / 1e6:,.0f} MB, the encoded matrix has {encoded / 1e6:,.0f} MB",
    )


@dataclass(frozen=True)
class StepShape:
    """Columns, clusters and rows of a Lloyd step, and the share of the product's throughput that is the aim."""

    columns: int
    clusters: int
    rows: int = 100_000
    min_share: float | None = None


STEPS = (StepShape(136, 500, min_share=0.6), StepShape(54, 200), StepShape(8, 150))
"""Steps of Microsoft's, Covertype's and Electricity's width."""


class _FullSteps(CpuKernel):
    """A kernel that compares every row with every centre, as the matrix product does."""

    def uses_neighbours(self, rows: int, k: int) -> bool:
        return False


def measure_throughput(bench: Bench, *, steps: Sequence[StepShape] = STEPS) -> Iterator[SpeedRow]:
    """Part ``throughput``: Lloyd steps of a descent, from the third on, against a matrix product of the same shape.

    A repeated first step would move no row and hide what moving rows costs. Where a descent would compare near centres
    only, a second row has the time of such a step, which leaves out most of the product.
    """
    for step in steps:
        X, _ = synthetic_rows(Shape(rows=step.rows, columns=step.columns, classes=(0.5, 0.5)), seed=0)
        shape = f"{step.columns} columns, {step.clusters} clusters, {step.rows:,} synthetic rows"
        ours, plain = _time_steps(_FullSteps(), step, X, bench)
        work = 2e-9 * step.rows * step.columns * step.clusters
        share = plain.seconds / ours.seconds
        yield SpeedRow(
            part="throughput",
            what=f"Lloyd step, {shape}",
            **beside("a plain matrix product", plain, ours),
            amount=work / ours.seconds,
            reference_amount=work / plain.seconds,
            unit="GFLOP/s",
            aim="" if step.min_share is None else f"{100 * step.min_share:g} % of the product",
            holds=None if step.min_share is None else share >= step.min_share,
            note=f"{100 * share:.0f} % of the product's",
        )
        if CpuKernel().uses_neighbours(step.rows, step.clusters):
            near, plain = _time_steps(CpuKernel(), step, X, bench)
            yield SpeedRow(
                part="throughput",
                what=f"Lloyd step among near centres, {shape}",
                **beside("a plain matrix product of all rows and centres", plain, near),
                note="most of the product is left out",
            )


def _time_steps(kernel: CpuKernel, step: StepShape, X: np.ndarray, bench: Bench) -> tuple[Timed[None], Timed[Any]]:
    centers = X[np.random.default_rng(0).choice(len(X), step.clusters, replace=False)]
    product = np.empty((step.rows, step.clusters), dtype=np.float32)
    rows = kernel.load(X, None)

    def descend() -> None:
        nonlocal centers
        centers, _ = kernel.update(rows, centers)

    # The first calls start threads and touch memory for the first time.
    for _ in range(2):
        descend()
    np.matmul(X, centers.T, out=product)
    ours = bench.time(descend)
    return ours, bench.time(lambda: np.matmul(X, centers.T, out=product))


def measure_whole(
    table: SpeedTable, bench: Bench, *, condense_file: CondenseFile, ratio: float = 0.001
) -> Iterator[SpeedRow]:
    """Part ``whole``: from file to files, against imbalanced-learn's centroids and training a network on all rows."""
    ours = bench.time(lambda: _condense_to_nowhere(condense_file, table, ratio))
    counts, encoded, name = ours.value.allocation.counts, table.encoded, table.spec.name
    common: dict[str, Any] = {"part": "whole", "table": name, "ratio": ratio, "what": "condense, file to files"}
    bench.report(f"whole, {name}: imbalanced-learn's ClusterCentroids")
    centroids = bench.once(lambda: cluster_centroids(encoded.X, encoded.edges, counts, seed=0))
    aim = _MIN_RATIOS["centroids"]
    yield SpeedRow(
        **common,
        **beside("imbalanced-learn's ClusterCentroids with the same counts", centroids, ours),
        aim=f"{aim} x",
        holds=centroids.seconds >= aim * ours.seconds,
        note="reading and encoding count for ours alone",
    )
    aim = _MIN_RATIOS["network"]
    for recipe, epochs in _RECIPES.items():
        bench.report(f"whole, {name}: the MLP on the whole table, recipe {recipe}")
        seconds, timed, done = time_training(bench, encoded.X, encoded.codes(), recipe=recipe, epochs=epochs)
        reference = f"training the MLP on the whole encoded table, recipe {recipe}"
        yield SpeedRow(
            **common,
            **beside(reference, timed, ours) | {"reference_seconds": seconds},
            aim=f"{aim} x",
            holds=seconds >= aim * ours.seconds,
            note=f"{done}; reading and encoding count for ours alone",
        )


def time_training(
    bench: Bench, X: np.ndarray, codes: np.ndarray, *, recipe: str, epochs: int | None = None
) -> tuple[float, Timed[Any], str]:
    """Time the training of the MLP; return its seconds, what was timed, and a description.

    With ``epochs`` only that many epochs and a training of none are timed, and the others extrapolated: for recipes
    whose number of steps depends on the epochs alone, all epochs cost the same.
    """
    full = recipe_named(recipe)
    rows, steps = len(X), full.steps(len(X))

    def fit(some: int) -> Timed[Any]:
        return bench.once(lambda: MlpClassifier(recipe=replace(full, epochs=some), device="cpu").fit(X, codes))

    passes = steps / full.epoch(rows)
    done = f"{passes:.3g} epochs, {steps:,} steps of up to {full.batch(rows):,} rows"
    if epochs is None or epochs >= full.epochs:
        timed = fit(full.epochs)
        return timed.seconds, timed, done
    if passes != full.epochs:
        raise ValueError(f"Recipe {recipe!r} does not end with its epochs, so they can't be extrapolated.")
    nothing, timed = fit(0), fit(epochs)
    seconds = nothing.seconds + (timed.seconds - nothing.seconds) / epochs * full.epochs
    return seconds, timed, f"{done}; {epochs} epochs were timed, the others extrapolated"


def measure_rivals(
    table: SpeedTable,
    bench: Bench,
    *,
    ratio: float = 0.001,
    names: Sequence[str] = COSTLY,
    relays: Sequence[str] = tuple(RELAYS),
    **settings: Any,
) -> Iterator[SpeedRow]:
    """Part ``rivals``: methods that train networks, against ours on the same encoded rows, within the time limit."""
    X, codes, where = table.encoded.X, table.encoded.codes(), table.spec.name
    ours = bench.time(partial(_condense_rows, Condenser(ratio, device="cpu"), X, codes))
    aim = _MIN_RATIOS["rivals"]
    for name, relay in itertools.product(names, relays):
        reference = f"{name.upper()}, {RELAYS[relay]}"
        bench.report(f"rivals, {where}: {reference}, for about {bench.time_limit:g} s at most")
        rival = make_rival(name, ratio=ratio, relay=relay, device="cpu", time_limit=bench.time_limit, **settings)
        timed = bench.once(partial(_condense_rows, rival, X, codes))
        stopped = timed.value
        measured = beside(reference, timed, ours)
        if isinstance(stopped, OutOfMemory):
            # The time until it ran out of memory is not comparable.
            measured["reference_seconds"] = None
        at_least = isinstance(stopped, OutOfTime)
        took = measured["reference_seconds"]
        yield SpeedRow(
            part="rivals",
            table=where,
            ratio=ratio,
            what="ours, encoded rows to condensed rows",
            **measured,
            at_least=at_least,
            aim=f"{aim} x",
            holds=reaches(None if took is None else took / ours.seconds, aim, at_least),
            note="" if stopped is None else str(stopped),
        )


def _condense_rows(sampler: Any, X: np.ndarray, codes: np.ndarray) -> OutOfTime | OutOfMemory | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sampler.fit_resample(X, codes)
        except (OutOfTime, OutOfMemory) as error:
            return error
    return None


@dataclass(frozen=True)
class Part:
    """A part of the benchmark: its tables, as many as there are of them, and the function that yields its rows."""

    tables: tuple[str, ...]
    measure: Callable[[Sequence[SpeedTable], Bench, CondenseFile], Iterator[SpeedRow]]


PARTS: dict[str, Part] = {
    "stages": Part(("covertype",), lambda t, bench, file: measure_stages(t[0], bench, condense_file=file)),
    "search": Part(
        ("covertype", "jannis", "airlines"),
        lambda t, bench, _: measure_search({table.spec.name: table.encoded for table in t}, bench),
    ),
    "autoencoder": Part(
        tuple(PAPER_SECONDS),
        lambda t, bench, _: measure_autoencoder(
            {table.spec.name: string_categories(table.frame, table.spec) for table in t}, bench
        ),
    ),
    "throughput": Part((), lambda _, bench, __: measure_throughput(bench)),
    "whole": Part(("covertype",), lambda t, bench, file: measure_whole(t[0], bench, condense_file=file)),
    "rivals": Part(("adult",), lambda t, bench, _: measure_rivals(t[0], bench)),
}
"""Every part by its name, in the order in which they are measured."""


@dataclass(frozen=True)
class SpeedRun:
    """The rows of a run (see :class:`SpeedRow`), the machine and the settings."""

    rows: pd.DataFrame
    machine: dict[str, Any]
    settings: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        """Return all but the rows as JSON values."""
        return {"machine": self.machine, "settings": self.settings}


def measure_speed(
    data: Path | None,
    *,
    condense_file: CondenseFile,
    bench: Bench,
    parts: Sequence[str] = (),
    tables: Sequence[str] = (),
) -> SpeedRun:
    """Measure all parts, or some, on the paper's tables in a folder, or on some of them.

    ``data`` is not needed for parts on synthetic rows. Raises InputError when a part or a table is unknown, or a table
    is not there.
    """
    chosen = _checked("part", parts, PARTS)
    known = dict.fromkeys(name for part in PARTS.values() for name in part.tables)
    allowed = set(_checked("table", tables, known))
    found = _find(data, chosen, allowed)
    if "whole" in found:
        # Fail before the measurements, not after them.
        bench_package("imblearn")
    load_before = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    warm_up(condense_file if {"stages", "whole"} & set(found) else None)
    rows: list[SpeedRow] = []
    for name, at_hand in found.items():
        for row in PARTS[name].measure(at_hand, bench, condense_file):
            bench.report(row.sentence())
            rows.append(row)
    settings = {"repeats": bench.repeats, "time_limit": bench.time_limit}
    machine = {**machine_facts(), "load_before": load_before}
    return SpeedRun(to_frame(rows), machine, settings)


def warm_up(condense_file: CondenseFile | None) -> None:
    """Load libraries and start threads before anything is timed."""
    from c2tc_pipeline.evaluation.models import make_model

    rng = np.random.default_rng(0)
    words = rng.choice(["red brick", "red tile", "grey slate", "thatch"], 400)
    frame = pd.DataFrame({"x": rng.random(400), "roof": words, "y": rng.choice(["a", "b"], 400)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        condense(frame, "y", 0.05)
    if condense_file is not None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "warm_up.parquet"
            frame.to_parquet(source)
            table = SpeedTable(TableSpec(name="warm_up", source=str(source), label="y"))
            _condense_to_nowhere(condense_file, table, 0.05)
    make_model("mlp", device="cpu").fit(rng.random((32, 2)), np.arange(32) % 2)


def _checked(kind: str, named: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return the given names in the order of the known ones, or all of these when none are given."""
    known = list(known)
    for name in named:
        if name not in known:
            raise InputError(f"The speed benchmark has no {kind} {name!r}; choose among: {', '.join(known)}.")
    return [name for name in known if not named or name in named]


def _find(data: Path | None, parts: Sequence[str], allowed: set[str]) -> dict[str, list[SpeedTable]]:
    """Return the tables of each part that is measured, some of which are measured on none."""
    wanted = {part: [name for name in PARTS[part].tables if name in allowed] for part in parts}
    wanted = {part: names for part, names in wanted.items() if names or not PARTS[part].tables}
    if not wanted:
        raise InputError("No part of --parts is measured on a table of --tables; choose more of either.")
    names = dict.fromkeys(itertools.chain.from_iterable(wanted.values()))
    if names and data is None:
        raise InputError("The speed is measured on the paper's tables; name their folder with --data.")
    opened = {name: SpeedTable(paper_table(name, data)) for name in names if data is not None}
    absent = [name for name, table in opened.items() if not Path(table.spec.source).is_file()]
    if absent:
        raise InputError(
            f"There is no {', '.join(f'{name}.parquet' for name in absent)} in {str(data)!r}; see --data, --tables and "
            "--parts."
        )
    return {part: [opened[name] for name in own] for part, own in wanted.items()}
