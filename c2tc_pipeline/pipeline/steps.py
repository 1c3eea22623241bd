"""Shared parts of all assets: resources, the arguments of their definitions, and the step that makes one.

A step knows its table and ratio, records the version it replaces, measures time and memory, and turns a mistake in data
or settings into a failure that is not retried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

from c2tc_pipeline.common.devices import DEVICES, LOCAL_ENGINE, Fallback, resolve_device, watch_fallbacks
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import PeakWatch
from c2tc_pipeline.pipeline.formats import FORMATS, SCHEMA_NAME
from c2tc_pipeline.pipeline.io_managers import (
    DATA_VERSION,
    OPTIONAL,
    REPLACES_VERSION,
    StoreIOManager,
    artefact_key,
    without_retry,
)
from c2tc_pipeline.pipeline.metadata import rounded
from c2tc_pipeline.pipeline.records import GATHERED_TAG, Records
from c2tc_pipeline.pipeline.versioning import GATHERING, OVERVIEW, TableStep, code_version, parents_of
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.schema import baseline_of
from c2tc_pipeline.tables.spec import TableSpec

Value = TypeVar("Value")
Checks = Mapping[str, str]
"""Descriptions of checks by name."""

OWNERS = ["team:data-reduction"]
GPU_POOL = "gpu"
# Evaluation takes longest, so that it has a pool of its own and nothing else waits for it.
EVALUATION_POOL = "evaluation"
RESOURCES = frozenset({"io_manager", "cache", "device"})
# For transient problems: network errors, a device filled by another process, a step that was killed. Mistakes in data
# and settings are not retried.
RETRIES = dg.RetryPolicy(max_retries=3, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)


class DeviceResource(dg.ConfigurableResource):
    """The device of heavy steps; ``auto`` takes CUDA, else MPS, else the CPU, unless a table's settings name one."""

    device: str = "auto"

    def choose(self, wanted: str) -> str:
        """Return the device for a table whose settings name ``wanted``."""
        if self.device not in DEVICES:
            raise InputError(f"Device {self.device!r} is unknown; choose one of: {', '.join(DEVICES)}.")
        return resolve_device(self.device if wanted == "auto" else wanted)


class CacheResource(dg.ConfigurableResource):
    """A cache of autoencoder weights, loss curves and scores in a local directory, by default the user's."""

    directory: str = ""

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self.directory) if self.directory else default_cache_directory()

    @property
    def cache(self) -> ContentCache:
        """The cache in it."""
        return ContentCache(self.path)


@dataclass(frozen=True)
class AssetOptions:
    """The catalogue and the retry policy, from which assets are defined."""

    catalogue: Catalogue
    retries: dg.RetryPolicy = RETRIES

    def of(self, step: TableStep, *, kinds: set[str], pool: str | None = None, checks: Checks = {}) -> dict[str, Any]:  # noqa: B006
        """Return the arguments of ``dagster.asset``; in a pool, the asset's run waits for its turn."""
        return {
            "key": step.key,
            "ins": self._inputs(step),
            "group_name": step.table or "all_tables",
            "kinds": {"python", *kinds},
            "owners": OWNERS,
            "tags": {"c2tc/step": step.step},
            "code_version": code_version(step, self.catalogue),
            "retry_policy": self.retries,
            "required_resource_keys": set(RESOURCES),
            "pool": pool,
            "check_specs": [dg.AssetCheckSpec(name, asset=step.key, description=text) for name, text in checks.items()]
            or None,
        }

    def _inputs(self, step: TableStep) -> dict[str, dg.AssetIn]:
        """Return what a step reads by the names of steps; a gathering one has an input for each ratio of each table."""
        parents = parents_of(step, self.catalogue)
        if step.step == OVERVIEW:  # made after its parent, from records
            return {each.step: dg.AssetIn(key=each.key, dagster_type=dg.Nothing) for each in parents}
        if step.step not in GATHERING:
            return {each.step: dg.AssetIn(key=each.key) for each in parents}
        return {f"{each.table}__{each.name}": dg.AssetIn(key=each.key, metadata={OPTIONAL: True}) for each in parents}

    @contextmanager
    def step(self, context: dg.AssetExecutionContext) -> Iterator[Step]:
        """Yield the step; mistakes in data or settings fail it without a retry."""
        with without_retry(), watch_fallbacks() as fallbacks:
            yield Step(context, self.catalogue, fallbacks)


class Step:
    """The making of one asset; ``fallbacks`` collects the parts that did not fit on their device."""

    def __init__(self, context: dg.AssetExecutionContext, catalogue: Catalogue, fallbacks: Sequence[Fallback]) -> None:
        self.context = context
        self.catalogue = catalogue
        self._fallbacks = fallbacks
        self.made = TableStep.of_key(context.asset_key)
        self.asset = self.made.step
        # As of before the inputs were loaded: a run that began and ended since then must not be undone.
        self._replaces = self.io_manager.newest_at_begin(
            self.asset,
            self.made.scope,
            run_id=context.run.run_id,
            attempt=context.op_execution_context.retry_number,
        )
        self._memory = PeakWatch()
        self._started, self._cpu_started = time.perf_counter(), time.process_time()
        # Other tables are not looked at, so that the cost of a step does not grow with the catalogue.
        tables = [self.made.table] if self.made.table else None
        self._records = Records(context.instance, catalogue, tables=tables)
        if behind := self._records.behind(self.made):
            raise InputError(
                f"{self.made.name} of {self.made.table!r} can't be made yet: {behind.name} is out of date and would "
                "not fit what came before it; make that first."
            )

    @property
    def io_manager(self) -> StoreIOManager:
        """The storage of artefacts."""
        return self.context.resources.io_manager

    @property
    def cache(self) -> CacheResource:
        """The cache of costly results."""
        return self.context.resources.cache

    @property
    def spec(self) -> TableSpec:
        """The description of the step's table."""
        return self.catalogue.table(self.made.table)

    @property
    def ratio(self) -> float:
        """The step's ratio."""
        if self.made.ratio is None:
            raise RuntimeError(f"Step {self.asset!r} has no ratio.")
        return self.made.ratio

    @property
    def device(self) -> str:
        """The device on which heavy work begins."""
        resource: DeviceResource = self.context.resources.device
        return resource.choose(self.spec.settings.device)

    @property
    def clustering_device(self) -> str:
        """The device for k-means; on a cluster, a device of its workers."""
        if self.spec.settings.engine == LOCAL_ENGINE:
            return self.device
        resource: DeviceResource = self.context.resources.device
        return resource.device if self.spec.settings.device == "auto" else self.spec.settings.device

    @property
    def placement(self) -> dict[str, str]:
        """The device and engine of clustering, as metadata."""
        return {"device": self.clustering_device, "engine": self.spec.settings.engine}

    def gathered(self, values: Mapping[str, Value | None], parent: str) -> dict[tuple[str, float], Value]:
        """Return those inputs of a gathering step that come from one parent and are up to date, by table and ratio."""
        used = {}
        for each in self._records.available(self.made):
            value = values.get(f"{each.table}__{each.name}")
            if each.step == parent and each.ratio is not None and value is not None:
                used[each.table, each.ratio] = value
        if not used:
            raise InputError(f"{self.asset} has nothing to show yet: no ratio is made and up to date; make one first.")
        return used

    def progress(self, stage: str, done: int, total: int) -> None:
        """Log progress; the signature is that of a stage listener."""
        if done in (0, total):
            self.context.log.debug(f"{stage}: {done} of {total}")

    def result(
        self,
        value: Any,
        *,
        version: str | None = None,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        checks: Sequence[dg.AssetCheckResult] = (),
    ) -> dg.MaterializeResult[Any]:
        """Return the value with its data version, by default a hash of its content, measurements and checks."""
        version = version or FORMATS[self.asset].digest_of(value)
        shown: dict[str, Any] = {
            **{name: rounded(each) for name, each in (metadata or {}).items()},
            "seconds": round(time.perf_counter() - self._started, 1),
            "cpu_seconds": round(time.process_time() - self._cpu_started, 1),
            "peak_memory_mb": round(self._memory.growth() / 1e6),
            DATA_VERSION: version,
            REPLACES_VERSION: self._replaces,
        }
        if self._fallbacks:
            shown["fallbacks"] = len(self._fallbacks)
            shown["fallback_steps"] = dg.MetadataValue.json([str(fallback) for fallback in self._fallbacks])
        gathered = {GATHERED_TAG: self._records.gathered(self.made)} if self.asset in GATHERING else {}
        return dg.MaterializeResult(
            value=value,
            metadata=shown,
            data_version=dg.DataVersion(version),
            tags={**gathered, **(tags or {})},
            check_results=[*checks],
        )


def baseline_schema(io_manager: StoreIOManager, spec: TableSpec) -> str | None:
    """Return the schema, as JSON, of the first table accepted under the present baseline, or None.

    The schema of the last delivery would not do: a class that it happens to lack would be refused from then on.
    """
    key, baseline = artefact_key("validated_table", spec.name), baseline_of(spec)
    for version in io_manager.store.versions(key):
        if io_manager.store.published(key, version).settings.get("baseline") == baseline:
            kind = FORMATS["validated_table"].kind
            with io_manager.store.fetch(key, version=version, kind=kind) as directory, refusing_damage(key):
                return (directory / SCHEMA_NAME).read_text(encoding="utf-8")
    return None
