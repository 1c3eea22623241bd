"""The pipeline with a Dask cluster whose workers read the encoded rows from S3: nothing changes but who computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.pipeline.steps import CacheResource
from c2tc_pipeline_tests.clustering.dask_cluster import running_cluster
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded
from c2tc_pipeline_tests.storage.places import Place

pytestmark = pytest.mark.faults
STEPS = ("cluster_allocation", "condensed_table")


def test_the_engine_changes_no_byte_and_no_version(
    s3_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        # The cluster is gone: one sentence, and no second try.
        monkeypatch.setattr("c2tc_pipeline.clustering.dask_engine._CONNECT_SECONDS", 1)
        assert "No Dask scheduler answers" in failure_of(rig.make(STEPS[1], "people|0.1"), STEPS[1])
