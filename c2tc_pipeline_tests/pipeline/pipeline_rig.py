"""The real pipeline on small tables, in a folder that holds all of it: sources, catalogue, store, cache and instance.

What belongs here: changing tables and settings, running, ticking, and reading results. Assertions belong to the tests.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import dagster as dg
import pandas as pd
import pytest
import yaml

from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.pipeline.formats import TIMINGS_NAME
from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.records import DATA_VERSION_TAG, Records
from c2tc_pipeline.pipeline.steps import CacheResource
from c2tc_pipeline.pipeline.versioning import OVER_ALL, OVERVIEW, PARENTS, TableStep, steps_named, table_steps
from c2tc_pipeline.reports.picture import Picture
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table

Launched = dict[str, set[str | None]]
"""Scopes by step: the table, for a condensing step with the ratio, such as ``people|0.1``."""
Versions = dict[tuple[str, str | None], str]

AT_ONCE = dg.RetryPolicy(max_retries=2)
"""Two more tries, without a pause."""
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
PARTS = {
    "ingest": ("raw_table", "validated_table", "encoder", "encoded_table"),
    "condense": ("cluster_allocation", "condensed_table", "training_rows", "evaluation_scores"),
    "report": ("report",),
    "leaderboard": ("leaderboard",),
}
"""The steps that tests make together."""
REPEATABLE = [step for step in PARENTS if step != OVERVIEW]
"""The overview shows ages and costs, which differ from run to run."""


def step_of(step: str, partition: str | None) -> TableStep:
    """Return a step of a table, at a ratio, from names as in the store."""
    table, _, ratio = (partition or "").partition("|")
    return TableStep(table, step, float(ratio) if ratio else None)


def scopes_of(step: str, catalogue: Mapping[str, TableSpec]) -> list[str | None]:
    """Return the parts of the store that a step fills over all tables; None is that of a step without one."""
    if step in OVER_ALL:
        return [None]
    return [each.scope for spec in catalogue.values() for each in steps_named(step, spec)]


class Rig:
    """A pipeline in a folder; a context manager, which ends the connections of its instance."""

    def __init__(self, folder: Path, *, storage: str | None = None) -> None:
        self.folder = folder
        self.storage = storage or str(folder / "store")
        self.retries = AT_ONCE
        self.overrides: dict[str, Any] = {"cache": CacheResource(directory=str(folder / "cache"))}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.instance = self._stack.enter_context(open_instance(self.folder / "home"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def copy_to(self, folder: Path) -> Rig:
        """Return the same pipeline in another folder, not entered yet; what happens there leaves this one alone."""
        shutil.copytree(self.folder, folder)
        return Rig(folder)

    # What there is to make.

    def add(self, name: str, frame: pd.DataFrame | None = None, **fields: Any) -> None:
        """Deliver a table and describe it in the catalogue, with settings that keep its tests short."""
        self.deliver(name, mixed_table() if frame is None else frame)
        quick = {"ratios": [0.1], "evaluation": {"seeds": 1, "models": ["logistic"]}}
        self._write({**self._read(), name: {"source": f"{name}.parquet", "label": "outcome", **quick, **fields}})

    def change(self, name: str, **fields: Any) -> None:
        """Change fields of a table's description."""
        tables = self._read()
        self._write({**tables, name: {**tables[name], **fields}})

    def deliver(self, name: str, frame: pd.DataFrame) -> None:
        """Replace the source of a table."""
        frame.to_parquet(self.folder / f"{name}.parquet")

    @property
    def catalogue(self) -> Catalogue:
        return load_catalogue(self._catalogue_path)

    @property
    def definitions(self) -> dg.Definitions:
        """The real ones, over the catalogue as it is now."""
        return build_defs(self.catalogue, storage=self.storage, retries=self.retries, resource_overrides=self.overrides)

    @property
    def _catalogue_path(self) -> Path:
        return self.folder / "catalog.yaml"

    def _read(self) -> dict[str, Any]:
        return yaml.safe_load(self._catalogue_path.read_text())["tables"] if self._catalogue_path.exists() else {}

    def _write(self, tables: Mapping[str, Any]) -> None:
        self._catalogue_path.write_text(yaml.safe_dump({"tables": dict(tables)}, sort_keys=False))

    # Making it.

    def run(self, part: str, partition: str | None = None) -> dg.ExecuteInProcessResult:
        """Make the steps of a part in this process; it may fail."""
        return self.make_all(step_of(step, partition) for step in PARTS[part])

    def run_all(self) -> None:
        """Make everything of all tables, parents first."""
        tables = [step for spec in self.catalogue.values() for step in table_steps(spec)]
        succeeded(self.make_all([*tables, *(TableStep("", name) for name in OVER_ALL)]))

    def make(self, step: str, partition: str | None = None) -> dg.ExecuteInProcessResult:
        """Make one step, as a launch by hand does; it may fail."""
        return self.make_all([step_of(step, partition)])

    def make_all(self, steps: Iterable[TableStep]) -> dg.ExecuteInProcessResult:
        """Make some steps in one run; it may fail."""
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[step.key for step in steps],
            raise_on_error=False,
            run_config=QUIET,
        )

    def out_of_date(self) -> Launched:
        """Return what is out of date, or follows what is."""
        records, found = Records(self.instance, self.catalogue), Launched()
        for table in self.catalogue:
            for step in records.out_of_date(table):
                found.setdefault(step.step, set()).add(step.scope)
        return found

    # What came out.

    @cached_property
    def store(self) -> ArtefactStore:
        return ArtefactStore(self.storage)

    def event(self, asset: str, partition: str | None = None) -> dg.AssetMaterialization:
        """Return the newest materialisation."""
        found = (
            self.instance.fetch_materializations(step_of(asset, partition).key, limit=1)
            .records[0]
            .asset_materialization
        )
        assert found is not None
        return found

    def told(self, asset: str, partition: str | None = None) -> dict[str, Any]:
        """Return the metadata of the newest materialisation, as plain values."""
        return {name: value.value for name, value in self.event(asset, partition).metadata.items()}

    def versions(self, *assets: str) -> Versions:
        """Return the data versions of some assets in all scopes, or of all that were made."""
        return {
            (asset, key): (self.event(asset, key).tags or {})[DATA_VERSION_TAG]
            for asset in assets or REPEATABLE
            for key in scopes_of(asset, self.catalogue)
            if self.store.latest(artefact_key(asset, key))
        }

    def stored_files(self, *assets: str) -> dict[str, bytes]:
        """Return the verified files of every newest version, all but timings, by asset, scope and name."""
        files = {}
        for asset in assets or REPEATABLE:
            for key in scopes_of(asset, self.catalogue):
                name = artefact_key(asset, key)
                if not self.store.latest(name):
                    continue
                with self.store.fetch(name) as directory:
                    for path in sorted(directory.rglob("*")):
                        if path.is_file() and path.name != TIMINGS_NAME:
                            files[f"{name}/{path.relative_to(directory).as_posix()}"] = path.read_bytes()
        return files


def without_pictures(patch: pytest.MonkeyPatch) -> None:
    """Leave out pictures, in metadata and on pages: they take most of the time of a run and decide nothing."""
    patch.setattr(Picture, "data_uri", lambda picture, max_svg_bytes=0: "data:,")


def succeeded(result: dg.ExecuteInProcessResult) -> None:
    """Make sure that a run succeeded, or say why it did not."""
    failures = [event.step_failure_data.error_display_string for event in result.all_events if event.is_step_failure]
    assert result.success, "\n".join(failures)


def failure_of(result: dg.ExecuteInProcessResult, step: str) -> str:
    """Return the sentence with which a step failed on purpose."""
    (failed,) = (event.step_failure_data for event in result.all_events if event.is_step_failure)
    assert failed.user_failure_data is not None
    failed_steps = [TableStep.of_op(str(event.step_key)).step for event in result.all_events if event.is_step_failure]
    assert failed_steps == [step]
    return failed.user_failure_data.description or ""


def tries_of(result: dg.ExecuteInProcessResult, step: str) -> int:
    """Return how many times a step was begun."""
    begun = {"STEP_START", "STEP_RESTARTED"}
    steps = [event.step_key for event in result.all_events if event.event_type_value in begun]
    return sum(TableStep.of_op(str(each)).step == step for each in steps)


def check_of(result: dg.ExecuteInProcessResult, name: str) -> dg.AssetCheckEvaluation:
    """Return the verdict of a check."""
    (found,) = (verdict for verdict in result.get_asset_check_evaluations() if verdict.check_name == name)
    return found
