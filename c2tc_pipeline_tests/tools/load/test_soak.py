"""Small versions of the soak and of a delivery: nothing is left behind, and the queue stays within its bound."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from c2tc_pipeline.pipeline.instance import SETTINGS
from c2tc_pipeline.pipeline.jobs import ASSETS
from c2tc_pipeline_tests.pipeline.live import Site
from c2tc_pipeline_tests.pipeline.toy_pipeline import every_step
from c2tc_pipeline_tests.tools.load.catalogues import make_catalogue
from c2tc_pipeline_tests.tools.load.delivery import follow
from c2tc_pipeline_tests.tools.load.soak import soak

AT_ONCE = 2


@pytest.mark.slow
@pytest.mark.faults
def test_making_a_cell_again_leaves_nothing_open_or_behind(tmp_path: Path) -> None:
    soaked = soak(tmp_path / "soak", 6)
    # A leak grows by one or more each time; a file that the garbage collector closes late may come and go.
    for name in ("files", "threads", "processes"):
        assert soaked.slope(name) < 0.5, soaked.samples
    assert {(sample.temporary, sample.slots) for sample in soaked.samples} == {(0, 0)}


@pytest.mark.slow
@pytest.mark.faults
def test_deliveries_are_made_whole_by_few_runs_and_no_more_at_once_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = yaml.safe_load(SETTINGS.read_text())
    settings["concurrency"]["runs"]["max_concurrent_runs"] = AT_ONCE
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("C2TC_STEPS", "together")
    catalogue = make_catalogue(tmp_path, 2 * AT_ONCE)
    with Site(tmp_path) as site, site.running("dagster-daemon", "run"):
        site.call("dagster", "sensor", "start", "--start-all")
        told = follow(site, timeout=600)
        assert site.made() == {step.key.to_user_string(): 1 for step in every_step(catalogue)}, site.said
    # All of these tables are small.
    assert told.ended == {(job, "SUCCESS"): 1 for job in ASSETS}
    assert 1 <= told.max_concurrent <= AT_ONCE
