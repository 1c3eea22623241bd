"""Shared parts of all assets: resources, the arguments of their definitions, and the step that makes one partition.

A step knows its table and ratio, records the version it replaces and its version key, measures time and memory, and
turns a mistake in data or settings into a failure that is not retried.
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
from c2tc_pipeline.common.memory import PeakWatch
from c2tc_pipeline.pipeline.automation import automation_condition
from c2tc_pipeline.pipeline.formats import FORMATS, SCHEMA_NAME
from c2tc_pipeline.pipeline.io_managers import (
    DATA_VERSION,
    REPLACES_VERSION,
    StoreIOManager,
    artefact_key,
    without_retry,
)
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import (
    ALGORITHM_VERSIONS,
    PARENTS,
    VERSION_KEY_TAG,
    Partitions,
    current_version_key,
    gathers,
)
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.tables.catalogue import Catalogue, chosen_cells
from c2tc_pipeline.tables.schema import baseline_of
from c2tc_pipeline.tables.spec import TableSpec

Value = TypeVar("Value")

OWNERS = ["team:data-reduction"]
GPU_POOL = "gpu"
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
    """The catalogue, its partitions and the retry policy, from which assets are defined."""

    catalogue: Catalogue
    partitions: Partitions
    retries: dg.RetryPolicy = RETRIES

    def of(self, name: str, *, group: str, kinds: set[str], gpu: bool = False) -> dict[str, Any]:
        """Return the arguments of ``dagster.asset``; with ``gpu`` the asset waits for its turn on the device."""
        return {
            "name": name,
            "group_name": group,
            "kinds": {"python", *kinds},
            "owners": OWNERS,
            "tags": {"c2tc/stage": group},
            "code_version": ALGORITHM_VERSIONS[name],
            "retry_policy": self.retries,
            "required_resource_keys": set(RESOURCES),
            "pool": GPU_POOL if gpu else None,
            "automation_condition": automation_condition(name, self.catalogue) if PARENTS[name] else None,
        }

    @contextmanager
    def step(self, context: dg.AssetExecutionContext) -> Iterator[Step]:
        """Yield the step; mistakes in data or settings fail it without a retry."""
        with without_retry(), watch_fallbacks() as fallbacks:
            yield Step(context, self.catalogue, fallbacks)


class Step:
    """The making of one partition of one asset; ``fallbacks`` collects the parts that did not fit on their device."""

    def __init__(self, context: dg.AssetExecutionContext, catalogue: Catalogue, fallbacks: Sequence[Fallback]) -> None:
        self.context = context
        self.catalogue = catalogue
        self._fallbacks = fallbacks
        self.asset = context.asset_key.to_user_string()
        self.partition = str(context.partition_key) if context.has_partition_key else None
        # As of before the inputs were loaded: a run that began and ended since then must not be undone.
        self._replaces = self.io_manager.newest_at_begin(
            self.asset, self.partition, run_id=context.run.run_id, attempt=context.op_execution_context.retry_number
        )
        self._memory = PeakWatch()
        self._started = time.perf_counter()
        self.table, self._ratio = Partitions.parse(self.partition) if self.partition else ("", None)
        if self._ratio is not None:
            chosen_cells(catalogue, self.table, self._ratio)
        ledger = Ledger.of_partition(context.instance, catalogue, self.partition)
        if behind := ledger.behind(self.asset, self.partition):
            raise InputError(
                f"{self.asset} of {self.partition} can't be made yet: {behind[0]} of {self.table!r} is out of date and "
                "would not fit what came before it; make that first."
            )
        self.cells = ledger.cells(self.asset, self.partition) if gathers(self.asset) else set()

        def version(asset: str, key: str) -> str | None:
            # The version that was read, not the newest: another run may have published since the inputs were loaded.
            if gathers(self.asset):
                return self.io_manager.version_read(asset, key) if key in self.cells else None
            return self.io_manager.version_read(asset, key) or ledger.version(asset, key)

        self._version_key = current_version_key(self.asset, self.partition, catalogue, version)

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
        return self.catalogue.table(self.table)

    @property
    def ratio(self) -> float:
        """The ratio of the step's partition."""
        if self._ratio is None:
            raise RuntimeError(f"Asset {self.asset!r} is not partitioned by ratio.")
        return self._ratio

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

    def used(self, values: Mapping[str, Value]) -> dict[tuple[str, float], Value]:
        """Return the cells that are up to date and listed in the catalogue, by table and ratio."""
        used = {}
        for key, value in values.items():
            table, ratio = Partitions.parse(key)
            if key in self.cells and ratio is not None:
                used[table, ratio] = value
        if not used:
            raise InputError(f"{self.asset} has nothing to show yet: no cell is made and up to date; run condense_job.")
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
    ) -> dg.MaterializeResult[Any]:
        """Return the value with its data version, by default a hash of its content, version key and measurements."""
        version = version or FORMATS[self.asset].digest_of(value)
        shown: dict[str, Any] = {
            **(metadata or {}),
            DATA_VERSION: version,
            "seconds": round(time.perf_counter() - self._started, 3),
            "peak_memory_mb": round(self._memory.growth() / 1e6, 1),
            REPLACES_VERSION: self._replaces,
        }
        if self._fallbacks:
            shown["fallbacks"] = len(self._fallbacks)
            shown["fallback_steps"] = dg.MetadataValue.json([str(fallback) for fallback in self._fallbacks])
        return dg.MaterializeResult(
            value=value,
            metadata=shown,
            data_version=dg.DataVersion(version),
            tags={**({VERSION_KEY_TAG: self._version_key} if self._version_key else {}), **(tags or {})},
        )


def baseline_schema(io_manager: StoreIOManager, spec: TableSpec) -> str | None:
    """Return the schema, as JSON, of the first table accepted under the present baseline, or None.

    With that of the last one, a delivery that happens to lack a class would forbid it from then on.
    """
    key, baseline = artefact_key("validated_table", spec.name), baseline_of(spec)
    for version in io_manager.store.versions(key):
        if io_manager.store.published(key, version).settings.get("baseline") == baseline:
            kind = FORMATS["validated_table"].kind
            with io_manager.store.fetch(key, version=version, kind=kind) as directory, refusing_damage(key):
                return (directory / SCHEMA_NAME).read_text(encoding="utf-8")
    return None
