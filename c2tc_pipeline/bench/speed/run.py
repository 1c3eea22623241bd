"""A whole run: which parts there are, which tables they need, and what comes out."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.speed.autoencoder import PAPER_SECONDS, measure_autoencoder
from c2tc_pipeline.bench.speed.bench import Bench
from c2tc_pipeline.bench.speed.machine import load_now, machine_facts
from c2tc_pipeline.bench.speed.noise import Noise
from c2tc_pipeline.bench.speed.rivals import measure_rivals
from c2tc_pipeline.bench.speed.row import SpeedRow, to_frame
from c2tc_pipeline.bench.speed.search import measure_search
from c2tc_pipeline.bench.speed.stages import CondenseFile, condense_to_nowhere, measure_stages
from c2tc_pipeline.bench.speed.tables import SpeedTable, paper_table
from c2tc_pipeline.bench.speed.throughput import measure_throughput
from c2tc_pipeline.bench.speed.whole import measure_whole
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.registry import bench_package
from c2tc_pipeline.condensation.api import condense
from c2tc_pipeline.tables.spec import TableSpec

Measure = Callable[[Sequence[SpeedTable], Bench, CondenseFile], Iterator[SpeedRow]]


@dataclass(frozen=True)
class Part:
    """A part of the benchmark.

    Parameters
    ----------
    tables : tuple of str
        The tables that it is measured on, as many as there are of them; none for made rows.
    measure : callable
        Yields its rows.
    """

    tables: tuple[str, ...]
    measure: Measure


PARTS: dict[str, Part] = {
    "stages": Part(("covertype",), lambda t, bench, file: measure_stages(t[0], bench, condense_file=file)),
    "search": Part(("covertype", "jannis", "airlines"), lambda t, bench, _: measure_search(t, bench)),
    "autoencoder": Part(tuple(PAPER_SECONDS), lambda t, bench, _: measure_autoencoder(t, bench)),
    "throughput": Part((), lambda _, bench, __: measure_throughput(bench)),
    "whole": Part(("covertype",), lambda t, bench, file: measure_whole(t[0], bench, condense_file=file)),
    "rivals": Part(("adult",), lambda t, bench, _: measure_rivals(t[0], bench)),
}
"""Every part by its name, in the order in which they are measured."""


@dataclass(frozen=True)
class SpeedRun:
    """What a run measured.

    Parameters
    ----------
    rows : DataFrame
        One row a comparison; see :class:`~c2tc_pipeline.bench.speed.row.SpeedRow`.
    noise : Noise
        How steady the machine was.
    machine : dict
        What it was, and how busy when the run began.
    settings : dict
        Repeats and the limit of the references.
    left_out : tuple of str
        A sentence for everything that could not be measured.
    """

    rows: pd.DataFrame
    noise: Noise
    machine: dict[str, Any]
    settings: dict[str, Any]
    left_out: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """Return all but the rows as JSON values."""
        noise = {**asdict(self.noise), "too_much": self.noise.too_much}
        return {
            "machine": self.machine,
            "noise": noise,
            "settings": self.settings,
            "left_out": list(self.left_out),
        }


def measure_speed(
    data: Path | None,
    *,
    condense_file: CondenseFile,
    bench: Bench,
    parts: Sequence[str] = (),
    tables: Sequence[str] = (),
) -> SpeedRun:
    """Measure all parts, or some, on the paper's tables in a directory.

    Parameters
    ----------
    data : path, optional
        The directory with the tables as Parquet files; not needed for parts on made rows.
    condense_file : callable
        Condenses a table from file to files.
    bench : Bench
        Measures; its ``report`` is told each result as a line of text.
    parts : sequence of str
        Some of :data:`PARTS`; all by default.
    tables : sequence of str
        Only these tables; all that there are by default.

    Raises
    ------
    InputError
        When a part or a table is unknown, or no table is there.
    """
    chosen = _checked("part", parts, PARTS)
    known = dict.fromkeys(name for part in PARTS.values() for name in part.tables)
    allowed = set(_checked("table", tables, known))
    found, left_out = _find(data, {name: PARTS[name].tables for name in chosen}, allowed)
    if "whole" in found:
        # Before hours of work, not after them.
        bench_package("imblearn")
    # A probe sees that a load comes and goes; one that stays it takes for the machine's own pace.
    load_before = load_now()
    warm_up(bench, condense_file if {"stages", "whole"} & set(found) else None)
    rows: list[SpeedRow] = []
    for name, at_hand in found.items():
        for row in PARTS[name].measure(at_hand, bench, condense_file):
            bench.report(row.sentence())
            rows.append(row)
    for sentence in left_out:
        bench.report(sentence)
    noise = Noise.of(bench.probe.times)
    marked = [dataclasses.replace(row, noisy=noise.disturbed(row.probe_seconds)) for row in rows]
    settings = {"repeats": bench.repeats, "time_limit": bench.time_limit}
    machine = {**machine_facts(), "load_before": load_before}
    return SpeedRun(to_frame(marked), noise, machine, settings, tuple(left_out))


def warm_up(bench: Bench, condense_file: CondenseFile | None) -> None:
    """Load libraries and start threads, which is not what anything here costs; with files, if so wanted."""
    from c2tc_pipeline.evaluation.models import make_model

    rng = np.random.default_rng(0)
    words = rng.choice(["red brick", "red tile", "grey slate", "thatch"], 400)
    frame = pd.DataFrame({"x": rng.random(400), "roof": words, "y": rng.choice(["a", "b"], 400)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        condense(frame, "y", 0.05)
    if condense_file is not None:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "made.parquet"
            frame.to_parquet(source)
            table = SpeedTable(TableSpec(name="made", source=str(source), label="y"))
            condense_to_nowhere(condense_file, table, 0.05)
    make_model("mlp", device="cpu").fit(rng.random((32, 2)), np.arange(32) % 2)
    for _ in range(3):
        bench.probe.sample()
    # The first products of a process are slower than all others.
    bench.probe.times.clear()


def _checked(kind: str, named: Sequence[str], known: Iterable[str]) -> list[str]:
    """Return what was named, in the order of the known; everything when nothing was."""
    known = list(known)
    for name in named:
        if name not in known:
            raise InputError(f"The speed has no {kind} {name!r}; choose among: {', '.join(known)}.")
    return [name for name in known if not named or name in named]


def _find(
    data: Path | None, wanted: dict[str, tuple[str, ...]], allowed: set[str]
) -> tuple[dict[str, list[SpeedTable]], list[str]]:
    """Return the tables of each part that can be measured, and a sentence for what can't."""
    names = [name for name in dict.fromkeys(n for tables in wanted.values() for n in tables) if name in allowed]
    if not names and all(wanted.values()):
        raise InputError("No part of --parts is measured on a table of --tables; choose more of either.")
    if names and data is None:
        raise InputError("The speed is measured on the paper's tables; name their folder with --data.")
    opened = {name: paper_table(name, data) for name in names if data is not None}
    there = {name: table for name, table in opened.items() if table is not None}
    if names and not there:
        files = ", ".join(f"{name}.parquet" for name in names)
        raise InputError(f"There is nothing to measure in {str(data)!r}, which has none of {files}; see --data.")
    found: dict[str, list[SpeedTable]] = {}
    left_out: list[str] = []
    for part, tables in wanted.items():
        at_hand = [there[name] for name in tables if name in there]
        if at_hand or not tables:
            found[part] = at_hand
        absent = [name for name in tables if name in allowed and name not in there]
        if absent:
            files = ", ".join(f"{name}.parquet" for name in absent)
            left_out.append(f"{part}: left out for want of {files}.")
    return found, left_out
