"""What the real pipeline remakes after which change, tick by tick with real runs between the ticks, and what it reuses.

The same rules on assets without content, and many more changes, are in ``test_automation``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.versioning import PARENTS
from c2tc_pipeline_tests.pipeline.pipeline_rig import JOBS, Launched, Rig
from c2tc_pipeline_tests.tools.made_tables import mixed_table

AFTER_ALLOCATION: list[Launched] = [
    {"cluster_allocation": {"people|0.1"}},
    {"condensed_table": {"people|0.1"}},
    {"evaluation_scores": {"people|0.1"}},
    {"report": {"people"}, "leaderboard": {None}},
]
AFTER_VALIDATION: list[Launched] = [
    {"validated_table": {"people"}},
    {"encoder": {"people"}},
    {"encoded_table": {"people"}},
    *AFTER_ALLOCATION,
]


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, list[Launched]]]:
    """Two tables, ingested by hand and the rest by automation; and what was launched, tick by tick."""
    with pytest.MonkeyPatch.context() as patch, Rig(tmp_path_factory.mktemp("settled")) as rig:
        # Pictures take most of the time, and decide nothing here.
        patch.setattr(metadata, "_pictures", lambda exhibits: {})
        rig.add("people", mixed_table(300, words=True), settings={"strings": "similarity"})
        rig.add("shops", mixed_table(300, seed=1))
        assert rig.tick() == {}
        for table in rig.catalogue:
            assert rig.make("raw_table", table).success
        yield rig, rig.settle()


@pytest.fixture
def rig(settled: tuple[Rig, list[Launched]], tmp_path: Path) -> Iterator[Rig]:
    """A copy of them, to change."""
    with settled[0].copy_to(tmp_path / "rig") as rig:
        yield rig


def test_a_part_that_is_made_alone_is_reported_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "_pictures", lambda exhibits: {})
    with Rig(tmp_path / "parts") as rig:
        rig.folder.mkdir(exist_ok=True)
        rig.add("people", mixed_table(300), ratios=[0.1, 0.05])
        rig.run_all()
        assert rig.told("report", "people")["ratios"] == 2
        rig.deliver("people", mixed_table(300, seed=5))
        for job, partition in ("ingest_job", "people"), ("condense_job", "people|0.1"), ("report_job", "people"):
            assert rig.run(job, partition).success
        assert rig.told("report", "people")["ratios"] == 1


def changed_side(rig: Rig, side: str) -> pd.DataFrame:
    """Return the table people with other amounts, in another order, on one side of its split."""
    table = StoreIOManager(root=rig.storage).read("validated_table", "people")
    frame = pd.concat(table.blocks.frames())
    frame.loc[table.positions(side), "amount"] = 2 * table.read(side)["amount"].to_numpy()[::-1]
    return frame


def test_the_first_evaluation_after_an_ingest_makes_everything_once(settled: tuple[Rig, list[Launched]]) -> None:
    shops: dict[str | None, str | None] = {"people": "shops", "people|0.1": "shops|0.1", None: None}
    expected = [
        {asset: {*keys, *(shops[key] for key in keys)} for asset, keys in tick.items()} for tick in AFTER_VALIDATION
    ]
    assert settled[1] == expected


def test_other_bytes_of_one_table_remake_that_table_layer_by_layer(rig: Rig) -> None:
    before = rig.versions()
    rig.deliver("people", changed_side(rig, "train"))
    assert rig.make("raw_table", "people").success
    assert rig.settle() == AFTER_VALIDATION
    after = rig.versions()
    remade = {(asset, key) for tick in AFTER_VALIDATION for asset, keys in tick.items() for key in keys}
    assert {key for key in before if after[key] != before[key]} == {("raw_table", "people"), *remade}


def test_other_test_rows_are_scored_and_leave_the_condensed_table_alone(rig: Rig) -> None:
    before = rig.versions()
    rig.deliver("people", changed_side(rig, "test"))
    assert rig.make("raw_table", "people").success
    launched = [asset for tick in rig.settle() for asset in tick]
    assert launched[:3] == ["validated_table", "encoder", "encoded_table"]
    assert launched[3] == "evaluation_scores"
    after = rig.versions()
    changed = {asset for asset, key in before if after[asset, key] != before[asset, key]}
    assert {"raw_table", "validated_table"} <= changed <= {"raw_table", "validated_table", *launched[3:]}


def test_a_setting_of_one_table_remakes_its_allocation_and_what_follows(rig: Rig) -> None:
    before = rig.versions()
    rig.change("people", settings={"strings": "similarity", "allocation": "fipc"})
    *launched, last = rig.settle()
    assert launched == AFTER_ALLOCATION[:-1]
    assert last["report"] == {"people"}
    # Other rows may teach a model the same; then the leaderboard has nothing new to show.
    scores = ("evaluation_scores", "people|0.1")
    assert ("leaderboard" in last) == (rig.versions()[scores] != before[scores])
    condensed = ("condensed_table", "people|0.1")
    assert rig.versions()[condensed] != before[condensed]


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
