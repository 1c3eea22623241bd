"""What counts towards a version key, and what the ledger makes of recorded ones."""

from __future__ import annotations

from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import (
    ALGORITHM_VERSIONS,
    PARENTS,
    VERSION_KEY_TAG,
    Partitions,
    VersionOf,
    ancestors,
    current_version_key,
    in_between,
    partition_keys,
    settings_of,
    version_key,
)
from c2tc_pipeline.tables.spec import TableSpec

Tables = dict[str, TableSpec]


def spec(name: str = "wide", **fields: Any) -> TableSpec:
    return TableSpec(**{"name": name, "source": f"{name}.csv", "label": "y", "ratios": [0.1, 0.01], **fields})


@pytest.fixture
def tables() -> Tables:
    return {"wide": spec(), "tall": spec("tall", ratios=[0.01])}


@pytest.fixture
def instance() -> dg.DagsterInstance:
    return dg.DagsterInstance.ephemeral()


def record(instance: dg.DagsterInstance, asset: str, partition: str | None, *, version: str, made_by: str) -> None:
    tags = {"dagster/data_version": version, VERSION_KEY_TAG: made_by}
    instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=partition, tags=tags))


def test_every_asset_has_a_version_and_comes_after_its_parents() -> None:
    order = list(PARENTS)
    assert order == list(ALGORITHM_VERSIONS)
    assert all(order.index(parent) < order.index(asset) for asset in order for parent in PARENTS[asset])
    above = order[: order.index("evaluation_scores") + 1]
    assert ancestors("leaderboard") == [asset for asset in above if asset != "training_rows"]


def test_parents_must_agree_where_one_is_made_from_another() -> None:
    assert {asset: in_between(asset) for asset in PARENTS if in_between(asset)} == {
        "encoded_table": ["encoder"],
        "condensed_table": ["encoder", "encoded_table", "cluster_allocation"],
        "evaluation_scores": ["encoder", "encoded_table", "cluster_allocation", "condensed_table"],
        "report": ["evaluation_scores"],
    }


@pytest.mark.parametrize(
    ("change", "readers"),
    [
        ({"source": "elsewhere.csv"}, ["raw_table"]),
        ({"label": "z"}, ["validated_table"]),
        ({"roles": {"x": "code"}}, ["validated_table"]),
        ({"split": {"test": 0.2}}, ["validated_table"]),
        ({"checks": {"baseline": 2}}, ["validated_table"]),
        ({"checks": {"drift": 0.5}}, []),
        ({"description": "a table"}, []),
        ({"ratios": [0.5, 0.01]}, []),
        ({"settings": {"strings": "target"}}, ["encoder"]),
        ({"settings": {"numeric": "minmax"}}, ["encoder"]),
        ({"settings": {"allocation": "ratio"}}, ["cluster_allocation"]),
        ({"settings": {"gamma": "auto"}}, ["cluster_allocation"]),
        ({"settings": {"representative": "medoid"}}, ["condensed_table"]),
        ({"settings": {"min_rows_per_condensed_row": 5}}, ["cluster_allocation", "condensed_table"]),
        ({"checks": {"repeated_rows": 0.5}}, []),
        ({"checks": {"on_repeated_rows": "stop"}}, ["condensed_table"]),
        (
            {"settings": {"seed": 7}},
            ["encoder", "encoded_table", "cluster_allocation", "condensed_table", "training_rows"],
        ),
        ({"settings": {"column_weights": "none"}}, ["encoded_table"]),
        ({"settings": {"min_category_rows": 9}}, ["condensed_table"]),
        ({"settings": {"expand_rows": 500}}, ["training_rows"]),
        ({"settings": {"device": "cpu"}}, []),
        ({"settings": {"engine": "dask://127.0.0.1:8786"}}, []),
        ({"evaluation": {"seeds": 9}}, ["evaluation_scores"]),
    ],
    ids=str,
)
def test_a_setting_counts_where_it_is_read_and_nowhere_else(change: dict[str, Any], readers: list[str]) -> None:
    changed = [
        asset for asset in PARENTS if settings_of(asset, spec(), 0.01) != settings_of(asset, spec(**change), 0.01)
    ]
    assert changed == readers


def test_a_version_key_depends_on_algorithm_settings_and_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    base = version_key("encoder", {"seed": 0}, {"validated_table/wide": "v1"})
    assert base == version_key("encoder", {"seed": 0}, {"validated_table/wide": "v1"})
    assert base != version_key("encoder", {"seed": 1}, {"validated_table/wide": "v1"})
    assert base != version_key("encoder", {"seed": 0}, {"validated_table/wide": "v2"})
    assert base != version_key("encoded_table", {"seed": 0}, {"validated_table/wide": "v1"})
    monkeypatch.setitem(ALGORITHM_VERSIONS, "encoder", "another")
    assert base != version_key("encoder", {"seed": 0}, {"validated_table/wide": "v1"})


def asked_of(asset: str, partition: str | None, tables: Tables) -> list[str]:
    asked: list[str] = []

    def version_of(parent: str, key: str) -> str:
        asked.append(f"{parent}/{key}")
        return "v1"

    assert current_version_key(asset, partition, tables, version_of) is not None
    return asked


def test_parents_are_partitions_of_the_same_table_and_ratio(tables: Tables) -> None:
    assert asked_of("raw_table", "wide", tables) == []
    assert asked_of("encoded_table", "wide", tables) == ["validated_table/wide", "encoder/wide"]
    scored = ["validated_table/wide", "encoded_table/wide", "condensed_table/wide|0.1"]
    assert asked_of("evaluation_scores", "wide|0.1", tables) == scored
    assert asked_of("leaderboard", None, tables) == [
        "evaluation_scores/wide|0.1",
        "evaluation_scores/wide|0.01",
        "evaluation_scores/tall|0.01",
    ]
    assert asked_of("report", "wide", tables) == [
        "condensed_table/wide|0.1",
        "condensed_table/wide|0.01",
        "evaluation_scores/wide|0.1",
        "evaluation_scores/wide|0.01",
    ]


@pytest.mark.parametrize(
    ("asset", "partition"),
    [
        ("condensed_table", "tall|0.1"),
        ("condensed_table", "wide"),
        ("condensed_table", "gone|0.1"),
        ("encoder", "gone"),
        ("encoder", "wide|0.1"),
        ("encoder", None),
        ("leaderboard", "wide"),
    ],
)
def test_a_partition_that_is_not_listed_has_no_version_key(asset: str, partition: str | None, tables: Tables) -> None:
    assert current_version_key(asset, partition, tables, lambda parent, key: "v1") is None


def test_a_gathering_asset_takes_what_there_is_and_others_need_all(tables: Tables) -> None:
    def without(*missing: str) -> VersionOf:
        return lambda parent, key: None if f"{parent}/{key}" in missing else "v1"

    assert current_version_key("encoded_table", "wide", tables, without("encoder/wide")) is None
    partial = current_version_key("report", "wide", tables, without("evaluation_scores/wide|0.1"))
    assert partial not in (None, current_version_key("report", "wide", tables, without()))
    none_scored = without("evaluation_scores/wide|0.1", "evaluation_scores/wide|0.01")
    assert current_version_key("report", "wide", tables, none_scored) is None


def test_what_is_recorded_under_todays_version_key_is_up_to_date(
    instance: dg.DagsterInstance, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("c2tc_pipeline.pipeline.ledger._EVENTS_AT_ONCE", 1)
    before = Ledger(instance, tables)
    assert list(before.pending("raw_table")) == ["wide", "tall"]
    for name in tables:
        assert not before.is_current("raw_table", name)
        record(instance, "raw_table", name, version="v1", made_by=before.expected("raw_table", name) or "")
    after = Ledger(instance, tables)
    assert list(after.pending("raw_table")) == []
    assert after.is_current("raw_table", "wide")
    assert not after.is_current("encoder", "wide"), "its parent is missing"
    assert after.pending("validated_table") == {key: after.expected("validated_table", key) for key in tables}
    # A table that its checks stopped is not made without them.
    job = ("raw_table", "validated_table", "encoder")
    assert after.work(job) == {"wide": job, "tall": job}
    moved = {**tables, "wide": spec(source="elsewhere.csv")}
    assert list(Ledger(instance, moved).pending("raw_table")) == ["wide"]


def test_the_newest_materialisation_counts(instance: dg.DagsterInstance, tables: Tables) -> None:
    today = Ledger(instance, tables).expected("raw_table", "wide") or ""
    record(instance, "raw_table", "wide", version="v1", made_by=today)
    record(instance, "raw_table", "wide", version="v2", made_by="another")
    ledger = Ledger(instance, tables)
    assert ledger.version("raw_table", "wide") == "v2"
    assert "wide" in list(ledger.pending("raw_table"))
    record(instance, "raw_table", "wide", version="v1", made_by=today)
    assert "wide" not in list(Ledger(instance, tables).pending("raw_table"))


def test_an_asset_without_partitions(instance: dg.DagsterInstance, tables: Tables) -> None:
    assert list(Ledger(instance, tables).pending("leaderboard")) == []
    record(instance, "evaluation_scores", "tall|0.01", version="v1", made_by="any")
    ledger = Ledger(instance, tables)
    assert list(ledger.pending("leaderboard")) == [None]
    record(instance, "leaderboard", None, version="v1", made_by=ledger.expected("leaderboard", None) or "")
    assert list(Ledger(instance, tables).pending("leaderboard")) == []
    record(instance, "evaluation_scores", "wide|0.1", version="v1", made_by="any")
    assert list(Ledger(instance, tables).pending("leaderboard")) == [None]


def make_all(instance: dg.DagsterInstance, tables: Tables, *, version: str) -> None:
    for asset in PARENTS:
        for partition, to_be in Ledger(instance, tables).pending(asset).items():
            record(instance, asset, partition, version=version, made_by=to_be)


def test_a_partition_is_behind_while_its_parents_do_not_agree(instance: dg.DagsterInstance, tables: Tables) -> None:
    make_all(instance, tables, version="v1")
    record(instance, "validated_table", "wide", version="v2", made_by="another-delivery")
    ledger = Ledger(instance, tables)
    assert list(ledger.pending("encoder")) == ["wide"]
    assert ledger.behind("condensed_table", "wide|0.1") == ["encoder", "encoded_table"]
    assert ledger.behind("condensed_table", "tall|0.01") == []
    assert ledger.behind("cluster_allocation", "wide|0.1") == []
    assert all(list(ledger.pending(asset)) == [] for asset in ["encoded_table", "condensed_table", "evaluation_scores"])


def test_a_report_leaves_cells_out_that_are_out_of_date_or_not_listed(
    instance: dg.DagsterInstance, tables: Tables
) -> None:
    make_all(instance, tables, version="v1")
    assert Ledger(instance, tables).cells("report", "wide") == {"wide|0.1", "wide|0.01"}
    shorter = {**tables, "wide": tables["wide"].model_copy(update={"ratios": (0.01,)})}
    assert Ledger(instance, shorter).cells("report", "wide") == {"wide|0.01"}
    assert list(Ledger(instance, shorter).pending("leaderboard")) == [None]
    record(instance, "condensed_table", "wide|0.1", version="v2", made_by="another-gamma")
    ledger = Ledger(instance, tables)
    assert ledger.cells("report", "wide") == {"wide|0.01"}
    assert ledger.behind("report", "wide") == []
    assert list(ledger.pending("report")) == ["wide"]


def test_another_reader_remakes_what_was_read(
    instance: dg.DagsterInstance, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_all(instance, tables, version="v1")
    monkeypatch.setitem(ALGORITHM_VERSIONS, "raw_table", "next")
    ledger = Ledger(instance, tables)
    assert list(ledger.pending("raw_table")) == list(ledger.pending("validated_table")) == list(tables)


def test_a_report_does_without_scores_that_were_never_made(instance: dg.DagsterInstance, tables: Tables) -> None:
    for partition in ("wide|0.1", "wide|0.01"):
        record(instance, "condensed_table", partition, version="v1", made_by="any")
    record(instance, "validated_table", "wide", version="v1", made_by="any")
    scored = Ledger(instance, tables).expected("evaluation_scores", "wide|0.1") or ""
    record(instance, "evaluation_scores", "wide|0.1", version="v1", made_by=scored)
    assert list(Ledger(instance, tables).pending("report")) == ["wide"]


def test_keys_are_those_that_dagster_has(tables: Tables) -> None:
    partitions = Partitions.of(tables)
    assert list(partitions.datasets.get_partition_keys()) == ["wide", "tall"]
    assert set(partitions.grid.get_partition_keys()) == {"wide|0.1", "wide|0.01", "tall|0.1", "tall|0.01"}
    assert partition_keys("condensed_table", tables) == ["wide|0.1", "wide|0.01", "tall|0.01"]
    assert partition_keys("report", tables) == ["wide", "tall"]


@pytest.mark.parametrize("ratio", [1.0, 0.001, 1e-05, 1 / 3])
def test_a_ratio_survives_its_key(ratio: float) -> None:
    key = Partitions.cell_key("wide", ratio)
    assert Partitions.of({"wide": spec(ratios=[ratio])}).grid.has_partition_key(key)
    assert Partitions.parse(key) == ("wide", ratio)
