"""The definitions that Dagster loads: the pipeline over one catalogue.

The catalogue is the file in ``C2TC_CATALOGUE``, by default ``data/catalog.yaml``; artefacts go to ``C2TC_STORAGE``, by
default ``runs/store``. ``C2TC_STEPS`` selects where steps are executed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import dagster as dg

from c2tc_pipeline.common import defaults
from c2tc_pipeline.evaluation.models import MODELS
from c2tc_pipeline.pipeline.alerts import INTERVAL_SECONDS, alert_sensor
from c2tc_pipeline.pipeline.assets import all_assets
from c2tc_pipeline.pipeline.checks import all_checks
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.jobs import JOBS, nightly_schedules, step_executor
from c2tc_pipeline.pipeline.sensors import automation_sensor, interval_seconds, source_sensor
from c2tc_pipeline.pipeline.steps import RETRIES, AssetOptions, CacheResource, DeviceResource
from c2tc_pipeline.pipeline.versioning import Partitions
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue


def build_defs(
    catalogue: Catalogue | None = None,
    *,
    storage: str | None = None,
    retries: dg.RetryPolicy = RETRIES,
    resource_overrides: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """Return the definitions of the pipeline over a catalogue and a storage root, by default those of the environment.

    ``resource_overrides`` replaces the default resources ``io_manager``, ``cache`` and ``device``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from c2tc_pipeline.tables.spec import TableSpec
    >>> adult = TableSpec(name="adult", source="adult.csv", label="income")
    >>> defs = build_defs(Catalogue(Path("catalog.yaml"), {"adult": adult}), storage="memory://example")
    >>> sorted(key.to_user_string() for key in defs.resolve_all_asset_keys())[:3]
    ['cluster_allocation', 'condensed_table', 'encoded_table']
    """
    catalogue = catalogue or load_catalogue(os.environ.get("C2TC_CATALOGUE") or defaults.CATALOGUE)
    for spec in catalogue.values():
        for model in spec.evaluation.models:
            MODELS.check(model)
    storage = storage or os.environ.get("C2TC_STORAGE") or str(defaults.STORAGE)
    partitions = Partitions.of(catalogue)
    options = AssetOptions(catalogue, partitions, retries)
    return dg.Definitions(
        assets=all_assets(options),
        asset_checks=all_checks(options),
        jobs=JOBS,
        schedules=nightly_schedules(catalogue),
        sensors=[
            source_sensor(catalogue),
            alert_sensor(interval_seconds=interval_seconds(INTERVAL_SECONDS)),
            automation_sensor(dg.AssetSelection.all()),
        ],
        resources={
            "io_manager": StoreIOManager(root=storage),
            "cache": CacheResource(),
            "device": DeviceResource(),
            **(resource_overrides or {}),
        },
        executor=step_executor(),
    )


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions; the catalogue is read when they load, not when this module is imported."""
    return build_defs()
