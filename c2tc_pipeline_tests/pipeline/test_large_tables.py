"""Tables that are larger than memory may be, through the assets: the same bytes as in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.condensation import encoded
from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.tables import blocks
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, succeeded
from c2tc_pipeline_tests.tools.made_tables import mixed_table

ROWS = 60_000
COMPARED = ("encoder", "encoded_table", "cluster_allocation", "condensed_table", "evaluation_scores")


def made(folder: Path) -> Rig:
    """Return a pipeline in which one table was condensed and evaluated."""
    folder.mkdir()
    with Rig(folder) as rig:
        rig.add("people", mixed_table(ROWS), ratios=[0.005], evaluation={"seeds": 1, "models": ["logistic"]})
        succeeded(rig.run("ingest_job", "people"))
        succeeded(rig.run("condense_job", "people|0.005"))
    return rig


def test_a_table_of_several_times_the_memory_limit_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "_pictures", lambda exhibits: {})
    in_memory = made(tmp_path / "in_memory")
    table = StoreIOManager(root=in_memory.storage).read("validated_table", "people")
    assert table.blocks.in_memory
    limit = 10**6
    assert sum(frame.memory_usage(deep=True).sum() for frame in table.blocks.frames()) > 3 * limit
    # Reading more than this at once is refused.
    monkeypatch.setenv(blocks.LIMIT_VARIABLE, str(limit // 10**6))
    monkeypatch.setattr(blocks, "LARGE_CELLS", 10_000)
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 1_000)
    monkeypatch.setattr(encoded, "_MAPPED_BYTES", 1_000)
    streamed = made(tmp_path / "streamed")
    assert not StoreIOManager(root=streamed.storage).read("validated_table", "people").blocks.in_memory
    expected, found = in_memory.stored_files(*COMPARED), streamed.stored_files(*COMPARED)
    assert {name for name in expected if found.get(name) != expected[name]} == set()
    assert set(found) == set(expected)
