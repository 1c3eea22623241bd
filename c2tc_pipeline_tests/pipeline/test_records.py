"""What is out of date after which change, on records as Dagster makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.records import Records
from c2tc_pipeline.pipeline.versioning import ALGORITHM_VERSIONS, LEADERBOARD, OVER_ALL, PARENTS, TableStep, settings_of
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline_tests.pipeline.toy_pipeline import changed, every_step, record, record_all, toy_catalogue

RAW, VALIDATED = TableStep("wide", "raw_table"), TableStep("wide", "validated_table")
REPORT, BOARD = TableStep("wide", "report"), TableStep("", LEADERBOARD)


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return changed(toy_catalogue(tmp_path, "wide", "tall"), "tall", ratios=(0.01,))


@pytest.fixture
def made(instance: dg.DagsterInstance, catalogue: Catalogue) -> dg.DagsterInstance:
    """An instance in which everything was made."""
    record_all(instance, catalogue)
    return instance


def names(steps: list[TableStep]) -> list[str]:
    return [step.name for step in steps]


def after(step: str) -> set[str]:
    """Return a step and all steps of a table that follow it."""
    following = {step}
    for name, parents in PARENTS.items():
        if not following.isdisjoint(parents):
            following.add(name)
    return following - {*OVER_ALL}


@pytest.mark.parametrize(
    ("change", "readers"),
    [
        ({"source": "other.csv"}, {"raw_table"}),
        ({"label": "x"}, {"raw_table", "validated_table"}),
        ({"roles": {"x": "drop"}}, {"raw_table", "validated_table"}),
        ({"missing": ("x",), "label_kind": "classes"}, {"raw_table", "validated_table"}),
        ({"split": {"seed": 1}}, {"validated_table"}),
        ({"checks": {"baseline": 2}}, {"raw_table", "validated_table"}),
        ({"checks": {"drift": 0.5, "accuracy_margin": 0.5, "repeated_rows": 0.5}}, set()),
        ({"checks": {"on_repeated_rows": "stop"}}, {"condensed_table"}),
        ({"settings": {"strings": "target"}}, {"encoder"}),
        ({"settings": {"numeric": "minmax"}}, {"encoder"}),
        ({"settings": {"column_weights": "none"}}, {"encoded_table"}),
        ({"settings": {"gamma": 0.5}}, {"cluster_allocation"}),
        ({"settings": {"allocation": "ratio"}}, {"cluster_allocation"}),
        ({"settings": {"min_rows_per_condensed_row": 9}}, {"cluster_allocation", "condensed_table"}),
        ({"settings": {"representative": "medoid"}}, {"condensed_table"}),
        ({"settings": {"min_category_rows": 9}}, {"condensed_table"}),
        ({"settings": {"expand_rows": 500}}, {"training_rows"}),
        ({"settings": {"device": "cpu", "engine": "dask://127.0.0.1:8786"}}, set()),
        ({"evaluation": {"seeds": 9}}, {"evaluation_scores"}),
        ({"description": "Another.", "fresh_within": "26h"}, set()),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_a_setting_makes_what_reads_it_and_what_follows_of_that_table(
    made: dg.DagsterInstance, catalogue: Catalogue, change: dict[str, Any], readers: set[str]
) -> None:
    now, before = changed(catalogue, "wide", **change), catalogue["wide"]
    assert {step for step in PARENTS if settings_of(step, now["wide"]) != settings_of(step, before)} == readers
    records = Records(made, now)
    expected: set[str] = set().union(*(after(step) for step in readers))
    assert {step.step for step in records.out_of_date("wide")} == expected
    assert records.out_of_date("tall") == []


def test_everything_is_current_when_made_and_nothing_before(instance: dg.DagsterInstance, catalogue: Catalogue) -> None:
    before = Records(instance, catalogue)
    assert not any(before.is_current(step) for step in every_step(catalogue))
    assert before.out_of_date("wide") == [], "the source sensor launches what was never ingested"
    assert {step.step for step in before.out_of_date("wide", delivered=True)} == set(PARENTS) - {*OVER_ALL}
    record_all(instance, catalogue)
    assert all(Records(instance, catalogue).is_current(step) for step in every_step(catalogue))


def test_a_ratio_that_is_added_is_made_alone(made: dg.DagsterInstance, catalogue: Catalogue) -> None:
    found = Records(made, changed(catalogue, "tall", ratios=(0.01, 0.5))).out_of_date("tall")
    assert {step.ratio for step in found if step.step != "report"} == {0.5}
    assert names(found)[-1] == "report"


def test_a_raised_version_makes_that_step_of_all_tables(
    made: dg.DagsterInstance, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALGORITHM_VERSIONS, "training_rows", "next")
    records = Records(made, catalogue)
    assert names(records.out_of_date("wide")) == ["training_rows_0_1", "training_rows_0_01"]
    assert names(records.out_of_date("tall")) == ["training_rows_0_01"]
    # Only the raw table counts as the source's bytes, however they are read.
    monkeypatch.setitem(ALGORITHM_VERSIONS, "raw_table", "next")
    assert names(Records(made, catalogue).out_of_date("tall"))[:2] == ["raw_table", "validated_table"]


def test_a_step_remade_with_the_same_content_makes_nothing(made: dg.DagsterInstance, catalogue: Catalogue) -> None:
    now = changed(catalogue, "tall", settings={"gamma": 0.5})
    allocation = TableStep("tall", "cluster_allocation", 0.01)
    version = Records(made, catalogue).version(allocation) or ""
    record(made, now, allocation, version)
    assert Records(made, now).out_of_date("tall") == []
    record(made, now, allocation, "other content")
    assert names(Records(made, now).out_of_date("tall"))[0] == "condensed_table_0_01"


def test_a_refused_delivery_stops_its_table_until_something_changes(
    made: dg.DagsterInstance, catalogue: Catalogue, tmp_path: Path
) -> None:
    (tmp_path / "wide.csv").write_text("x,y\nbad,1\n")
    record(made, catalogue, RAW, refused=True)
    assert Records(made, catalogue).out_of_date("wide") == []
    # The last good delivery is still worked with.
    assert names(Records(made, changed(catalogue, "wide", settings={"expand_rows": 9})).out_of_date("wide")) == [
        "training_rows_0_1",
        "training_rows_0_01",
    ]
    assert names(Records(made, changed(catalogue, "wide", checks={"baseline": 2})).out_of_date("wide"))[0] == RAW.name
    (tmp_path / "wide.csv").write_text("x,y\ngood,1\n")
    record(made, catalogue, RAW)
    assert names(Records(made, catalogue).out_of_date("wide"))[0] == VALIDATED.name


def test_steps_of_two_deliveries_do_not_meet(made: dg.DagsterInstance, catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("x,y\nnew,1\n")
    for step in (RAW, VALIDATED):
        record(made, catalogue, step)
    records = Records(made, catalogue)
    behind = {step.name: records.behind(step) for step in every_step(catalogue) if step.table == "wide"}
    encoder = TableStep("wide", "encoder")
    assert behind["condensed_table_0_1"] == behind["evaluation_scores_0_1"] == behind["encoded_table"] == encoder
    assert {behind[name] for name in ("encoder", "cluster_allocation_0_1", "training_rows_0_1", "report")} == {None}
    assert records.behind(TableStep("tall", "condensed_table", 0.01)) is None


def test_a_report_shows_the_ratios_that_are_made_and_current(made: dg.DagsterInstance, catalogue: Catalogue) -> None:
    assert len(Records(made, catalogue).available(REPORT)) == 4
    record(made, changed(catalogue, "wide", settings={"gamma": 0.5}), TableStep("wide", "cluster_allocation", 0.1))
    records = Records(made, catalogue)
    assert {step.ratio for step in records.available(REPORT)} == {0.01}
    assert not records.is_current(REPORT)
    assert not records.is_current(BOARD)
    record(made, catalogue, REPORT)
    assert Records(made, catalogue).is_current(REPORT)
    # A ratio that the catalogue does not list any more is left out, too.
    shorter = changed(catalogue, "wide", ratios=(0.01,))
    assert {step.ratio for step in Records(made, shorter).available(REPORT)} == {0.01}


def test_records_of_one_table_read_nothing_of_others(
    made: dg.DagsterInstance, catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[str] = set()
    really = made.get_asset_records

    def reading(keys: list[dg.AssetKey]) -> Sequence[Any]:
        asked.update(key.path[0] for key in keys)
        return really(keys)

    monkeypatch.setattr(made, "get_asset_records", reading)
    assert Records(made, catalogue, tables=["wide"]).out_of_date("wide") == []
    assert asked == {"wide", *OVER_ALL}
