"""The definitions that Dagster loads: the pipeline over one catalogue.

The catalogue is the file in ``C2TC_CATALOGUE``, by default ``data/catalog.yaml``; artefacts go to ``C2TC_STORAGE``, by
default ``runs/store``. ``C2TC_STEPS`` selects where steps are executed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg

from c2tc_pipeline.common import defaults
from c2tc_pipeline.pipeline.acceptance import Accepted, accept
from c2tc_pipeline.pipeline.alerts import INTERVAL_SECONDS, alert_sensor
from c2tc_pipeline.pipeline.assets import all_assets
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.jobs import all_jobs, nightly_schedules, step_executor
from c2tc_pipeline.pipeline.sensors import automation_sensor, catalogue_sensor, interval_seconds, source_sensor
from c2tc_pipeline.pipeline.steps import RETRIES, AssetOptions, CacheResource, DeviceResource
from c2tc_pipeline.tables.catalogue import Catalogue

_LOADED: dict[Any, dg.Definitions] = {}


def build_defs(
    catalogue: Catalogue | Accepted | None = None,
    *,
    storage: str | None = None,
    retries: dg.RetryPolicy = RETRIES,
    resource_overrides: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """Return the definitions of the pipeline over a catalogue and a storage root, by default those of the environment.

    ``resource_overrides`` replaces the default resources ``io_manager``, ``cache`` and ``device``.

    Examples
    --------
    >>> from c2tc_pipeline.tables.spec import TableSpec
    >>> adult = TableSpec(name="adult", source="adult.csv", label="income", ratios=[0.01])
    >>> defs = build_defs(Catalogue(Path("catalog.yaml"), {"adult": adult}), storage="memory://example")
    >>> sorted(key.to_user_string() for key in defs.resolve_all_asset_keys())[:3]
    ['adult/cluster_allocation_0_01', 'adult/condensed_table_0_01', 'adult/encoded_table']
    """
    storage = storage or _storage()
    if catalogue is None:
        catalogue = accept(_catalogue(), storage)
    accepted = catalogue if isinstance(catalogue, Accepted) else Accepted(catalogue, None)
    catalogue = accepted.catalogue
    jobs = all_jobs(catalogue)
    return dg.Definitions(
        assets=all_assets(AssetOptions(catalogue, retries)),
        jobs=jobs,
        schedules=nightly_schedules(catalogue),
        sensors=[
            source_sensor(catalogue, jobs),
            automation_sensor(catalogue, jobs),
            catalogue_sensor(accepted),
            alert_sensor(catalogue, interval_seconds=interval_seconds(INTERVAL_SECONDS)),
        ],
        resources={
            "io_manager": StoreIOManager(root=storage),
            "cache": CacheResource(),
            "device": DeviceResource(),
            **(resource_overrides or {}),
        },
        executor=step_executor(),
    )


def _catalogue() -> Path:
    return Path(os.environ.get("C2TC_CATALOGUE") or defaults.CATALOGUE)


def _storage() -> str:
    return os.environ.get("C2TC_STORAGE") or str(defaults.STORAGE)


def loaded_defs() -> dg.Definitions:
    """Return the definitions of the environment, built once a process for each catalogue in force."""
    storage = _storage()
    accepted = accept(_catalogue(), storage)
    key = (accepted.catalogue.path, accepted.digest, storage)
    if key not in _LOADED:
        _LOADED.clear()
        # Nothing of the many objects made here is garbage, and looking for some costs a third of the time.
        gc.disable()
        try:
            _LOADED[key] = build_defs(accepted, storage=storage)
            _LOADED[key].get_repository_def()
        finally:
            gc.enable()
        # Nor do later collections, as while Dagster resolves jobs, have to look at them.
        gc.freeze()
    return _LOADED[key]


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions; the catalogue is read when they load, not when this module is imported."""
    return loaded_defs()
