"""The check of scale: a made table in several sizes, condensed in blocks under a limit of memory, and in memory.

Every run is a process of its own, ``c2tc condense`` as a user calls it, so that what it takes is what a user sees. The
number of condensed rows is the same for every size: with a fixed ratio the clusters would grow with the rows, and with
them the time, whatever reads the table.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from c2tc_pipeline.bench.scale.made_table import LABEL, PART_ROWS, write_made_table
from c2tc_pipeline.bench.scale.watched import run_watched
from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.common.errors import InputError

RATIO = 0.0001
# Sizes of the made table, as shares of the largest.
SHARES = (0.125, 0.25, 0.5, 1.0)
# Arrow's own allocator reserves a gigabyte of addresses that it does not use; a limit would count them.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


@dataclass(frozen=True)
class ScaleRun:
    """What one condensation took.

    Parameters
    ----------
    rows, condensed_rows : int
        Rows of the table, and of the condensed one.
    way : {"blocks", "memory"}
        How the table was gone through.
    seconds, cpu_seconds : float
        By the clock, and of processors.
    private_bytes, resident_bytes : int
        The most memory of its own, and the most with files that were mapped.
    objective : float
        Of the allocation, measured over all rows.
    stages : dict of str to float
        Processor seconds of each stage.
    """

    rows: int
    condensed_rows: int
    way: str
    seconds: float
    cpu_seconds: float
    private_bytes: int
    resident_bytes: int
    objective: float
    stages: dict[str, float]


@dataclass(frozen=True)
class ScaleCheck:
    """All runs of a check, and what they say together.

    Parameters
    ----------
    runs : list of ScaleRun
        Smallest first; the last one is that in memory.
    memory_limit : int
        Bytes that runs in blocks were held to.
    """

    runs: list[ScaleRun]
    memory_limit: int

    def findings(self) -> dict[str, float]:
        """Return the exponents of time and memory against rows, and the largest run beside that in memory."""
        blocks = [run for run in self.runs if run.way == "blocks"]
        rows = [run.rows for run in blocks]
        largest, memory = blocks[-1], next((run for run in self.runs if run.way == "memory"), None)
        found = {
            "time_exponent": fitted_exponent(rows, [run.cpu_seconds for run in blocks]),
            "memory_exponent": fitted_exponent(rows, [run.private_bytes for run in blocks]),
            "peak_bytes": float(largest.private_bytes),
        }
        if memory is not None:
            found["objective_difference"] = largest.objective / memory.objective - 1
            found["time_ratio"] = largest.seconds / memory.seconds
            found["cpu_ratio"] = largest.cpu_seconds / memory.cpu_seconds
        return found

    def to_markdown(self) -> str:
        """Return the runs as a table, and the findings below it."""
        lines = [
            "| rows | condensed | way | seconds | processor seconds | own memory, MB | resident, MB | objective |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {run.rows:,} | {run.condensed_rows:,} | {run.way} | {run.seconds:.0f} | {run.cpu_seconds:.0f} "
            f"| {run.private_bytes / 1e6:.0f} | {run.resident_bytes / 1e6:.0f} | {run.objective:.6g} |"
            for run in self.runs
        ]
        lines += ["", *(f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in self.findings().items())]
        return "\n".join([*lines, f"- limit of own memory for runs in blocks: {self.memory_limit / 1e6:.0f} MB", ""])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {**self.findings(), "memory_limit": self.memory_limit, "runs": [asdict(run) for run in self.runs]}

    def write_files(self, directory: Path, *, command: str) -> None:
        """Write ``scale.json`` and ``scale.md`` into an existing directory."""
        text = json.dumps({"command": command, **self.to_dict()}, indent=2)
        (directory / "scale.json").write_text(text + "\n", encoding="utf-8")
        (directory / "scale.md").write_text(f"    {command}\n\n{self.to_markdown()}", encoding="utf-8")


def check_scale(
    folder: Path,
    rows: int,
    *,
    memory_limit: int,
    condensed_rows: int | None = None,
    shares: Sequence[float] = SHARES,
    beside: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> ScaleCheck:
    """Condense made tables of growing size in blocks, and the largest one in memory, too.

    Parameters
    ----------
    folder : path
        Where tables and results are written; parts that are there already are used again.
    rows : int
        Rows of the largest table.
    memory_limit : int
        Bytes of its own that a run in blocks may have.
    condensed_rows : int, optional
        Condensed rows of every run; by default 0.01 % of the largest table's.
    shares : sequence of float
        The sizes, as shares of the largest.
    beside : bool
        Whether the largest table is condensed in memory as well.
    report : callable
        Told about every run.

    Raises
    ------
    InputError
        When a run fails, such as one that needs more memory than it may have; with its last words.
    """
    condensed_rows = condensed_rows or max(round(RATIO * rows), 10)
    whole = folder / f"rows-{rows}"
    write_made_table(whole, rows)
    runs = []
    for share in sorted(shares):
        size = round(share * rows)
        table = _smaller(whole, folder / f"rows-{size}", size)
        runs.append(_run(table, size, condensed_rows, "blocks", folder, memory_limit))
        report(_line(runs[-1]))
    if beside:
        runs.append(_run(whole, rows, condensed_rows, "memory", folder, None))
        report(_line(runs[-1]))
    return ScaleCheck(runs, memory_limit)


def _smaller(whole: Path, folder: Path, rows: int) -> Path:
    """Return the folder of a smaller table, whose full parts are those of the larger one under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(rows // PART_ROWS):
        name = f"part-{part:05d}.parquet"
        if not (folder / name).exists():
            os.link(whole / name, folder / name)
    write_made_table(folder, rows)
    return folder


def _run(table: Path, rows: int, condensed_rows: int, way: str, folder: Path, memory_limit: int | None) -> ScaleRun:
    out = folder / f"condensed-{rows}-{way}"
    command = [sys.executable, "-m", "c2tc_pipeline", "condense", str(table), "--label", LABEL, "--out", str(out)]
    command += [
        "--rows",
        str(condensed_rows),
        "--no-cache",
        "--quiet",
        "--blocks" if way == "blocks" else "--no-blocks",
    ]
    done = run_watched(command, memory_limit=memory_limit, environment=_ENVIRONMENT)
    if done.code:
        last = done.errors.strip().splitlines()[-1:] or ["it said nothing"]
        raise InputError(f"Condensing {rows:,} rows ({way}) ended with code {done.code}: {last[0]}")
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    timings = json.loads((out / "timings.json").read_text(encoding="utf-8"))
    return ScaleRun(
        rows=rows,
        condensed_rows=summary["rows_out"],
        way=way,
        seconds=done.seconds,
        cpu_seconds=done.cpu_seconds,
        private_bytes=done.private_bytes,
        resident_bytes=done.resident_bytes,
        objective=summary["objective"],
        stages=timings["processor_seconds"],
    )


def _line(run: ScaleRun) -> str:
    return (
        f"{run.rows:,} rows, {run.way}: {run.seconds:.0f} s, {run.private_bytes / 1e6:.0f} MB of its own, "
        f"objective {run.objective:.6g}"
    )
