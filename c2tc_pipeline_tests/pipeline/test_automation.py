"""What is launched after which change, tick by tick, on assets that record versions as the real ones do."""

import warnings
from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.automation import automation_condition
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.sensors import automation_sensor
from c2tc_pipeline.pipeline.versioning import ALGORITHM_VERSIONS, PARENTS, VERSION_KEY_TAG, Partitions, partition_keys
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables.spec import TableSpec

Launched = dict[str, set[str | None]]

WIDE = TableSpec(name="wide", source="wide.csv", label="y", ratios=(0.1, 0.01))
TALL = TableSpec(name="tall", source="tall.csv", label="y", ratios=(0.01,))
WIDE_CELLS: set[str | None] = {"wide|0.1", "wide|0.01"}
AFTER_ALLOCATION: list[Launched] = [
    {"cluster_allocation": WIDE_CELLS},
    {"condensed_table": WIDE_CELLS},
    {"training_rows": WIDE_CELLS, "evaluation_scores": WIDE_CELLS},
    {"report": {"wide"}, "leaderboard": {None}},
]
AFTER_VALIDATION: list[Launched] = [
    {"validated_table": {"wide"}},
    {"encoder": {"wide"}},
    {"encoded_table": {"wide"}},
    *AFTER_ALLOCATION,
]


class Pipeline:
    """Assets with the real names, partitions and conditions; their content is a hash of what they are made from."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.tables = {"wide": WIDE, "tall": TALL}
        self.sources = {"wide": "first delivery", "tall": "first delivery"}
        self.fixed: dict[tuple[str, str | None], str] = {}
        self.failing: set[str] = set()
        self.checked = False
        self.cursor: Any = None

    def change(self, table: str, **fields: Any) -> None:
        spec = self.tables[table]
        self.tables[table] = TableSpec.model_validate({**spec.model_dump(), **fields})

    def condense_with(self, table: str, **settings: Any) -> None:
        self.change(table, settings={**self.tables[table].settings.model_dump(), **settings})

    def definitions(self) -> dg.Definitions:
        partitions = Partitions.of(self.tables)
        checks = [self._check(partitions)] if self.checked else []
        return dg.Definitions([self._asset(name, partitions) for name in PARENTS], asset_checks=checks)

    def tick(self) -> Launched:
        """Return what one evaluation launches."""
        result = dg.evaluate_automation_conditions(self.definitions(), self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        launched = {name: set(result.get_requested_partitions(dg.AssetKey(name))) for name in PARENTS}
        return {name: keys for name, keys in launched.items() if keys}

    def make(self, asset: str, partition: str | None) -> None:
        """Record a materialisation as a run would."""
        version, made_by = self._made(asset, partition)
        tags = {"dagster/data_version": version, VERSION_KEY_TAG: made_by}
        self.instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=partition, tags=tags))

    def run(self, asset: str, partition: str | None) -> bool:
        """Materialise in a real run, with its checks, and return whether it succeeded."""
        job = self.definitions().resolve_implicit_global_asset_job_def()
        keys = [dg.AssetKey(asset)]
        checks = [dg.AssetCheckKey(keys[0], "accepted")] if self.checked and asset == "raw_table" else []
        subset = job.get_subset(asset_selection=set(keys), asset_check_selection=set(checks))
        return subset.execute_in_process(instance=self.instance, partition_key=partition, raise_on_error=False).success

    def deliver(self, table: str, content: str) -> None:
        self.sources[table] = content
        self.make("raw_table", table)

    def settle(self) -> list[Launched]:
        """Tick, make what is launched, and so on until nothing is."""
        ticks: list[Launched] = []
        while launched := self.tick():
            ticks.append(launched)
            for asset, keys in launched.items():
                for key in keys:
                    self.make(asset, key)
        return ticks

    def _made(self, asset: str, partition: str | None) -> tuple[str, str]:
        made_by = Ledger(self.instance, self.tables).expected(asset, partition)
        assert made_by is not None
        content = self.sources[str(partition)] if asset == "raw_table" else made_by
        return self.fixed.get((asset, partition), hash_json(content)), made_by

    def _asset(self, name: str, partitions: Partitions) -> dg.AssetsDefinition:
        by_cell = any(key and "|" in key for key in partition_keys(name, self.tables))
        by_table = None if name == "leaderboard" else partitions.datasets

        @dg.asset(
            name=name,
            deps=list(PARENTS[name]),
            partitions_def=partitions.grid if by_cell else by_table,
            code_version=ALGORITHM_VERSIONS[name],
            automation_condition=automation_condition(name, self.tables) if PARENTS[name] else None,
        )
        def made(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
            if name in self.failing:
                raise dg.Failure(f"{name} fails", allow_retries=False)
            version, made_by = self._made(name, context.partition_key if context.has_partition_key else None)
            return dg.MaterializeResult(data_version=dg.DataVersion(version), tags={VERSION_KEY_TAG: made_by})

        return made

    def _check(self, partitions: Partitions) -> dg.AssetChecksDefinition:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)

            @dg.asset_check(asset="raw_table", blocking=True, partitions_def=partitions.datasets)
            def accepted(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
                return dg.AssetCheckResult(passed="bad" not in self.sources[context.op_execution_context.partition_key])

        return accepted


@pytest.fixture
def empty() -> Iterator[Pipeline]:
    """Nothing made yet."""
    with dg.DagsterInstance.ephemeral() as instance:
        yield Pipeline(instance)


@pytest.fixture
def pipeline(empty: Pipeline) -> Pipeline:
    """Everything made, and seen by one evaluation."""
    for asset in PARENTS:
        for key in list(Ledger(empty.instance, empty.tables).pending(asset)):
            empty.make(asset, key)
    assert empty.tick() == {}
    return empty


def test_the_first_evaluation_launches_what_is_missing_and_has_parents(empty: Pipeline) -> None:
    assert empty.tick() == {}
    empty.deliver("wide", "first delivery")
    assert empty.settle() == AFTER_VALIDATION


def other_bytes_with_the_same_content(pipeline: Pipeline) -> None:
    version = Ledger(pipeline.instance, pipeline.tables).version("validated_table", "wide")
    assert version is not None
    pipeline.fixed["validated_table", "wide"] = version
    pipeline.deliver("wide", "first delivery, other bytes")


def test_a_change_remakes_what_reads_it_once(pipeline: Pipeline) -> None:
    pipeline.deliver("wide", "first delivery")
    assert pipeline.settle() == [], "the same bytes"
    pipeline.condense_with("wide", gamma=0.5)
    assert pipeline.settle() == AFTER_ALLOCATION
    other_bytes_with_the_same_content(pipeline)
    assert pipeline.settle() == [{"validated_table": {"wide"}}]
    pipeline.fixed.clear()
    pipeline.deliver("wide", "second delivery")
    assert pipeline.settle() == AFTER_VALIDATION
    pipeline.change("wide", label="z")
    pipeline.condense_with("wide", gamma=0.75)
    assert pipeline.settle() == AFTER_VALIDATION, "two changes at once"


def test_holes_of_the_grid_stay_holes(pipeline: Pipeline) -> None:
    assert Partitions.of(pipeline.tables).grid.has_partition_key("tall|0.1")
    assert Ledger(pipeline.instance, pipeline.tables).version("condensed_table", "tall|0.1") is None
    pipeline.change("tall", ratios=(0.1, 0.01))
    assert pipeline.tick() == {"cluster_allocation": {"tall|0.1"}}


def test_another_algorithm_remakes_its_asset_for_all_tables(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ALGORITHM_VERSIONS, "condensed_table", "another")
    assert pipeline.tick() == {"condensed_table": {*WIDE_CELLS, "tall|0.01"}}


def test_what_changed_while_nobody_looked_is_found_at_the_next_look(pipeline: Pipeline) -> None:
    pipeline.condense_with("wide", gamma=0.75)
    pipeline.deliver("tall", "second delivery")
    pipeline.cursor = None
    assert pipeline.tick() == {"validated_table": {"tall"}, "cluster_allocation": WIDE_CELLS}


def test_a_failed_run_is_launched_again_only_after_a_change(pipeline: Pipeline) -> None:
    pipeline.failing = {"encoder"}
    pipeline.condense_with("wide", seed=1)
    assert pipeline.tick()["encoder"] == {"wide"}
    assert not pipeline.run("encoder", "wide")
    assert all("encoder" not in pipeline.tick() for _ in range(2))
    pipeline.condense_with("wide", seed=2)
    assert pipeline.tick()["encoder"] == {"wide"}
    # A change that is taken back and made again is tried again.
    pipeline.condense_with("wide", seed=0)
    assert pipeline.tick() == {}
    pipeline.condense_with("wide", seed=2)
    assert pipeline.tick()["encoder"] == {"wide"}


def test_parents_that_do_not_agree_are_never_read_together(pipeline: Pipeline) -> None:
    pipeline.deliver("wide", "second delivery")
    assert pipeline.tick() == {"validated_table": {"wide"}}
    pipeline.make("validated_table", "wide")
    assert pipeline.tick() == {"encoder": {"wide"}}
    # The encoder fails: what reads today's rows must not read yesterday's encoder along with them, and what compares
    # tables does without this one.
    assert pipeline.tick() == {"leaderboard": {None}}
    assert pipeline.tick() == {}
    pipeline.make("encoder", "wide")
    assert pipeline.tick() == {"encoded_table": {"wide"}}


def test_nothing_is_launched_while_something_upstream_is_being_made(pipeline: Pipeline) -> None:
    job = pipeline.definitions().resolve_implicit_global_asset_job_def()
    run = pipeline.instance.create_run_for_job(
        job.get_subset(asset_selection={dg.AssetKey("validated_table")}),
        tags={"dagster/partition": "wide"},
        status=dg.DagsterRunStatus.STARTED,
        asset_selection=frozenset({dg.AssetKey("validated_table")}),
    )
    pipeline.condense_with("wide", gamma=0.75)
    pipeline.condense_with("tall", gamma=0.75)
    assert pipeline.tick() == {"cluster_allocation": {"tall|0.01"}}
    pipeline.instance.report_run_failed(run)
    assert pipeline.tick() == {"cluster_allocation": WIDE_CELLS}


def test_a_refused_delivery_goes_no_further_and_the_next_good_one_does(pipeline: Pipeline) -> None:
    pipeline.checked = True
    for table in pipeline.tables:
        assert pipeline.run("raw_table", table)
    assert pipeline.tick() == {}
    pipeline.sources = {"wide": "a bad delivery", "tall": "second delivery"}
    assert not pipeline.run("raw_table", "wide")
    # The verdict on another table, before or after, changes nothing.
    assert pipeline.run("raw_table", "tall")
    assert pipeline.tick() == {"validated_table": {"tall"}}
    # Settings still take effect on the last good delivery.
    pipeline.condense_with("wide", gamma=0.75)
    assert pipeline.tick() == {"cluster_allocation": WIDE_CELLS}
    pipeline.sources["wide"] = "third delivery"
    assert pipeline.run("raw_table", "wide")
    assert pipeline.tick() == {"validated_table": {"wide"}}


def test_the_sensor_accepts_the_conditions(pipeline: Pipeline) -> None:
    pipeline.condense_with("wide", gamma=0.75)
    sensor = automation_sensor(dg.AssetSelection.all())
    repository = dg.Definitions.merge(pipeline.definitions(), dg.Definitions(sensors=[sensor])).get_repository_def()
    with dg.build_sensor_context(pipeline.instance, repository_def=repository) as context:
        requests = sensor.evaluate_tick(context).run_requests or []
    assert {(request.partition_key, *(request.asset_selection or ())) for request in requests} == {
        (cell, dg.AssetKey("cluster_allocation")) for cell in WIDE_CELLS
    }
