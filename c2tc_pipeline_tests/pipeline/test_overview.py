"""The states of tables in the overview, from records as Dagster makes them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.overview import table_states
from c2tc_pipeline.pipeline.versioning import TableStep, table_steps
from c2tc_pipeline.reports.overview import TableState, render_overview
from c2tc_pipeline_tests.pipeline.toy_pipeline import changed, toy_catalogue, toy_definitions

SCORES = {0.1: 0.9, 0.01: 0.7}
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class Toys:
    """Three tables, and runs that make two of them; what fails is in ``broken``."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.catalogue = toy_catalogue(folder, "alone", "broken", "good")
        self.broken: dict[TableStep, Exception] = {
            TableStep("broken", "encoder"): dg.Failure("Column 'age' is constant.", allow_retries=False)
        }

    def act(self, step: TableStep) -> Mapping[str, Any]:
        if step in self.broken:
            raise self.broken[step]
        told: dict[str, Any] = {"seconds": 2.0, "cpu_seconds": 3.0, "peak_memory_mb": 100 if step.ratio else 50}
        if step.step == "condensed_table" and step.ratio:
            told |= {"rows_in": 1000, "rows_out": round(1000 * step.ratio)}
        if step.step == "evaluation_scores" and step.ratio:
            kept = SCORES[step.ratio]
            told |= {"verdict": f"Keeps {kept}.", "share_of_whole_accuracy": kept, "worth_of_a_row": f"> {kept}"}
        return told

    def make(self, *tables: str) -> None:
        steps = [step for table in tables for step in table_steps(self.catalogue[table])]
        job = toy_definitions(self.catalogue, act=self.act).resolve_implicit_global_asset_job_def()
        keys = [step.key for step in steps]
        job.execute_in_process(instance=self.instance, asset_selection=keys, raise_on_error=False, run_config=QUIET)

    def states(self, later: float = 0) -> dict[str, TableState]:
        return {each.table: each for each in table_states(self.instance, self.catalogue, now=time.time() + later)}


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[Toys]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Toys(tmp_path, instance)


def test_a_good_a_failing_and_a_missing_table(toys: Toys) -> None:
    toys.make("broken", "good")
    found = toys.states()
    assert {table: each.state for table, each in found.items()} == {
        "alone": "missing",
        "broken": "failed",
        "good": "fresh",
    }
    good, steps = found["good"], len(table_steps(toys.catalogue["good"]))
    assert (good.rows_in, sorted(good.rows_out)) == (1000, [10, 100])
    # Of the ratio that keeps least.
    assert (good.kept, good.row_worth, good.verdict) == (0.7, "> 0.7", "Keeps 0.7.")
    assert (good.seconds, good.cpu_seconds, good.peak_memory_mb) == (2.0 * steps, 3.0 * steps, 100)
    assert (good.failure, good.warnings, good.report) == ("", [], "good/report.html")
    assert good.age_seconds is not None
    assert 0 <= good.age_seconds < 600
    assert "Column 'age' is constant." in found["broken"].failure
    assert (found["broken"].report, found["broken"].age_seconds, found["broken"].kept) == ("", None, None)
    assert found["alone"] == TableState("alone", "missing", warnings=[], rows_out=[])
    page = render_overview([*found.values()])
    places = [page.index(f"<td>{name}") if name != "good" else page.index('href="good/') for name in found]
    assert sorted(found, key=lambda name: places[[*found].index(name)]) == ["broken", "alone", "good"]


def test_a_failure_after_a_success_keeps_the_results_until_it_is_repaired(toys: Toys) -> None:
    toys.make("good")
    toys.broken[TableStep("good", "evaluation_scores", 0.01)] = RuntimeError("secret")
    toys.make("good")
    found = toys.states()["good"]
    assert (found.state, found.kept, found.rows_in) == ("failed", 0.7, 1000)
    assert "RuntimeError" in found.failure
    assert "secret" not in found.failure
    del toys.broken[TableStep("good", "evaluation_scores", 0.01)]
    toys.make("good")
    assert (toys.states()["good"].state, toys.states()["good"].failure) == ("fresh", "")


def test_a_table_is_late_after_its_limit_only(toys: Toys) -> None:
    toys.catalogue = changed(toys.catalogue, "good", fresh_within="2h")
    toys.make("good")
    assert [toys.states(later)["good"].state for later in (0, 3600, 3 * 3600)] == ["fresh", "fresh", "late"]


def test_a_run_that_has_planned_a_table_and_is_not_over_makes_it(toys: Toys) -> None:
    job = toy_definitions(toys.catalogue).resolve_implicit_global_asset_job_def()
    keys = frozenset(step.key for step in table_steps(toys.catalogue["alone"]))
    run = toys.instance.create_run_for_job(job, asset_selection=keys, status=dg.DagsterRunStatus.STARTED)
    assert toys.states()["alone"].state == "running"
    toys.instance.report_run_failed(run)
    assert toys.states()["alone"].state == "failed"


def test_warnings_of_checks_are_those_of_the_newest_results(toys: Toys) -> None:
    key = TableStep("good", "condensed_table", 0.1).key
    verdicts = iter([False, True])

    @dg.asset_check(asset=key, name="near_bound")
    def near_bound() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=next(verdicts), severity=dg.AssetCheckSeverity.WARN, description="Too high.")

    definitions = toy_definitions(toys.catalogue, act=toys.act, checks=[near_bound])
    job = definitions.resolve_implicit_global_asset_job_def()
    warnings = []
    for _ in range(2):
        job.execute_in_process(instance=toys.instance, asset_selection=[key], run_config=QUIET)
        warnings.append(toys.states()["good"].warnings)
    assert warnings == [["condensed_table_0_1: Too high."], []]
