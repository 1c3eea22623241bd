"""The check of scale, small and for real: processes of their own, and a limit that holds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from c2tc_pipeline.bench.scale.bench import check_scale
from c2tc_pipeline.bench.scale.watched import run_watched
from c2tc_pipeline_tests.tools.command_line import run_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are enforced on Linux")


def test_a_command_is_measured_and_held_to_its_limit() -> None:
    program = "import sys; block = bytearray(int(sys.argv[1])); block[::4096] = block[::4096]; print(sum(block))"
    small = run_watched([sys.executable, "-c", program, "1000"])
    large = run_watched([sys.executable, "-c", program, "200000000"])
    assert (small.code, large.code) == (0, 0)
    assert large.private_bytes - small.private_bytes > 100_000_000
    assert large.resident_bytes > 200_000_000
    refused = run_watched([sys.executable, "-c", program, "200000000"], memory_limit=100_000_000)
    assert refused.code == 1
    assert refused.errors.strip().endswith("MemoryError")


def test_the_memory_of_a_command_is_not_that_of_the_process_that_started_it() -> None:
    small = [sys.executable, "-c", "import time; time.sleep(0.2)"]
    held = bytearray(500_000_000)
    held[::4096] = held[::4096]
    assert run_watched(small).resident_bytes < 200_000_000 < len(held)


@pytest.mark.faults
def test_a_table_is_condensed_in_blocks_with_less_memory_than_it_takes_whole(tmp_path: Path) -> None:
    limit = 1_200_000_000
    # From a million rows on the sample and the blocks are full, so that memory has no reason left to grow.
    done = check_scale(tmp_path, 2_000_000, memory_limit=limit, shares=(0.5, 1.0))
    small, large, memory = done.runs
    assert large.private_bytes < limit
    assert memory.private_bytes > 1.5 * large.private_bytes
    # The same clusters but for the last bits of what the autoencoder makes.
    assert done.findings()["objective_difference"] == pytest.approx(0, abs=0.005)
    assert large.private_bytes < 1.25 * small.private_bytes


@pytest.mark.faults
def test_the_command_writes_what_it_measured(tmp_path: Path) -> None:
    done = run_process("bench", "scale", "--rows", "8000", "--data", tmp_path / "data", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "scale.json").read_text())
    assert [run["rows"] for run in found["runs"]] == [1_000, 2_000, 4_000, 8_000, 8_000]
    assert found["command"].startswith("c2tc bench scale")
    assert "memory exponent" in (tmp_path / "out" / "scale.md").read_text()
