"""The runner: which runs happen after which failure, what is reported, and what Ctrl-C leaves behind.

The assets do nothing unless a test says what; the whole pipeline is in ``test_cli_run.py``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import runner
from c2tc_pipeline.pipeline.instance import Workplace, open_instance, prepare_home
from c2tc_pipeline.pipeline.run_events import RunEvent
from c2tc_pipeline.pipeline.runner import TableRun, run_tables
from c2tc_pipeline.pipeline.versioning import PARENTS, TableStep
from c2tc_pipeline.tables.catalogue import Catalogue, chosen_cells
from c2tc_pipeline_tests.pipeline.toy_pipeline import every_step, toy_catalogue, toy_definitions

Deed = Callable[[str], object]


@dataclass
class Seen:
    """A listener that keeps events, with their partitions."""

    events: list[tuple[str, RunEvent]] = field(default_factory=list)

    def __call__(self, event: RunEvent) -> None:
        self.events.append((event.scope, event))

    def of(self, kind: str) -> list[tuple[str, str]]:
        return [(partition, event.asset) for partition, event in self.events if event.kind == kind]


@dataclass(frozen=True)
class ToyPlace(Workplace):
    """A place whose assets do as the test says."""

    deeds: dict[str, Deed] = field(default_factory=dict)
    checks: Sequence[dg.AssetChecksDefinition] = ()

    def definitions(self, catalogue: Catalogue) -> dg.Definitions:
        def act(step: TableStep) -> dict[str, bool]:
            self.deeds.get(step.step, str)(step.scope or "")
            return {"cache_hit": step.step == "encoder"}

        return toy_definitions(catalogue, act=act, checks=self.checks)

    def store(self) -> Any:
        """A store in which everything is."""
        return SimpleNamespace(latest=lambda key: key)


@dataclass
class Rig:
    """Two tables with two ratios each, and what came of running them."""

    folder: Path
    seen: Seen = field(default_factory=Seen)
    deeds: dict[str, Deed] = field(default_factory=dict)
    checks: list[dg.AssetChecksDefinition] = field(default_factory=list)
    exported: list[str] = field(default_factory=list)

    def run(self, table: str | None = None, ratio: float | None = None) -> list[TableRun]:
        catalogue = self.catalogue
        place = ToyPlace(
            self.folder / "catalog.yaml", str(self.folder / "store"), self.home, self.deeds, checks=self.checks
        )
        chosen = chosen_cells(catalogue, table, ratio)
        done, board = run_tables(place, catalogue, chosen, self.folder / "results", self.seen)
        assert board == []
        return done

    @property
    def catalogue(self) -> Catalogue:
        return toy_catalogue(self.folder, "wide", "tall")

    @property
    def home(self) -> Path:
        return self.folder / "dagster"


@pytest.fixture
def lasting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A rig whose instance is in a folder, where another process or a later run finds what was left behind."""
    made = Rig(tmp_path)
    monkeypatch.setattr(runner, "export_results", lambda store, spec, folder: made.exported.append(spec.name))
    monkeypatch.setattr(runner, "export_overview", lambda store, folder: None)
    return made


@pytest.fixture
def rig(lasting: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A rig whose instance ends with the call, which is much quicker."""

    def open_in_memory(home: Path) -> dg.DagsterInstance:
        prepare_home(home)
        return dg.DagsterInstance.ephemeral()

    monkeypatch.setattr(runner, "open_instance", open_in_memory)
    return lasting


def fail_for(partition: str, error: BaseException) -> Deed:
    def deed(found: str) -> None:
        if found == partition:
            raise error

    return deed


def test_all_steps_of_all_tables_in_order(rig: Rig) -> None:
    wide, tall = rig.run()
    seen = rig.seen.of("made")
    assert sorted(seen) == sorted((step.scope or "", step.step) for step in every_step(rig.catalogue))
    for table in ("wide", "tall"):
        order = [[*PARENTS].index(step) for partition, step in seen if partition.startswith(table)]
        assert order == sorted(order)
    assert [partition[:4] for partition, _ in seen] == ["wide"] * 13 + ["tall"] * 13 + ["", ""]
    assert [event.asset for _, event in rig.seen.events if event.cached] == ["encoder", "encoder"]
    assert [made.ratios for made in (wide, tall)] == [[0.1, 0.01], [0.1, 0.01]]
    assert [made.folder for made in (wide, tall)] == [rig.folder / "results" / name for name in ("wide", "tall")]
    assert rig.exported == ["wide", "tall"]
    assert wide.failures == tall.failures == []


def summary(made: TableRun) -> list[tuple[str, str, bool]]:
    return [(event.asset, event.text, event.mistake) for event in made.failures]


def test_a_table_that_fails_does_not_stop_the_next(rig: Rig) -> None:
    rig.deeds["raw_table"] = fail_for("wide", dg.Failure("The table is empty; fill it.", allow_retries=False))
    wide, tall = rig.run()
    assert summary(wide) == [("raw_table", "The table is empty; fill it.", True)]
    assert (wide.ratios, wide.folder) == ([], None)
    assert tall.failures == []
    assert rig.seen.of("retrying") == []
    assert rig.exported == ["tall"]
    assert ("", "leaderboard") in rig.seen.of("made")


def test_a_ratio_that_fails_does_not_stop_the_others(rig: Rig) -> None:
    rig.deeds["condensed_table"] = fail_for("wide|0.1", RuntimeError("the disk is full"))
    [made] = rig.run("wide")
    assert summary(made) == [("condensed_table", "RuntimeError: the disk is full", False)]
    assert rig.seen.of("retrying") == [("wide|0.1", "condensed_table")]
    assert made.ratios == [0.01]
    assert rig.exported == ["wide"]


def test_without_any_ratio_there_is_neither_report_nor_leaderboard(rig: Rig) -> None:
    rig.deeds["cluster_allocation"] = fail_for("wide|0.1", dg.Failure("No.", allow_retries=False))
    [made] = rig.run("wide", 0.1)
    assert summary(made) == [("cluster_allocation", "No.", True)]
    assert {"report", "leaderboard"}.isdisjoint(step for _, step in rig.seen.of("started"))
    assert rig.exported == []


def test_a_report_that_fails_leaves_the_results_as_they_were(rig: Rig) -> None:
    rig.deeds["report"] = fail_for("wide", InputError("The page is too large; choose fewer ratios."))
    [made] = rig.run("wide", 0.1)
    assert summary(made) == [("report", "The page is too large; choose fewer ratios.", True)]
    assert (rig.exported, made.folder) == ([], None)


def test_a_transient_error_is_shown_and_forgotten(rig: Rig) -> None:
    errors = [ConnectionError("reset by peer")]
    rig.deeds["raw_table"] = lambda partition: fail_for(partition, errors.pop())(partition) if errors else None
    [made] = rig.run("wide", 0.1)
    assert made.failures == []
    [retry] = [event for _, event in rig.seen.events if event.kind == "retrying"]
    assert retry.text == "ConnectionError: reset by peer"


def test_a_check_that_only_warns_is_shown_and_stops_nothing(rig: Rig) -> None:
    @dg.asset_check(asset=["wide", "raw_table"])
    def tidy() -> dg.AssetCheckResult:
        severity = dg.AssetCheckSeverity.WARN
        return dg.AssetCheckResult(passed=False, severity=severity, description="Three rows are untidy.")

    rig.checks.append(tidy)
    [made] = rig.run("wide", 0.1)
    assert made.failures == []
    [(_, warned)] = [seen for seen in rig.seen.events if seen[1].kind == "warned"]
    assert warned.text == "Three rows are untidy."


def test_an_interrupt_ends_the_run_at_once_and_gives_the_slot_back(lasting: Rig) -> None:
    tries: list[str] = []

    def interrupt(partition: str) -> None:
        tries.append(partition)
        os.kill(os.getpid(), signal.SIGINT)

    lasting.deeds["encoder"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        lasting.run()
    assert tries == ["wide"]
    assert lasting.exported == []
    with open_instance(lasting.home) as instance:
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.FAILURE
        # The daemon would launch a run again that a person has stopped.
        assert run.tags["dagster/will_retry"] == "false"
        assert instance.event_log_storage.get_concurrency_info("gpu").claimed_slots == []


def test_runs_of_a_shared_database_are_left_alone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[dg.DagsterInstance] = []
    monkeypatch.setattr(runner, "end_dead_runs", ended.append)
    rig.run("wide", 0.1)
    assert len(ended) == 1
    # Other machines may have runs there, whose processes can't be seen from here.
    (rig.home / "dagster.yaml").write_text("storage: {postgres: {postgres_url: {env: DATABASE}}}\n")
    rig.run("wide", 0.1)
    assert len(ended) == 1


def test_a_results_folder_of_others_is_refused_before_anything_runs(rig: Rig) -> None:
    (rig.folder / "results" / "tall").mkdir(parents=True)
    (rig.folder / "results" / "tall" / "thesis.tex").write_text("In the beginning")
    with pytest.raises(InputError, match="was not made by c2tc"):
        rig.run()
    assert rig.seen.events == []
    assert not rig.home.exists()
