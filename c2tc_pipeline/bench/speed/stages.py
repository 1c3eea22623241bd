"""Part ``stages``: seconds of each stage from a file to a directory of results, and the memory that it takes."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from c2tc_pipeline.bench.speed.bench import Bench, spread
from c2tc_pipeline.bench.speed.row import SpeedRow
from c2tc_pipeline.bench.speed.tables import SpeedTable
from c2tc_pipeline.common.memory import peak_growth
from c2tc_pipeline.condensation.api import condense
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.validated import validate_table

CondenseFile = Callable[[TableSpec, Path, float], CondensedTable]
"""Condenses a table from its source to a directory: what ``c2tc condense`` runs, which is above this package."""

MOST_MEMORY = 1.5
_PART = "stages"


def measure_stages(
    table: SpeedTable, bench: Bench, *, condense_file: CondenseFile, ratio: float = 0.001
) -> Iterator[SpeedRow]:
    """Condense a table from file to files and tell how long each stage took.

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
    common: dict[str, Any] = {"part": _PART, "table": table.spec.name, "ratio": ratio}
    frame = table.frame
    # Before anything of its size was made and freed: memory that the process kept would hide what a call takes.
    memory = memory_of_condense(table, ratio)
    times: dict[str, list[float]] = {}

    def keep_stages() -> None:
        for stage, seconds in condense_to_nowhere(condense_file, table, ratio).summary["seconds"].items():
            times.setdefault(stage, []).append(seconds)

    timed = bench.time(keep_stages)
    validated = bench.time(lambda: validate_table(frame, table.spec))
    stages = {name: tuple(seconds) for name, seconds in times.items()}
    for name in [*stages][:1]:
        yield SpeedRow(**common, what=name, **spread(stages.pop(name)), probe_seconds=timed.probe_seconds)
    yield SpeedRow(
        **common, what="validate", **validated.columns(), note="split and schema; counted only where a table is split"
    )
    for name, seconds in stages.items():
        yield SpeedRow(**common, what=name, **spread(seconds), probe_seconds=timed.probe_seconds)
    yield SpeedRow(**common, what="from file to files", **timed.columns(), note="all stages but validate")
    yield memory


def condense_to_nowhere(condense_file: CondenseFile, table: SpeedTable, ratio: float) -> CondensedTable:
    """Condense from file to files, in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return condense_file(table.spec, Path(folder) / "condensed", ratio)


def memory_of_condense(table: SpeedTable, ratio: float) -> SpeedRow:
    """Measure the peak memory of ``condense`` beyond the raw table, in sizes of the encoded matrix."""
    frame, label = table.frame, table.spec.label
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Threads that start and libraries that load are not what a table costs.
        condense(frame.iloc[:: max(1, len(frame) // 5_000)], label, 0.02)
        made, grown = peak_growth(lambda: condense(frame, label, ratio))
    encoded = made.summary["rows_in"] * made.summary["columns_encoded"] * 4
    return SpeedRow(
        part=_PART,
        table=table.spec.name,
        ratio=ratio,
        what="peak memory beyond the raw table",
        amount=grown / encoded,
        unit="times the encoded matrix",
        aim=f"at most {MOST_MEMORY:g}",
        holds=grown <= MOST_MEMORY * encoded,
        note=f"{grown / 1e6:,.0f} MB, the encoded matrix has {encoded / 1e6:,.0f} MB",
    )
