"""Tables that do not fit into memory, through the assets: the bytes are the same, and memory stays small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.memory import anonymous_memory_of
from c2tc_pipeline.condensation import encoded
from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.tables import blocks
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded
from c2tc_pipeline_tests.tools.made_tables import mixed_table

TO_CONDENSED = ("raw_table", "validated_table", "encoder", "encoded_table", "cluster_allocation", "condensed_table")
COMPARED = (*TO_CONDENSED[2:], "evaluation_scores")
CELL = "people|0.005"


def described(folder: Path, frame: pd.DataFrame) -> Rig:
    """Return a pipeline with one table, of which nothing was made."""
    folder.mkdir()
    rig = Rig(folder)
    rig.add("people", frame, ratios=[0.005], evaluation={"seeds": 1, "models": ["logistic"]})
    return rig


def stream_everything(monkeypatch: pytest.MonkeyPatch, block_rows: int) -> None:
    """Let tables of any size count as too large for memory."""
    monkeypatch.setattr(blocks, "LARGE_CELLS", 1)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(encoded, "_MAPPED_BYTES", 1)


@pytest.mark.slow
def test_a_table_of_several_times_the_memory_limit_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_pictures", lambda exhibits: {})
    files = []
    for name in ("in_memory", "streamed"):
        with described(tmp_path / name, mixed_table(60_000)) as rig:
            succeeded(rig.run("ingest_job", "people"))
            succeeded(rig.run("condense_job", CELL))
            files.append(rig.stored_files(*COMPARED))
            raw = StoreIOManager(root=rig.storage).read("raw_table", "people")
        assert raw.in_memory == (name == "in_memory")
        assert sum(frame.memory_usage(deep=True).sum() for frame in raw.frames()) > 3e6
        # From now on, reading more than 1 MB at once is refused.
        monkeypatch.setenv(blocks.LIMIT_VARIABLE, "1")
        stream_everything(monkeypatch, 1_000)
    expected, found = files
    assert set(found) == set(expected)
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.skipif(sys.platform != "linux", reason="memory that is not backed by a file is counted on Linux only")
def test_the_memory_of_the_assets_stays_below_the_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, rows in (("small", 2_000), ("large", 400_000)):
        frame = pd.DataFrame(rng.random((rows, 40)), columns=[f"x{number}" for number in range(40)])
        described(tmp_path / name, frame.assign(outcome=np.where(frame["x0"] > 0.5, "class a", "class b")))
        size = frame.memory_usage().sum()
    command = "from c2tc_pipeline_tests.pipeline.test_large_tables import print_growth; print_growth()"
    done = subprocess.run([sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < 0.75 * size


def print_growth() -> None:
    """Make a small table, which imports everything, and then a large one; print the bytes by which memory rose."""
    peaks, ended = [0, 0], Event()

    def watch() -> None:
        while not ended.wait(0.01):
            peaks[-1] = max(peaks[-1], anonymous_memory_of(os.getpid()) or 0)

    thread = Thread(target=watch)
    with pytest.MonkeyPatch.context() as patch:
        stream_everything(patch, 5_000)
        for name in ("small", "large"):
            if name == "large":
                peaks[0] = anonymous_memory_of(os.getpid()) or 0
                thread.start()
            with Rig(Path(name)) as rig:
                for asset in TO_CONDENSED:
                    succeeded(rig.make(asset, CELL if asset in TO_CONDENSED[-2:] else "people"))
                    print(asset, round((peaks[1] - peaks[0]) / 1e6), "MB")
    ended.set()
    thread.join()
    print(peaks[1] - peaks[0])
