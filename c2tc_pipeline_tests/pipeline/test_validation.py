"""Bad deliveries stop at the door and leave what was made before as it is; doubtful results only warn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.pipeline import checks
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, check_of, failure_of, tries_of, without_pictures
from c2tc_pipeline_tests.tools.made_tables import everything_below, mixed_table

AFTER_RAW = ("validated_table", "encoder", "encoded_table")
AFTER_ENCODING = {"cluster_allocation", "condensed_table", "training_rows", "evaluation_scores", "report"}
# A label that takes many rows to learn, so that few of them cost accuracy.
TABLE = mixed_table().assign(outcome=lambda rows: np.where(rows["age"] // 6 % 2, "class a", "class b"))


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """One good delivery."""
    with Rig(tmp_path_factory.mktemp("ingested")) as rig:
        rig.add("people", TABLE, evaluation={"seeds": 1, "models": ["boosting"]})
        assert rig.run("ingest", "people").success
        yield rig


@pytest.fixture
def rig(ingested: Rig, tmp_path: Path) -> Iterator[Rig]:
    """A copy of it, to deliver to."""
    with ingested.copy_to(tmp_path / "rig") as rig:
        yield rig


def with_a_new_class(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(outcome=frame["outcome"].mask(frame.index < 3, "class z"))


def without_a_column(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="age")


def with_infinities(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(amount=frame["amount"].mask(frame.index == 5, np.inf).mask(frame.index == 9, -np.inf))


def test_a_bad_delivery_stops_at_its_check_and_the_last_good_one_stands(rig: Rig) -> None:
    expected = {"column": "amount", "check": "finite", "count": 2, "first_cases": "inf, -inf"}
    before = rig.versions(*AFTER_RAW)
    files = {asset: everything_below(rig.folder / "store" / asset) for asset in AFTER_RAW}
    rig.deliver("people", with_infinities(TABLE))
    result = rig.run("ingest", "people")
    assert not result.success
    verdict = check_of(result, "fits_schema")
    assert (verdict.passed, verdict.severity, verdict.blocking) == (False, dg.AssetCheckSeverity.ERROR, False)
    told: dict[str, Any] = {name: value.value for name, value in verdict.metadata.items()}
    assert told["failures"] == 1
    assert [record.data for record in told["what_failed"].records] == [expected]
    assert verdict.description is not None
    assert repr(expected["column"]) in verdict.description
    assert tries_of(result, "raw_table") == tries_of(result, "validated_table") == 1
    assert failure_of(result, "validated_table") == verdict.description
    assert [event.asset_key for event in result.get_asset_materialization_events()] == [
        dg.AssetKey(["people", "raw_table"])
    ]
    assert rig.versions(*AFTER_RAW) == before
    assert {asset: everything_below(rig.folder / "store" / asset) for asset in AFTER_RAW} == files
    assert set(rig.out_of_date()) == AFTER_ENCODING, "the last good delivery is still worked with"


def test_what_follows_refuses_a_bad_delivery_too_and_is_not_tried_again(rig: Rig) -> None:
    before = rig.versions(*AFTER_RAW)
    rig.deliver("people", with_infinities(TABLE))
    assert not check_of(rig.make("raw_table", "people"), "fits_schema").passed
    result = rig.make("validated_table", "people")
    message = failure_of(result, "validated_table")
    assert "column 'amount' fails 'finite' in 2 values" in message
    assert "checks.baseline" in message
    assert tries_of(result, "validated_table") == 1
    assert rig.versions(*AFTER_RAW) == before


def test_a_raised_baseline_accepts_the_delivery(rig: Rig) -> None:
    rig.deliver("people", with_a_new_class(without_a_column(TABLE)))
    assert not rig.run("ingest", "people").success
    rig.change("people", checks={"baseline": 2})
    result = rig.run("ingest", "people")
    assert result.success
    assert check_of(result, "fits_schema").passed
    assert rig.told("validated_table", "people")["columns"] == TABLE.shape[1] - 1
    # From now on this is what fits.
    rig.deliver("people", TABLE.drop(columns="day"))
    assert not check_of(rig.make("raw_table", "people"), "fits_schema").passed


def test_a_first_delivery_that_no_one_can_use_stops_as_well(tmp_path: Path) -> None:
    with Rig(tmp_path) as rig:
        rig.add("people", mixed_table(classes=1))
        result = rig.run("ingest", "people")
        assert not result.success
        verdict = check_of(result, "fits_schema")
        assert not verdict.passed
        assert "one class only" in (verdict.description or "")
        assert set(rig.versions()) == {("raw_table", "people")}
        assert rig.out_of_date() == {}


def test_a_source_that_is_not_there_is_told_in_one_sentence_and_not_tried_again(rig: Rig) -> None:
    (rig.folder / "people.parquet").unlink()
    result = rig.run("ingest", "people")
    assert "people.parquet" in failure_of(result, "raw_table")
    assert tries_of(result, "raw_table") == 1


def test_deliveries_are_held_against_the_first_one_and_not_against_the_last(rig: Rig) -> None:
    for kept in (TABLE["outcome"] == "class a") | (TABLE.index < 40), TABLE["outcome"].notna():
        # In between comes a delivery that happens to have fewer classes, and fewer missing values.
        rig.deliver("people", TABLE[kept & TABLE["age"].notna()] if not kept.all() else TABLE)
        result = rig.run("ingest", "people")
        assert check_of(result, "fits_schema").passed, check_of(result, "fits_schema").description


class TestWarnings:
    """Warning checks fail visibly without stopping anything."""

    def test_label_drift(self, rig: Rig) -> None:
        frame = TABLE
        rig.change("people", checks={"drift": 0.01})
        moved = frame["outcome"].mask((frame["outcome"] == "class a") & (frame.index % 2 == 0), "class b")
        rig.deliver("people", frame.assign(outcome=moved))
        result = rig.make("raw_table", "people")
        assert result.success
        verdict = check_of(result, "label_drift")
        assert (verdict.passed, verdict.severity) == (False, dg.AssetCheckSeverity.WARN)
        shares = [table["outcome"].value_counts(normalize=True) for table in (frame, frame.assign(outcome=moved))]
        expected = (shares[0] - shares[1]).abs().sum() / 2
        assert verdict.metadata["drift"].value == pytest.approx(expected, abs=1e-4)
        rig.change("people", checks={"drift": 0.9})
        again = check_of(rig.make("raw_table", "people"), "label_drift")
        assert again.passed
        assert again.metadata["drift"] == verdict.metadata["drift"], "the same delivery is not compared with itself"

    def test_condensed_rows(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        """By the strictest limits, each check fails at one ratio or more."""
        without_pictures(monkeypatch)
        monkeypatch.setattr(checks, "MAX_GAP", 0.0)
        # Many condensed rows for few source rows leave singletons behind; few rows cost accuracy.
        ratios = [0.5, 0.02]
        strict = {"repeated_rows": 0.0, "accuracy_margin": 0.0}
        rig.change("people", ratios=ratios, checks=strict, settings={"allocation": "ratio"})
        verdicts: dict[str, list[bool]] = {}
        for ratio in ratios:
            result = rig.run("condense", f"people|{ratio}")
            assert result.success, "a warning stops nothing"
            for verdict in result.get_asset_check_evaluations():
                assert verdict.severity == dg.AssetCheckSeverity.WARN
                verdicts.setdefault(verdict.check_name, []).append(verdict.passed)
        steady = verdicts.pop("steady_quality")
        assert all(steady), "there is nothing to compare with"
        assert set(verdicts) == {"few_repeated_rows", "near_bound", "accurate_enough"}
        assert not any(all(found) for found in verdicts.values()), verdicts

    def test_a_delivery_from_which_models_learn_less(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        without_pictures(monkeypatch)
        table = mixed_table(900)
        table["outcome"] = np.where(table["age"] > table["age"].median(), "class a", "class b")
        noise = table.assign(outcome=table["outcome"].sample(frac=1, random_state=0).to_numpy())
        rig.change("people", ratios=[0.2])
        found = []
        for delivered in (table, table, noise):
            rig.deliver("people", delivered)
            assert rig.run("ingest", "people").success
            found.append(check_of(rig.run("condense", "people|0.2"), "steady_quality"))
        assert [verdict.passed for verdict in found] == [True, True, False]
        assert found[-1].severity == dg.AssetCheckSeverity.WARN
        assert max(float(str(value.value)) for value in found[-1].metadata.values()) > 0.2

    def test_repeated_rows_stop_where_that_is_wanted(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        without_pictures(monkeypatch)
        strict = {"repeated_rows": 0.0, "on_repeated_rows": "stop"}
        rig.change("people", ratios=[0.5], checks=strict)
        result = rig.run("condense", "people|0.5")
        message = failure_of(result, "condensed_table")
        assert "checks.repeated_rows" in message
        assert tries_of(result, "condensed_table") == 1
        assert not (rig.folder / "store" / "condensed_table").exists()
        # With enough rows behind each there is nothing to repeat.
        rig.change("people", ratios=[0.05], checks=strict, settings={"min_rows_per_condensed_row": 5})
        assert rig.run("condense", "people|0.05").success
