"""One step at work: the same frame around every asset.

A step knows its table and ratio, notes which version it is about to replace and by which recipe, times itself, watches
memory and device, and turns a mistake in data or settings into a failure that is not tried again. What is computed is
the core's business, and what is said about it that of :mod:`c2tc_pipeline.pipeline.metadata`; what has nothing to
do with tables is in :mod:`c2tc_pipeline.pipeline.step_frame`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import dagster as dg

from c2tc_pipeline.common.devices import LOCAL_ENGINE, Fallback, watch_fallbacks
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.io_managers import without_retry
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.partitions import Partitions
from c2tc_pipeline.pipeline.resources import DeviceResource
from c2tc_pipeline.pipeline.step_frame import StepFrame
from c2tc_pipeline.pipeline.versioning import current_recipe, gathers
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec

Value = TypeVar("Value")

RESOURCES = frozenset({"io_manager", "cache", "device"})


@contextmanager
def stepping(context: dg.AssetExecutionContext, catalogue: Catalogue) -> Iterator[Step]:
    """Frame the making of a partition; what is wrong with data or settings fails it for good."""
    with without_retry(), watch_fallbacks() as fallbacks:
        yield Step(context, catalogue, fallbacks)


class Step(StepFrame):
    """The making of one partition of one of the pipeline's assets, from here on.

    Parameters
    ----------
    context : AssetExecutionContext
        Dagster's.
    catalogue : Catalogue
        The tables.
    fallbacks : list of Fallback
        Where the steps of the core that did not fit on their device went; filled while the step is at work.
    """

    def __init__(self, context: dg.AssetExecutionContext, catalogue: Catalogue, fallbacks: Sequence[Fallback]) -> None:
        super().__init__(context, fallbacks)
        self.catalogue = catalogue
        self.table, self._ratio = Partitions.parse(self.partition) if self.partition else ("", None)
        if self._ratio is not None and self._ratio not in self.spec.ratios:
            listed = ", ".join(f"{ratio:g}" for ratio in self.spec.ratios)
            raise InputError(
                f"Table {self.table!r} is not condensed to the ratio {self._ratio:g}; choose one of its ratios "
                f"({listed}), or add it to the catalogue {self.catalogue.path}."
            )
        ledger = Ledger.of_partition(self.context.instance, self.catalogue, self.partition)
        if behind := ledger.behind(self.asset, self.partition):
            raise InputError(
                f"{self.asset} of {self.partition} can't be made yet: {behind[0]} of {self.table!r} is out of date and "
                "would not fit what came before it; make that first."
            )
        self.cells = ledger.cells(self.asset, self.partition) if gathers(self.asset) else set()

        def version(asset: str, key: str) -> str | None:
            # What was read counts, not what is newest by now: another run may have been at work since the inputs were
            # loaded. Of the cells of the grid only those count that are used.
            if gathers(self.asset):
                return self.io_manager.version_read(asset, key) if key in self.cells else None
            return self.io_manager.version_read(asset, key) or ledger.version(asset, key)

        self._recipe = current_recipe(self.asset, self.partition, self.catalogue, version)

    @property
    def spec(self) -> TableSpec:
        """The description of the step's table."""
        return self.catalogue.table(self.table)

    @property
    def ratio(self) -> float:
        """The ratio of the step's partition."""
        if self._ratio is None:
            raise RuntimeError(f"Asset {self.asset!r} is not divided by ratio.")
        return self._ratio

    @property
    def device(self) -> str:
        """The device on which heavy work begins."""
        resource: DeviceResource = self.context.resources.device
        return resource.choose(self.spec.settings.device)

    @property
    def clustering_device(self) -> str:
        """The device for k-means; where a cluster computes, that is a device of its workers."""
        if self.spec.settings.engine == LOCAL_ENGINE:
            return self.device
        resource: DeviceResource = self.context.resources.device
        return resource.device if self.spec.settings.device == "auto" else self.spec.settings.device

    def used(self, values: Mapping[str, Value]) -> dict[tuple[str, float], Value]:
        """Return, of the cells that an asset gathers, those that are up to date, by table and ratio.

        One that is out of date, or that the catalogue does not list any more, would stand beside others that it does
        not belong with.
        """
        used = {}
        for key, value in values.items():
            table, ratio = Partitions.parse(key)
            if key in self.cells and ratio is not None:
                used[table, ratio] = value
        if not used:
            raise InputError(f"{self.asset} has nothing to show yet: no cell is made and up to date; run condense_job.")
        return used

    def progress(self, stage: str, done: int, total: int) -> None:
        """Tell about progress; the signature is that of a stage listener."""
        if done in (0, total):
            self.context.log.debug(f"{stage}: {done} of {total}")

    def result(
        self,
        value: Any,
        *,
        version: str | None = None,
        recipe: str | None = None,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dg.MaterializeResult[Any]:
        """Return the value with its version; the recipe is the step's own unless another is given."""
        return super().result(value, version=version, recipe=recipe or self._recipe, tags=tags, metadata=metadata)
