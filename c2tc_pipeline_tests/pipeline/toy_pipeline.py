"""The pipeline's assets in name, partitions and tags, with nothing behind them: for what only looks at records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import dagster as dg

from c2tc_pipeline.pipeline.jobs import JOBS
from c2tc_pipeline.pipeline.ledger import DATA_VERSION_TAG, SOURCE_TAG, Ledger
from c2tc_pipeline.pipeline.versioning import PARENTS, VERSION_KEY_TAG, Partitions, partition_keys
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec


def toy_catalogue(folder: Path, *names: str, ratios: tuple[float, ...] = (0.1, 0.01)) -> Catalogue:
    """Return tables whose sources lie in a folder; each gets one row with its name."""
    tables = {name: TableSpec(name=name, source=f"{name}.csv", label="y", ratios=ratios) for name in names}
    for name in names:
        (folder / f"{name}.csv").write_text(f"x,y\n{name},1\n")
    return Catalogue(folder / "catalog.yaml", tables)


def toy_definitions(
    catalogue: Catalogue,
    *,
    act: Callable[[str, str], Mapping[str, object]] = lambda name, partition: {},
    checks: Sequence[dg.AssetChecksDefinition] = (),
    sensors: Iterable[dg.SensorDefinition] = (),
    schedules: Iterable[dg.ScheduleDefinition] = (),
) -> dg.Definitions:
    """Return the jobs over assets that only act as told, and record the metadata that this returns."""
    partitions = Partitions.of(catalogue)

    def make(name: str) -> dg.AssetsDefinition:
        keys = partition_keys(name, catalogue)
        divided = None if keys == [None] else partitions.grid if "|" in str(keys[0]) else partitions.datasets
        # What could be made in any order is made in this one.
        order = {"dagster/priority": str(-[*PARENTS].index(name))}
        pool, retries = "gpu" if name == "encoder" else None, dg.RetryPolicy(max_retries=1)

        @dg.asset(
            name=name,
            partitions_def=divided,
            deps=list(PARENTS[name]),
            retry_policy=retries,
            pool=pool,
            op_tags=order,
        )
        def toy() -> None:
            context = dg.AssetExecutionContext.get()
            context.add_output_metadata(act(name, context.partition_key if divided else ""))

        return toy

    assets = [make(name) for name in PARENTS]
    return dg.Definitions(assets, asset_checks=checks, jobs=JOBS, sensors=list(sensors), schedules=list(schedules))


def record(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    asset: str,
    partition: str | None,
    content: str = "",
    *,
    version_key: str | None = None,
) -> None:
    """Record a materialisation as the real asset does; the data version follows from version key and content."""
    tags = {VERSION_KEY_TAG: version_key or Ledger(instance, catalogue).expected(asset, partition) or ""}
    version = f"{tags[VERSION_KEY_TAG]}{content}"
    if asset == "raw_table":
        assert partition is not None
        source = catalogue.resolve_source(catalogue[partition])
        tags[SOURCE_TAG] = open_source(source).version()
        version = open_source(source).digest()
    event = dg.AssetMaterialization(asset, partition=partition, tags={**tags, DATA_VERSION_TAG: version})
    instance.report_runless_asset_event(event)


def record_all(
    instance: dg.DagsterInstance, catalogue: Catalogue, *tables: str, assets: Iterable[str] = PARENTS
) -> None:
    """Record everything that is out of date of some tables, parents first; without tables, of all."""
    for asset in assets:
        for partition, version_key in Ledger(instance, catalogue).pending(asset).items():
            if not tables or partition is None or Partitions.parse(partition)[0] in tables:
                record(instance, catalogue, asset, partition, version_key=version_key)
