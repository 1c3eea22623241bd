"""The pipeline's assets in key, code version and tags, without values: for tests of code that reads only records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from c2tc_pipeline.pipeline.jobs import all_jobs
from c2tc_pipeline.pipeline.records import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    GATHERED_TAG,
    INPUT_VERSION_TAG,
    REFUSED_TAG,
    SOURCE_TAG,
    Records,
)
from c2tc_pipeline.pipeline.versioning import (
    GATHERING,
    OVER_ALL,
    PARENTS,
    TableStep,
    code_version,
    parents_of,
    table_steps,
)
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec


def toy_catalogue(folder: Path, *names: str, ratios: tuple[float, ...] = (0.1, 0.01)) -> Catalogue:
    """Return tables whose sources lie in a folder; each gets one row with its name."""
    tables = {name: TableSpec(name=name, source=f"{name}.csv", label="y", ratios=ratios) for name in names}
    for name in names:
        (folder / f"{name}.csv").write_text(f"x,y\n{name},1\n")
    return Catalogue(folder / "catalog.yaml", tables)


def changed(catalogue: Catalogue, table: str, **fields: object) -> Catalogue:
    """Return the catalogue with other fields of one table."""
    spec = TableSpec.model_validate({**catalogue[table].model_dump(), **fields})
    return Catalogue(catalogue.path, {**catalogue, table: spec})


def every_step(catalogue: Catalogue) -> list[TableStep]:
    """Return all steps of all tables, parents first."""
    tables = [step for spec in catalogue.values() for step in table_steps(spec)]
    return [*tables, *(TableStep("", name) for name in OVER_ALL)]


def toy_definitions(
    catalogue: Catalogue,
    *,
    act: Callable[[TableStep], Mapping[str, Any]] = lambda step: {},
    checks: Sequence[dg.AssetChecksDefinition] = (),
    sensors: Iterable[dg.SensorDefinition] = (),
    schedules: Iterable[dg.ScheduleDefinition] = (),
    jobs: Sequence[Any] | None = None,
) -> dg.Definitions:
    """Return the jobs over assets that only call a function, and record the metadata that it returns."""

    def make(step: TableStep) -> dg.AssetsDefinition:
        # What could be made in any order is made in this one.
        order = {"dagster/priority": str(-[*PARENTS].index(step.step))}

        @dg.asset(
            key=step.key,
            deps=[parent.key for parent in parents_of(step, catalogue)],
            code_version=code_version(step, catalogue),
            retry_policy=dg.RetryPolicy(max_retries=1),
            op_tags=order,
        )
        def toy() -> dg.MaterializeResult:
            instance = dg.AssetExecutionContext.get().instance
            return dg.MaterializeResult(metadata=act(step), tags=_own_tags(Records(instance, catalogue), step))

        return toy

    assets = [make(step) for step in every_step(catalogue)]
    jobs = all_jobs(catalogue) if jobs is None else jobs
    return dg.Definitions(assets, asset_checks=checks, jobs=jobs, sensors=list(sensors), schedules=list(schedules))


def _own_tags(records: Records, step: TableStep) -> dict[str, str]:
    if step.step in GATHERING:
        return {GATHERED_TAG: records.gathered(step)}
    if step.step != "raw_table":
        return {}
    return {SOURCE_TAG: open_source(records.catalogue.resolve_source(records.catalogue[step.table])).version()}


def record(
    instance: dg.DagsterInstance, catalogue: Catalogue, step: TableStep, content: str = "", *, refused: bool = False
) -> str:
    """Record a materialisation as Dagster does; return the data version, by default of code and inputs."""
    records = Records(instance, catalogue, tables=[step.table] if step.table else None)
    versions = {parent: records.version(parent) or "" for parent in parents_of(step, catalogue)}
    return _report(instance, catalogue, step, versions, _own_tags(records, step), content, refused=refused)


def _report(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    step: TableStep,
    versions: Mapping[TableStep, str],
    own_tags: Mapping[str, str],
    content: str = "",
    *,
    refused: bool = False,
) -> str:
    inputs = {parent.key.to_user_string(): versions[parent] for parent in parents_of(step, catalogue)}
    tags = {CODE_VERSION_TAG: code_version(step, catalogue), **own_tags}
    version = content or hash_json([tags, inputs])
    if step.step == "raw_table":
        version = open_source(catalogue.resolve_source(catalogue[step.table])).digest()
    tags |= {f"{INPUT_VERSION_TAG}/{key}": found for key, found in inputs.items()}
    tags |= {DATA_VERSION_TAG: version, **({REFUSED_TAG: "true"} if refused else {})}
    instance.report_runless_asset_event(dg.AssetMaterialization(step.key, tags=tags))
    return version


def record_everything(instance: dg.DagsterInstance, catalogue: Catalogue) -> None:
    """Record everything once, in an instance in which nothing was made; of large catalogues, too."""
    versions: dict[TableStep, str] = {}
    for step in every_step(catalogue):
        tables = [step.table] if step.table else None
        own_tags = _own_tags(Records(instance, catalogue, tables=tables), step)
        versions[step] = _report(instance, catalogue, step, versions, own_tags)


def record_all(
    instance: dg.DagsterInstance,
    catalogue: Catalogue,
    *tables: str,
    steps: Collection[str] = tuple(PARENTS),
    contents: Mapping[str, str] | None = None,
) -> list[TableStep]:
    """Record the steps that are out of date, parents first, of some tables or of all; return them."""
    made = []
    for each in every_step(catalogue):
        is_wanted = each.step in steps and (not tables or each.table in tables)
        if is_wanted and not Records(instance, catalogue).is_current(each):
            record(instance, catalogue, each, (contents or {}).get(each.step, ""))
            made.append(each)
    return made
