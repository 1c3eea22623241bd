"""The pipeline with a Dask cluster whose workers read the encoded rows from S3: nothing changes but who computes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from c2tc_pipeline.clustering.dask_engine import DaskEngine
from c2tc_pipeline.pipeline.steps import CacheResource
from c2tc_pipeline_tests.clustering.dask_cluster import running_cluster
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded
from c2tc_pipeline_tests.storage.places import Place

pytestmark = pytest.mark.faults
STEPS = ("cluster_allocation", "condensed_table")


@pytest.fixture
def read_by_workers(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Note which files workers were asked about, and whether all of them could read them."""
    asked: list[tuple[str, bool]] = []
    real = DaskEngine._stored

    def noted(engine: DaskEngine, blocks: Sequence[Any]) -> Any:
        answer = real(engine, blocks)
        there = blocks[0].rows.stored
        asked.append(("" if there is None else there.data.path, answer is not None))
        return answer

    monkeypatch.setattr(DaskEngine, "_stored", noted)
    return asked


def test_the_engine_changes_no_byte_and_no_version(
    s3_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_by_workers: list[tuple[str, bool]]
) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    with Rig(tmp_path, storage=s3_place.root) as rig:
        rig.add("people", settings={"device": "cpu"})
        succeeded(rig.run("ingest", "people"))
        succeeded(rig.run("condense", "people|0.1"))
        versions, files = rig.versions(), rig.stored_files(*STEPS)
        rig.overrides["cache"] = CacheResource(directory=str(tmp_path / "another"))
        with running_cluster(environment=s3_place.environment) as address:
            rig.change("people", settings={"device": "cpu", "engine": address})
            assert not set(STEPS) & rig.out_of_date().keys()
            for step in STEPS:
                succeeded(rig.make(step, "people|0.1"))
        assert rig.told("cluster_allocation", "people|0.1")["engine"] == address
        assert rig.versions() == versions
        assert rig.stored_files(*STEPS) == files
        stored = [answer for path, answer in read_by_workers if path.startswith(f"{s3_place.root}/encoded_table/")]
        assert stored
        assert all(stored)
        # The cluster is gone: one sentence, and no second try.
        monkeypatch.setattr("c2tc_pipeline.clustering.dask_engine._CONNECT_SECONDS", 1)
        assert "No Dask scheduler answers" in failure_of(rig.make(STEPS[1], "people|0.1"), STEPS[1])
