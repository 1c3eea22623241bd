"""Scale check: condense a synthetic table in several sizes under a memory limit, and the largest in memory beside it.

Every run is a process of its own: ``c2tc condense``, which here reads tables of every size in blocks, and
``condense(frame)`` for the run in memory.
The number of condensed rows is the same for every size: with a fixed ratio the clusters, and with them the time, would
grow with the rows.

The synthetic table has mixed columns and skewed classes. Every class is a mixture of normal distributions in few
dimensions, and every column shows one direction of that space with noise: as a number with a heavy tail, as a count, as
a code, or as words of which neighbours share their letters. Every part is made from its own seed, so that a smaller
table is the beginning of a larger one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import memory_status

RATIO = 0.0001
# Sizes of the synthetic table, as shares of the largest.
SHARES = (0.125, 0.25, 0.5, 1.0)
LABEL = "outcome"
PART_ROWS = 500_000
CLASSES = ("none", "minor", "moderate", "severe", "fatal")
CLASS_SHARES = (0.6, 0.25, 0.1, 0.04, 0.01)

# Arrow's own allocator reserves a gigabyte of addresses that it does not use; a limit would count them.
_ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
# Tables of a check are in blocks at every size, also where the command would read them into memory.
_IN_BLOCKS = """
from c2tc_pipeline.tables import blocks
blocks.LARGE_CELLS = 1
from c2tc_pipeline.cli.main import main
main(prog_name="c2tc")
"""
_IN_MEMORY = """
import sys, json, pyarrow.dataset
from c2tc_pipeline import condense
table, label, rows, out = sys.argv[1:]
frame = pyarrow.dataset.dataset(table).to_table().to_pandas(self_destruct=True)
made = condense(frame, label, rows=int(rows))
json.dump(made.summary, open(out, "w"), default=str)
"""
_POLL_SECONDS = 0.05
_DIMENSIONS = 8
_CENTRES_PER_CLASS = 6
_GROUP_ROWS = 2**17

_AMOUNTS = ("income", "debt", "distance", "duration", "rainfall", "pressure", "speed")
_COUNTS = ("age", "visits", "number_of_cars")
_CODES = {"road_type": 9, "weekday": 7, "district_code": 60}
_FLAGS = ("is_urban", "has_insurance")
_STEMS = ("senior", "junior", "assistant", "chief", "deputy", "retired", "freelance", "trainee")
_ENDS = ("engineer", "nurse", "teacher", "driver", "cook", "clerk", "farmer", "welder", "pilot", "painter", "guard")
_PLACES = ("north", "south", "east", "west", "upper", "lower", "old", "new", "great", "little")
_TOWNS = ("field", "bridge", "haven", "mouth", "wood", "ford", "ham", "ton", "bury", "stead", "worth", "minster")
_WEATHERS = ("clear sky", "clear and windy", "light rain", "heavy rain", "light snow", "heavy snow", "fog", "dense fog")


@dataclass(frozen=True)
class ScaleRun:
    """Time, memory and objective of one condensation; ``way`` is "blocks" or "memory"."""

    rows: int
    condensed_rows: int
    way: str
    seconds: float
    cpu_seconds: float
    private_bytes: int
    objective: float
    stages: dict[str, float]


@dataclass(frozen=True)
class ScaleCheck:
    """All runs of a check, smallest first and the one in memory last, and the memory limit of those in blocks."""

    runs: list[ScaleRun]
    memory_limit: int

    def findings(self) -> dict[str, float]:
        """Return the exponents of time and memory against rows, and the largest run beside the one in memory."""
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
            "| rows | condensed | way | seconds | processor seconds | own memory, MB | objective |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {run.rows:,} | {run.condensed_rows:,} | {run.way} | {run.seconds:.0f} | {run.cpu_seconds:.0f} "
            f"| {run.private_bytes / 1e6:.0f} | {run.objective:.6g} |"
            for run in self.runs
        ]
        lines += ["", *(f"- {name.replace('_', ' ')}: {value:.4g}" for name, value in self.findings().items())]
        return "\n".join([*lines, f"- limit of own memory for runs in blocks: {self.memory_limit / 1e6:.0f} MB", ""])

    def write_files(self, directory: Path, *, command: str) -> None:
        """Write ``scale.json`` and ``scale.md`` into an existing directory."""
        values: dict[str, Any] = {"command": command, **self.findings(), "memory_limit": self.memory_limit}
        values["runs"] = [asdict(run) for run in self.runs]
        (directory / "scale.json").write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        (directory / "scale.md").write_text(f"    {command}\n\n{self.to_markdown()}", encoding="utf-8")


def check_scale(
    folder: Path,
    rows: int,
    *,
    memory_limit: int,
    condensed_rows: int | None = None,
    shares: Sequence[float] = SHARES,
    in_memory: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> ScaleCheck:
    """Condense synthetic tables of growing size in blocks, and the largest one in memory, too.

    Tables and results are written to ``folder``; parts that are there already are used again. ``memory_limit`` is in
    bytes; ``condensed_rows`` is by default 0.01 % of ``rows``, which are those of the largest table. Raises InputError
    when a run fails.
    """
    condensed_rows = condensed_rows or max(round(RATIO * rows), 10)
    largest = folder / f"rows-{rows}"
    write_synthetic_table(largest, rows)
    runs: list[ScaleRun] = []
    for size in [*(round(share * rows) for share in sorted(shares)), *([rows] if in_memory else [])]:
        way = "memory" if len(runs) == len(shares) else "blocks"
        table = _smaller(largest, folder / f"rows-{size}", size)
        run = _run(table, size, condensed_rows, way, folder, memory_limit if way == "blocks" else None)
        report(
            f"{run.rows:,} rows, {run.way}: {run.seconds:.0f} s, {run.private_bytes / 1e6:.0f} MB of its own, "
            f"objective {run.objective:.6g}"
        )
        runs.append(run)
    return ScaleCheck(runs, memory_limit)


def _smaller(largest: Path, folder: Path, rows: int) -> Path:
    """Return the folder of a smaller table, whose full parts are hard links to those of the largest."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(rows // PART_ROWS):
        name = f"part-{part:05d}.parquet"
        if not (folder / name).exists():
            os.link(largest / name, folder / name)
    write_synthetic_table(folder, rows)
    return folder


def _run(table: Path, rows: int, condensed_rows: int, way: str, folder: Path, memory_limit: int | None) -> ScaleRun:
    out = folder / f"condensed-{rows}-{way}"
    if way == "memory":
        command = [sys.executable, "-c", _IN_MEMORY, str(table), LABEL, str(condensed_rows), f"{out}.json"]
    else:
        command = [sys.executable, "-c", _IN_BLOCKS, "condense", str(table), "--label", LABEL, "--out", str(out)]
        command += ["--rows", str(condensed_rows), "--no-cache", "--quiet"]
    done = run_watched(command, memory_limit=memory_limit, environment=_ENVIRONMENT)
    if done.code:
        last = done.errors.strip().splitlines()[-1:] or ["no message"]
        raise InputError(f"Condensing {rows:,} rows ({way}) ended with code {done.code}: {last[0]}")
    if way == "memory":
        summary, stages = json.loads(Path(f"{out}.json").read_text(encoding="utf-8")), {}
    else:
        summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
        stages = json.loads((out / "timings.json").read_text(encoding="utf-8"))["processor_seconds"]
    return ScaleRun(
        rows=rows,
        condensed_rows=summary["rows_out"],
        way=way,
        seconds=done.seconds,
        cpu_seconds=done.cpu_seconds,
        private_bytes=done.private_bytes,
        objective=summary["objective"],
        stages=stages,
    )


@dataclass(frozen=True)
class Watched:
    """Exit code, standard error, time and peak of anonymous memory of a command; 0 where unknown."""

    code: int
    errors: str
    seconds: float
    cpu_seconds: float
    private_bytes: int


def run_watched(
    command: Sequence[str], *, memory_limit: int | None = None, environment: Mapping[str, str] | None = None
) -> Watched:
    """Run a command to its end, with a limit in bytes on private writable memory (``RLIMIT_DATA``).

    Cached and mapped pages of files do not count against the limit: the system can take them back.
    """

    def limit() -> None:
        if memory_limit is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_limit, memory_limit))

    started, private = time.perf_counter(), 0
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.DEVNULL,
            stderr=errors,
            preexec_fn=limit,
            env={**os.environ, **(environment or {})},
        )
        while True:
            private = max(private, memory_status("RssAnon", process.pid) or 0)
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            time.sleep(_POLL_SECONDS)
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        written = errors.read().decode("utf-8", errors="replace")
    seconds = time.perf_counter() - started
    return Watched(process.returncode, written, seconds, used.ru_utime + used.ru_stime, private)


def vocabularies() -> dict[str, list[str]]:
    """Return the strings of each text column, similar ones next to each other."""
    letters = "ABCDEFGHKLMNPRSTVWXZ"
    codes = np.random.default_rng(7).permutation(len(letters) ** 3)[:800]
    stations = ["".join(letters[code // 20**place % 20] for place in range(3)) for code in codes]
    return {
        "job": [f"{stem} {end}" for end in _ENDS for stem in _STEMS],
        "town": [f"{place} {town}" for town in _TOWNS for place in _PLACES],
        "weather": list(_WEATHERS),
        "station": stations[:300],
        "vehicle": [f"{code}-{number % 97:02d}" for number, code in enumerate(stations[300:])],
    }


def synthetic_part(rows: int, part: int, *, seed: int = 0) -> pa.Table:
    """Return one part of the synthetic table; ``seed`` and ``part`` determine it."""
    fixed = np.random.default_rng([seed, 0x5CA1E])
    centres = fixed.normal(0, 1.6, (len(CLASSES), _CENTRES_PER_CLASS, _DIMENSIONS)).astype(np.float32)
    names = [*_AMOUNTS, *_COUNTS, *_CODES, *_FLAGS, *vocabularies()]
    directions = fixed.normal(0, _DIMENSIONS**-0.5, (_DIMENSIONS, len(names))).astype(np.float32)
    rng = np.random.default_rng([seed, part])
    classes = rng.choice(len(CLASSES), rows, p=CLASS_SHARES).astype(np.int8)
    latent = centres[classes, rng.integers(_CENTRES_PER_CLASS, size=rows)]
    latent += rng.standard_normal(latent.shape, dtype=np.float32)
    seen = dict(zip(names, (latent @ directions).T, strict=True))

    def noisy(name: str, spread: float) -> np.ndarray:
        return seen[name] + spread * rng.standard_normal(rows, dtype=np.float32)

    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(_AMOUNTS):
        amounts = np.exp(1.2 * noisy(name, 0.4)).astype(np.float64) * 10.0**place
        # Gaps in every other column, some of them where amounts are large.
        gaps = rng.random(rows) < 0.02 + 0.1 * (amounts > np.exp(1.5) * 10.0**place) if place % 2 == 0 else None
        columns[name] = pa.array(np.round(amounts, 4), mask=gaps)
    for name in _COUNTS:
        counts = np.maximum(np.round(30 + 12 * noisy(name, 0.5)), 0).astype(np.int64)
        columns[name] = pa.array(counts, mask=rng.random(rows) < 0.01 if name == "visits" else None)
    for name, size in _CODES.items():
        # The order of codes means nothing: neighbours are scattered.
        scattered = np.random.default_rng([seed, size]).permutation(size)
        columns[name] = pa.array(scattered[_indices(noisy(name, 0.5), size)])
    for name in _FLAGS:
        columns[name] = pa.array(noisy(name, 0.7) > 0.5)
    for name, words in vocabularies().items():
        indices = pa.array(_indices(noisy(name, 0.4), len(words)), mask=rng.random(rows) < 0.03)
        columns[name] = pa.array(words).take(indices)
    columns[LABEL] = pa.array(CLASSES).take(pa.array(classes))
    return pa.table(columns)


def write_synthetic_table(folder: Path, rows: int, *, seed: int = 0) -> None:
    """Write a table of that many rows as Parquet parts; parts that are there already are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, start in enumerate(range(0, rows, PART_ROWS)):
        path = folder / f"part-{part:05d}.parquet"
        if not path.exists():
            partial = path.with_suffix(".partial")
            made = synthetic_part(min(PART_ROWS, rows - start), part, seed=seed)
            pq.write_table(made, partial, compression="zstd", row_group_size=_GROUP_ROWS, write_page_checksum=True)
            partial.rename(path)


def _indices(values: np.ndarray, size: int) -> np.ndarray:
    """Map normal values to indices below ``size``, the middle ones most often."""
    return np.clip(np.round((values / 5 + 0.5) * size), 0, size - 1).astype(np.int64)
