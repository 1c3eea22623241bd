"""What every step has, whatever its partitions are: time, memory, the version it replaces, and the result's shape.

What a step of the pipeline's tables knows beyond that is in :mod:`c2tc_pipeline.pipeline.step`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg

from c2tc_pipeline.common.devices import Fallback, watch_fallbacks
from c2tc_pipeline.common.memory import PeakWatch
from c2tc_pipeline.pipeline.formats import FORMATS
from c2tc_pipeline.pipeline.io_managers import DATA_VERSION, REPLACES_VERSION, StoreIOManager, without_retry
from c2tc_pipeline.pipeline.resources import CacheResource
from c2tc_pipeline.pipeline.versioning import RECIPE_TAG


class StepFrame:
    """The making of one partition of one asset, from here on.

    Parameters
    ----------
    context : AssetExecutionContext
        Dagster's.
    fallbacks : list of Fallback
        Where the steps of the core that did not fit on their device went; filled while the step is at work.
    """

    def __init__(self, context: dg.AssetExecutionContext, fallbacks: Sequence[Fallback]) -> None:
        self._fallbacks = fallbacks
        self.context = context
        self.asset = context.asset_key.to_user_string()
        self.partition = str(context.partition_key) if context.has_partition_key else None
        # Not the newest one now: a run that came and went while the inputs of this one were loaded must not be undone.
        self._replaces = self.io_manager.newest_at_begin(
            self.asset, self.partition, run_id=context.run.run_id, attempt=context.op_execution_context.retry_number
        )
        self._memory = PeakWatch()
        self._started = time.perf_counter()

    @property
    def io_manager(self) -> StoreIOManager:
        """Where artefacts are stored."""
        return self.context.resources.io_manager

    @property
    def cache(self) -> CacheResource:
        """Where costly results are kept."""
        return self.context.resources.cache

    def result(
        self,
        value: Any,
        *,
        version: str | None = None,
        recipe: str | None = None,
        tags: Mapping[str, str] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> dg.MaterializeResult[Any]:
        """Return the value with its version and what everybody wants to know of a step.

        Parameters
        ----------
        value : object
            What the asset is.
        version : str, optional
            Its data version; the content's digest by default.
        recipe : str, optional
            The hash of what determined it.
        tags : mapping, optional
            Further tags of the event.
        metadata : mapping, optional
            What this asset has to tell.
        """
        version = version or FORMATS[self.asset].digest_of(value)
        told: dict[str, Any] = {
            **(metadata or {}),
            DATA_VERSION: version,
            "seconds": round(time.perf_counter() - self._started, 3),
            "peak_memory_mb": round(self._memory.growth() / 1e6, 1),
            REPLACES_VERSION: self._replaces,
        }
        if self._fallbacks:
            told["fallbacks"] = len(self._fallbacks)
            told["fallback_steps"] = dg.MetadataValue.json([str(fallback) for fallback in self._fallbacks])
        return dg.MaterializeResult(
            value=value,
            metadata=told,
            data_version=dg.DataVersion(version),
            tags={**({RECIPE_TAG: recipe} if recipe is not None else {}), **(tags or {})},
        )


@contextmanager
def framing(context: dg.AssetExecutionContext) -> Iterator[StepFrame]:
    """Frame the making of a partition; what is wrong with data or settings fails it for good."""
    with without_retry(), watch_fallbacks() as fallbacks:
        yield StepFrame(context, fallbacks)
