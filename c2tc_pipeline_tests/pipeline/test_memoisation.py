"""What the real pipeline remakes after which change, tick by tick with real runs between the ticks, and what it reuses.

The same rules on assets without content, and many more changes, are in ``test_automation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.versioning import PARENTS
from c2tc_pipeline_tests.pipeline.pipeline_rig import JOBS, Launched, Rig, without_pictures
from c2tc_pipeline_tests.tools.made_tables import mixed_table

AFTER_INGEST: list[Launched] = [
    {"validated_table": {"people"}},
    {"encoder": {"people"}},
    {"encoded_table": {"people"}},
    {"cluster_allocation": {"people|0.1"}},
    {"condensed_table": {"people|0.1"}},
    {"training_rows": {"people|0.1"}, "evaluation_scores": {"people|0.1"}},
    {"report": {"people"}, "leaderboard": {None}},
]


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, list[Launched]]]:
    """A table, ingested by hand and the rest by automation; and what was launched, tick by tick."""
    with pytest.MonkeyPatch.context() as patch, Rig(tmp_path_factory.mktemp("settled")) as rig:
        without_pictures(patch)
        rig.add("people", mixed_table(300, words=True), settings={"strings": "similarity"})
        assert rig.tick() == {}
        assert rig.make("raw_table", "people").success
        yield rig, rig.settle()


@pytest.fixture
def rig(settled: tuple[Rig, list[Launched]], tmp_path: Path) -> Iterator[Rig]:
    """A copy of it, to change."""
    with settled[0].copy_to(tmp_path / "rig") as rig:
        yield rig


def test_a_part_that_is_made_alone_is_reported_alone(rig: Rig) -> None:
    rig.change("people", ratios=[0.1, 0.05])
    for job, partition in ("condense_job", "people|0.05"), ("report_job", "people"):
        assert rig.run(job, partition).success
    assert rig.told("report", "people")["ratios"] == 2
    rig.change("people", settings={"strings": "similarity", "representative": "medoid"})
    for job, partition in ("condense_job", "people|0.1"), ("report_job", "people"):
        assert rig.run(job, partition).success
    assert rig.told("report", "people")["ratios"] == 1


def test_the_first_evaluation_after_an_ingest_makes_everything_once(settled: tuple[Rig, list[Launched]]) -> None:
    assert settled[1] == AFTER_INGEST


def test_other_test_rows_are_scored_and_leave_the_condensed_table_alone(rig: Rig) -> None:
    before = rig.versions()
    table = StoreIOManager(root=rig.storage).read("validated_table", "people")
    frame = pd.concat(table.blocks.frames())
    frame.loc[table.positions("test"), "amount"] = 2 * table.read("test")["amount"].to_numpy()[::-1]
    rig.deliver("people", frame)
    assert rig.make("raw_table", "people").success
    launched = [asset for tick in rig.settle() for asset in tick]
    assert launched[:3] == ["validated_table", "encoder", "encoded_table"]
    assert launched[3] == "evaluation_scores"
    after = rig.versions()
    changed = {asset for asset, key in before if after[asset, key] != before[asset, key]}
    assert {"raw_table", "validated_table"} <= changed <= {"raw_table", "validated_table", *launched[3:]}


def test_a_rerun_by_hand_takes_what_is_costly_from_the_cache(rig: Rig) -> None:
    before = rig.versions()
    reusing = {"encoder": "people", "cluster_allocation": "people|0.1", "evaluation_scores": "people|0.1"}
    assert not any(rig.told(asset, key)["cache_hit"] for asset, key in reusing.items())
    assert rig.run("ingest_job", "people").success
    assert rig.run("condense_job", "people|0.1").success
    for asset, key in reusing.items():
        assert rig.told(asset, key)["cache_hit"]
        assert rig.told(asset, key)["version"] == 2
    assert rig.versions() == before
    assert set(before) >= {(asset, "people") for asset in PARENTS if asset in JOBS["ingest_job"]}
    assert rig.tick() == {}
