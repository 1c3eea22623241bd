"""Tables that do not fit into memory, through the assets: the bytes are those of tables in memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.condensation import encoded
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.tables import blocks
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded, without_pictures
from c2tc_pipeline_tests.tools.made_tables import mixed_table

COMPARED = ("encoder", "encoded_table", "cluster_allocation", "condensed_table", "evaluation_scores")
CELL = "people|0.005"


def described(folder: Path, frame: pd.DataFrame) -> Rig:
    """Return a pipeline with one table, of which nothing was made."""
    folder.mkdir()
    rig = Rig(folder)
    rig.add("people", frame, ratios=[0.005], evaluation={"seeds": 1, "models": ["logistic"]})
    return rig


def stream_everything(monkeypatch: pytest.MonkeyPatch, block_rows: int) -> None:
    """Let tables of more than 10,000 cells count as too large for memory."""
    monkeypatch.setattr(blocks, "LARGE_CELLS", 10_000)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(encoded, "_MAPPED_BYTES", 1_000)


@pytest.mark.slow
def test_a_table_of_several_times_the_memory_limit_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_pictures(monkeypatch)
    files = []
    for name in ("in_memory", "streamed"):
        with described(tmp_path / name, mixed_table(30_000)) as rig:
            succeeded(rig.run("ingest", "people"))
            succeeded(rig.run("condense", CELL))
            files.append(rig.stored_files(*COMPARED))
            raw = StoreIOManager(root=rig.storage).read("raw_table", "people")
        assert raw.in_memory == (name == "in_memory")
        assert sum(frame.memory_usage(deep=True).sum() for frame in raw.frames()) > 1.5e6
        # From now on, reading more than 1 MB at once is refused.
        monkeypatch.setenv(blocks.LIMIT_VARIABLE, "1")
        stream_everything(monkeypatch, 1_000)
    expected, found = files
    assert set(found) == set(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
