"""The scale check: processes of their own, a memory limit that holds, and the synthetic table."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.bench import scale
from c2tc_pipeline.bench.scale import (
    ScaleCheck,
    ScaleRun,
    check_scale,
    run_watched,
    synthetic_part,
    write_synthetic_table,
)
from c2tc_pipeline_tests.tools.command_line import Run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are enforced on Linux")


def test_a_command_is_measured_and_held_to_its_limit() -> None:
    program = "import sys; block = bytearray(int(sys.argv[1])); block[::4096] = block[::4096]; print(sum(block))"
    small = run_watched([sys.executable, "-c", program, "1000"])
    large = run_watched([sys.executable, "-c", program, "200000000"])
    assert (small.code, large.code) == (0, 0)
    assert large.private_bytes - small.private_bytes > 100_000_000
    refused = run_watched([sys.executable, "-c", program, "200000000"], memory_limit=100_000_000)
    assert refused.code == 1
    assert refused.errors.strip().endswith("MemoryError")


@pytest.mark.faults
def test_a_table_is_condensed_in_blocks_with_less_memory_than_it_takes_whole(tmp_path: Path) -> None:
    limit = 1_200_000_000
    # From a million rows on the sample and the blocks are full, so that memory has no reason left to grow.
    done = check_scale(tmp_path, 1_500_000, memory_limit=limit, shares=(0.7, 1.0))
    small, large, memory = done.runs
    assert large.private_bytes < limit
    assert memory.private_bytes > 1.5 * large.private_bytes
    # The same clusters but for the last bits of what the autoencoder makes.
    assert done.findings()["objective_difference"] == pytest.approx(0, abs=0.005)
    assert large.private_bytes < 1.25 * small.private_bytes


def test_a_smaller_table_is_the_beginning_of_a_larger_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "PART_ROWS", 300)
    write_synthetic_table(tmp_path / "small", 300)
    write_synthetic_table(tmp_path / "large", 700)
    small, large = (pq.read_table(tmp_path / name) for name in ("small", "large"))
    assert large.num_rows == 700
    assert large.slice(0, 300).equals(small)
    # Each part is made from a seed of its own.
    assert synthetic_part(300, 0).equals(small)
    assert not synthetic_part(300, 1).equals(small)
    assert not synthetic_part(300, 0, seed=1).equals(small)


def measured(rows: int, way: str, seconds: float, memory: int, objective: float) -> ScaleRun:
    return ScaleRun(rows, 10, way, seconds, 2 * seconds, memory, objective, {})


def test_findings_are_exponents_and_ratios_and_the_command_writes_them(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [measured(100, "blocks", 1, 500, 7.0), measured(400, "blocks", 4, 500, 20.1)]
    check = ScaleCheck([*runs, measured(400, "memory", 2, 900, 20.0)], memory_limit=1_000)
    found = check.findings()
    assert found["time_exponent"] == pytest.approx(1)
    assert found["memory_exponent"] == pytest.approx(0)
    assert found["objective_difference"] == pytest.approx(0.005)
    assert (found["time_ratio"], found["cpu_ratio"]) == (2, 2)
    asked: list[tuple[Path, int]] = []

    def checked(folder: Path, rows: int, **_: Any) -> ScaleCheck:
        asked.append((folder, rows))
        return check

    monkeypatch.setattr(scale, "check_scale", checked)
    monkeypatch.setattr(sys, "argv", ["c2tc", "bench", "scale"])
    out = tmp_path / "out"
    result = run("bench", "scale", "--rows", 8000, "--data", tmp_path / "data", "--out", out)
    assert result.exit_code == 0, result.output
    assert asked == [(tmp_path / "data", 8000)]
    written = json.loads((out / "scale.json").read_text())
    assert [each["rows"] for each in written["runs"]] == [100, 400, 400]
    assert written["command"].startswith("c2tc bench scale")
    assert "| 400 | 10 | memory | 2 | 4 |" in (out / "scale.md").read_text()
