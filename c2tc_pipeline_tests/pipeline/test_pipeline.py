"""The whole pipeline on one small table: what is stored, what its metadata say, and how the assets are described."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.steps import EVALUATION_POOL, GPU_POOL, RETRIES
from c2tc_pipeline.pipeline.versioning import PARENTS, TableStep, code_version
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, scopes_of
from c2tc_pipeline_tests.tools.made_tables import mixed_table

RATIOS = (0.1, 0.05)
CELLS = [f"people|{ratio}" for ratio in RATIOS]
SCHEMA, LINEAGE, ROWS = "dagster/column_schema", "dagster/column_lineage", "dagster/row_count"
EVERYWHERE = {"seconds", "cpu_seconds", "peak_memory_mb", "replaces_version", "version", "path", "bytes"}
PROMISED = {
    "raw_table": {ROWS, SCHEMA}
    | {"columns", "cells_missing", "source", "source_version", "source_bytes", "classes", "class_shares"},
    "validated_table": {ROWS, SCHEMA, LINEAGE, "roles", "notices", "train_rows", "validation_rows", "test_rows"},
    "encoder": {"columns_in", "columns_encoded", "encodings", "cache_hit", "autoencoder_loss", "device"},
    "encoded_table": {ROWS, SCHEMA, LINEAGE, "columns_encoded", "megabytes", "validation_rows"},
    "cluster_allocation": {"rows_out", "planned_objective", "planned_bound", "cache_hit", "allocation", "device"},
    "condensed_table": {ROWS, SCHEMA, LINEAGE, "repeated_rows_by_reason"}
    | {"rows_in", "rows_out", "objective", "bound", "gap", "singletons", "repeated_rows"},
    "training_rows": {ROWS, SCHEMA, LINEAGE, "rows_out", "rows_per_condensed_row"},
    "evaluation_scores": {
        *("verdict", "share_of_whole_accuracy", "worth_of_a_row", "boosting_row_worth_by_auc"),
        *("cache_hit", "cache_hits", "scores", "device"),
        *(
            f"boosting_{kind}_{metric}"
            for kind in ("condensed", "condensed_bare", "random", "random_same_classes", "whole")
            for metric in ("accuracy", "macro_f1", "auc")
        ),
    },
    "report": {"ratios", "kilobytes", "page"},
    "leaderboard": {ROWS, "tables", "leaderboard"},
    "ops_overview": {"tables", "fresh", "failed", "page"},
}
PICTURES = {
    "cluster_allocation": {"loss_curves", "search"},
    "condensed_table": {"class_shares_picture", "projection"},
    "evaluation_scores": {"row_worth"},
    "report": {"accuracy_by_ratio", "macro_f1_by_ratio", "auc_by_ratio"},
}
POOLS = {
    **dict.fromkeys(("encoder", "cluster_allocation", "condensed_table"), GPU_POOL),
    "evaluation_scores": EVALUATION_POOL,
}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One table at two ratios, all of it made; nothing here changes it."""
    with Rig(tmp_path_factory.mktemp("pipeline")) as rig:
        rig.add(
            "people",
            mixed_table(400, words=True),
            ratios=list(RATIOS),
            settings={"strings": "similarity", "expand_rows": 500},
            evaluation={"seeds": 1, "models": ["boosting"]},
        )
        rig.run_all()
        yield rig


def stored(rig: Rig, asset: str, partition: str | None = None) -> Any:
    return StoreIOManager(root=rig.storage).read(asset, partition)


def test_every_asset_is_made_once_and_up_to_date(rig: Rig) -> None:
    for asset in PARENTS:
        for key in scopes_of(asset, rig.catalogue):
            assert rig.told(asset, key)["version"] == 1
    assert rig.out_of_date() == {}


def test_what_is_stored_loads(rig: Rig) -> None:
    for asset in PARENTS:
        for key in scopes_of(asset, rig.catalogue):
            assert stored(rig, asset, key) is not None
    raw = pd.concat(stored(rig, "raw_table", "people").frames())
    pd.testing.assert_frame_equal(raw, pd.read_parquet(rig.folder / "people.parquet"))
    page = stored(rig, "report", "people")
    assert page.startswith("<!DOCTYPE html>")


def test_the_condensed_rows_are_those_of_the_command(rig: Rig, tmp_path: Path) -> None:
    ours = stored(rig, "condensed_table", CELLS[0])
    spec = rig.catalogue["people"]
    spec = spec.model_copy(update={"source": rig.catalogue.resolve_source(spec)})
    theirs = condense_to_directory(spec, tmp_path / "out", name="people", ratio=RATIOS[0], split=True)
    for part in ("X", "original", "membership", "projection", "roles"):
        pd.testing.assert_frame_equal(getattr(ours, part), getattr(theirs, part))
    pd.testing.assert_series_equal(ours.y, theirs.y)
    pd.testing.assert_series_equal(ours.weight, theirs.weight)
    np.testing.assert_array_equal(ours.allocation.counts, theirs.allocation.counts)
    assert ours.summary["objective"] == theirs.summary["objective"]
    assert [str(notice) for notice in ours.notices] == [str(notice) for notice in theirs.notices]


@pytest.mark.parametrize("asset", PARENTS)
def test_metadata_tells_what_was_promised(rig: Rig, asset: str) -> None:
    for key in scopes_of(asset, rig.catalogue):
        told = rig.told(asset, key)
        assert EVERYWHERE | PROMISED[asset] <= set(told)
        assert "fallbacks" not in told
        for name in PICTURES.get(asset, ()):
            assert_picture(told[name])


def assert_picture(markdown: str) -> None:
    found = re.search(r"!\[[^\]]+\]\(data:image/(svg\+xml|png);base64,([^)]+)\)", markdown)
    assert found is not None
    data = base64.b64decode(found[2])
    assert len(data) > 2000
    assert (b"<svg" in data) if found[1] == "svg+xml" else data.startswith(b"\x89PNG")


def test_the_numbers_fit_together(rig: Rig) -> None:
    sides = [rig.told("validated_table", "people")[f"{side}_rows"] for side in ("train", "validation", "test")]
    assert sum(sides) == rig.told("raw_table", "people")[ROWS] == 400
    assert rig.told("encoded_table", "people")[ROWS] == sides[0]
    for cell, ratio in zip(CELLS, RATIOS, strict=True):
        condensed, planned = rig.told("condensed_table", cell), rig.told("cluster_allocation", cell)
        assert condensed["rows_in"] == sides[0]
        assert condensed["rows_out"] == condensed[ROWS] == planned["rows_out"] == round(ratio * sides[0])
        assert 0 < condensed["bound"] <= condensed["objective"]
        scores = rig.told("evaluation_scores", cell)
        assert 0.2 < scores["boosting_whole_accuracy"] <= 1
    # Rows drawn from the condensed ones, these themselves, two kinds of random rows, all rows, and multiples of the
    # budget up to all rows; two kinds of columns.
    training_sets = sum(5 + sum(multiple * ratio <= 1 for multiple in (5, 20)) for ratio in RATIOS)
    assert rig.told("leaderboard")[ROWS] == 2 * training_sets


def test_training_rows_have_the_columns_of_the_source_and_their_number_concerns_no_other_asset(
    rig: Rig, tmp_path: Path
) -> None:
    source = pd.read_parquet(rig.folder / "people.parquet")
    for cell in CELLS:
        rows, told = stored(rig, "training_rows", cell), rig.told("training_rows", cell)
        assert list(rows.columns) == [*source.columns.drop("outcome"), "outcome", "weight"]
        assert len(rows) == told[ROWS] == 500
        assert [column.name for column in told[SCHEMA].columns] == list(rows.columns)
        assert set(rows["outcome"]) == set(source["outcome"].dropna())
        assert (rows["weight"] > 0).all()
        assert rows["weight"].mean() == pytest.approx(1)
        assert rows["age"].dropna().between(source["age"].min(), source["age"].max()).all()
        assert set(rows["job"].dropna()) <= set(source["job"].dropna())
    with rig.copy_to(tmp_path / "rig") as copied:
        copied.change("people", settings={"strings": "similarity", "expand_rows": 400})
        assert copied.out_of_date() == {"training_rows": set(CELLS)}


def test_columns_are_traced_to_where_they_come_from(rig: Rig) -> None:
    columns = set(mixed_table().columns)
    behind = {
        asset: rig.told(asset, "people")[LINEAGE].deps_by_column for asset in ("validated_table", "encoded_table")
    }
    assert set(behind["validated_table"]) == columns
    assert behind["validated_table"]["job"] == [dg.TableColumnDep(dg.AssetKey(["people", "raw_table"]), "job")]
    assert {dep.column_name for deps in behind["encoded_table"].values() for dep in deps} == columns - {"outcome"}
    encoded = {column.name for column in rig.told("encoded_table", "people")[SCHEMA].columns}
    assert set(behind["encoded_table"]) == encoded
    condensed = rig.told("condensed_table", CELLS[0])
    assert set(condensed[LINEAGE].deps_by_column) == {column.name for column in condensed[SCHEMA].columns} == columns


def test_every_check_ran_and_none_failed_that_stops_a_table(rig: Rig) -> None:
    keys = rig.definitions.resolve_asset_graph().asset_check_keys
    assert {key.name for key in keys} == {
        *("fits_schema", "label_drift", "few_repeated_rows", "near_bound", "accurate_enough", "steady_quality")
    }
    assert len(keys) == 2 + 4 * len(RATIOS)
    for key in keys:
        (newest, *_) = rig.instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
        assert newest.status.value in ("SUCCEEDED", "FAILED")
        assert key.name != "fits_schema" or newest.status.value == "SUCCEEDED"


def test_every_asset_is_described_by_its_table(rig: Rig) -> None:
    definitions = build_defs(rig.catalogue, storage=rig.storage)
    specs = {TableStep.of_key(spec.key): spec for spec in definitions.resolve_all_asset_specs()}
    assert {step.step for step in specs} == set(PARENTS)
    assert {step.ratio for step in specs} == {None, *RATIOS}
    for step, spec in specs.items():
        assert spec.group_name == (step.table or "all_tables")
        assert {"python"} < spec.kinds
        assert spec.owners
        assert spec.description
        assert spec.code_version == code_version(step, rig.catalogue)
        above = [TableStep.of_key(dep.asset_key) for dep in spec.deps]
        assert {each.step for each in above} == set(PARENTS[step.step])
        assert all(step.ratio is None or each.ratio in (None, step.ratio) for each in above)
        operation = definitions.resolve_assets_def(spec.key).op
        assert operation.retry_policy == RETRIES
        assert operation.pool == POOLS.get(step.step)
    assert RETRIES.max_retries > 0
    assert (RETRIES.backoff, RETRIES.jitter) == (dg.Backoff.EXPONENTIAL, dg.Jitter.PLUS_MINUS)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.001, 1e-05, 1.5e-07])
def test_a_ratio_survives_its_key(ratio: float) -> None:
    step = TableStep("a__b", "condensed_table", ratio)
    assert TableStep.of_key(step.key) == step
    assert TableStep.of_op(step.key.to_python_identifier()) == step


def test_freshness_is_a_setting_of_the_table(rig: Rig, tmp_path: Path) -> None:
    with rig.copy_to(tmp_path / "rig") as copied:
        copied.change("people", fresh_within="26h")
        copied.add("shops", mixed_table(300, seed=1))
        policies = {
            spec.key.path[0]: spec.freshness_policy
            for spec in copied.definitions.resolve_all_asset_specs()
            if spec.freshness_policy is not None
        }
    assert policies == {"people": dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=26))}


def test_a_rerun_by_hand_takes_what_is_costly_from_the_cache(rig: Rig, tmp_path: Path) -> None:
    reusing = {"encoder": "people", "cluster_allocation": CELLS[0], "evaluation_scores": CELLS[0]}
    with rig.copy_to(tmp_path / "rig") as copied:
        before = copied.versions()
        assert not any(copied.told(asset, key)["cache_hit"] for asset, key in reusing.items())
        for asset, key in reusing.items():
            assert copied.make(asset, key).success
            assert (copied.told(asset, key)["cache_hit"], copied.told(asset, key)["version"]) == (True, 2)
        assert copied.versions() == before
        assert copied.out_of_date() == {}


def test_steps_of_two_deliveries_are_not_mixed(rig: Rig, tmp_path: Path) -> None:
    with rig.copy_to(tmp_path / "rig") as copied:
        # The settings of the encoder are others now, so it does not fit the table that was encoded by it.
        copied.change("people", settings={"strings": "target", "expand_rows": 500})
        assert "encoder is out of date" in failure_of(copied.make("condensed_table", CELLS[0]), "condensed_table")
