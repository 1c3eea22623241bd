"""What all assets have in common, said once: owners, versions, retries, the pool, the condition."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import dagster as dg

from c2tc_pipeline.pipeline.automation import automation_condition
from c2tc_pipeline.pipeline.partitions import Partitions
from c2tc_pipeline.pipeline.step import RESOURCES, Step, stepping
from c2tc_pipeline.pipeline.versioning import ALGORITHM_VERSIONS, PARENTS
from c2tc_pipeline.tables.catalogue import Catalogue

OWNERS = ["team:data-reduction"]
GPU_POOL = "gpu"
# For what passes by itself: a network that hiccups, a device that another process fills, a step that was killed. Data
# and settings that are wrong are not tried again.
RETRIES = dg.RetryPolicy(max_retries=3, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)


@dataclass(frozen=True)
class AssetOptions:
    """What an asset's definition needs to know about the pipeline that it is part of.

    Parameters
    ----------
    catalogue : Catalogue
        The tables.
    partitions : Partitions
        Their partitions.
    retries : RetryPolicy
        How a step that failed is tried again.
    """

    catalogue: Catalogue
    partitions: Partitions
    retries: dg.RetryPolicy = RETRIES

    def of(
        self,
        name: str,
        *,
        group: str,
        kinds: set[str],
        gpu: bool = False,
        resources: frozenset[str] = frozenset(),
    ) -> dict[str, Any]:
        """Return the arguments of ``dagster.asset`` for an asset.

        Parameters
        ----------
        name : str
            The asset.
        group : str
            Where it is drawn.
        kinds : set of str
            The technologies in it, for the dashboard.
        gpu : bool
            Whether it waits for its turn on the device.
        resources : set of str
            What it works with, beyond what all assets do.
        """
        return {
            "name": name,
            "group_name": group,
            "kinds": {"python", *kinds},
            "owners": OWNERS,
            "tags": {"c2tc/stage": group},
            "code_version": ALGORITHM_VERSIONS[name],
            "retry_policy": self.retries,
            "required_resource_keys": {*RESOURCES, *resources},
            "pool": GPU_POOL if gpu else None,
            # What is made on request has no parents among the tables' assets.
            "automation_condition": automation_condition(name, self.catalogue) if PARENTS.get(name) else None,
        }

    def step(self, context: dg.AssetExecutionContext) -> AbstractContextManager[Step]:
        """Return the frame around the making of a partition."""
        return stepping(context, self.catalogue)
