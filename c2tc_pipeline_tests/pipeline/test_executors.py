"""Where steps are executed: apart unless the environment says otherwise, and with the same outcome."""

from __future__ import annotations

import json
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.pipeline.jobs import VARIABLE
from c2tc_pipeline.pipeline.jobs import INGEST
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.pipeline.live import Site
from c2tc_pipeline_tests.tools.load.run_cost import execute_job
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.mark.parametrize(
    ("wanted", "name"), [(None, "multiprocess"), (" together ", "in_process"), ("apart", "multiprocess")]
)
def test_steps_are_executed_apart_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, wanted: str | None, name: str
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if wanted is not None:
        monkeypatch.setenv(VARIABLE, wanted)
    defs = build_defs(Catalogue(Path("catalog.yaml"), {}), storage="memory://unused")
    assert defs.resolve_job_def("ingest_job").executor_def.name == name


def test_another_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "elsewhere")
    with pytest.raises(InputError, match="C2TC_STEPS is 'elsewhere'; set it to one of: apart, together"):
        build_defs(Catalogue(Path("catalog.yaml"), {}), storage="memory://unused")


@pytest.mark.slow
@pytest.mark.faults
def test_a_run_makes_and_records_the_same_apart_and_together(tmp_path: Path) -> None:
    told = {}
    for where in ("apart", "together"):
        with Site(tmp_path / where) as site:
            site.add("people", mixed_table(200))
            execute_job(site, "ingest_job", "people", **{VARIABLE: where})
            [run] = site.instance.get_runs(limit=1)
            events = [
                event.dagster_event_type
                for event in site.instance.all_logs(run.run_id)
                if event.is_dagster_event
                and event.dagster_event_type
                in (dg.DagsterEventType.ASSET_CHECK_EVALUATION, dg.DagsterEventType.STEP_SUCCESS)
            ]
            made = {asset: site.store.published(f"{asset}/people", 1) for asset in INGEST}
            told[where] = (
                run.status,
                sorted(event.value for event in events if event is not None),
                {asset: published.files for asset, published in made.items()},
                {asset: json.dumps(published.settings.get("data_version")) for asset, published in made.items()},
            )
    assert told["apart"] == told["together"]
    assert told["apart"][0] is dg.DagsterRunStatus.SUCCESS
