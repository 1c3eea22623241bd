"""Dagster's IO manager on the artefact store: each value is a new version, verified when it is read.

Dagster's own ``UPathIOManager`` is not used on purpose: it writes straight to the final path, so a reader may see half
a file, a killed step leaves a torn one, and of two runs the later silently wins.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.formats import FORMATS, PAGE_NAME, Format
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.storage.backend import split_root
from c2tc_pipeline.storage.manifest import files_below, refusing_damage, relative_name
from c2tc_pipeline.storage.store import ArtefactStore, LostRace

# In the metadata of a failure that another try would repeat.
MISTAKE = "c2tc/mistake"
REPLACES_VERSION = "replaces_version"
DATA_VERSION = "data_version"
OPTIONAL = "optional"
# Metadata of an asset that is stored with the version.
KEPT = (DATA_VERSION, "baseline")


def artefact_key(asset: str, scope: str | None = None) -> str:
    """Return the key under which an asset's value is stored, such as ``condensed_table/departures|0.001``."""
    return f"{asset}/{'all' if scope is None else scope}"


def stored_as(key: dg.AssetKey) -> tuple[str, str | None]:
    """Return the step and the scope of an asset; a key of one part is a step without a table."""
    step = TableStep.of_key(key)
    return step.step, step.scope


class StoreIOManager(dg.ConfigurableIOManager):
    """Store the values of assets as versions below ``root``, a storage root; credentials come from the environment.

    An input that was never made is None if its metadata say ``optional``. An asset that returns the metadata
    ``replaces_version``, the newest version when its step began, is not published if another run was faster.
    """

    root: str
    _versions_read: dict[str, str | None] = PrivateAttr(default_factory=dict)
    _begun: dict[str, tuple[tuple[str, int], int]] = PrivateAttr(default_factory=dict)

    def __init__(self, **fields: Any) -> None:
        # Dagster shows a resource's configuration, so a root that carries a password is refused before it gets there.
        split_root(fields["root"])
        super().__init__(**fields)

    @cached_property
    def store(self) -> ArtefactStore:
        """The store at the root."""
        return ArtefactStore(self.root)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Refuse memory:// in a process of its own, whose values would be lost, before the step's work."""
        # Dagster gives each run it launches, and with the multiprocess executor each step, a process of its own.
        if self.root.startswith("memory://") and multiprocessing.parent_process() is not None:
            raise InputError(
                "The storage root memory:// ends with the process of a single step; run in one process or set "
                "C2TC_STORAGE to a path or an s3:// address."
            )

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        asset, scope = stored_as(context.asset_key)
        key = artefact_key(asset, scope)
        sizes: dict[str, int] = {}
        with without_retry():
            if obj is None:
                raise InputError(f"Asset {asset!r} has no value to store; return MaterializeResult(value=...).")
            chosen = _format_of(asset)

            def fill(directory: Path) -> None:
                chosen.write(obj, directory)
                sizes.update({relative_name(path, directory): path.stat().st_size for path in files_below(directory)})

            published = self.store.publish(
                key,
                fill,
                kind=chosen.kind,
                settings={
                    "run_id": context.run_id,
                    "partition": scope,
                    **{name: found for name in KEPT if (found := _output_metadata(context, name)) is not None},
                },
                after=_output_metadata(context, REPLACES_VERSION),
                run=context.run_id,
            )
        address = self.store.address(published)
        context.add_output_metadata(
            {
                "version": published.version,
                "path": dg.MetadataValue.path(address),
                **({"page": dg.MetadataValue.path(f"{address}/{PAGE_NAME}")} if PAGE_NAME in sizes else {}),
                "bytes": sum(sizes.values()),
            }
        )

    def load_input(self, context: dg.InputContext) -> Any:
        asset, scope = stored_as(context.asset_key)
        with without_retry():
            # Only a step replaces a version.
            if context.has_input_name:
                self._begin(context.step_context)
            is_optional = (context.definition_metadata or {}).get(OPTIONAL, False)
            if is_optional and self.store.latest(artefact_key(asset, scope)) is None:
                return None
            return self.read(asset, scope)

    def read(self, asset: str, scope: str | None = None) -> Any:
        """Return the newest stored value, verified, for a reader outside of an asset."""
        chosen, key = _format_of(asset), artefact_key(asset, scope)
        newest = self.store.latest(key)
        wanted = newest.version if newest else None
        with self.store.fetch(key, version=wanted, kind=chosen.kind) as directory, refusing_damage(key):
            value = chosen.read(directory)
        if chosen.located is not None and newest is not None:
            value = chosen.located(value, self.store.address(newest))
        self._versions_read[key] = newest.settings.get(DATA_VERSION) if newest else None
        return value

    def newest_at_begin(self, asset: str, scope: str | None, *, run_id: str, attempt: int) -> int:
        """Return the newest version as of when the step began, before its first input was loaded, or else now."""
        key = artefact_key(asset, scope)
        which, newest = self._begun.get(key, (None, 0))
        return newest if which == (run_id, attempt) else self.store.newest_version(key)

    def _begin(self, step: Any) -> None:
        """Record the version that a step replaces, unless an earlier input of the same attempt has done so."""
        attempt = (step.run_id, step.previous_attempt_count)
        for asset in step.get_output_asset_keys():
            key = artefact_key(*stored_as(asset))
            if self._begun.get(key, (None, 0))[0] != attempt:
                self._begun[key] = (attempt, self.store.newest_version(key))

    def version_read(self, asset: str, scope: str | None = None) -> str | None:
        """Return the data version of the value that was last read here, or None."""
        return self._versions_read.get(artefact_key(asset, scope))


def _format_of(asset: str) -> Format[Any]:
    if asset not in FORMATS:
        raise InputError(f"Asset {asset!r} has no format to be stored in; add one to pipeline/formats.py.")
    return FORMATS[asset]


def _output_metadata(context: dg.OutputContext, name: str) -> Any:
    """Return a metadata value of the asset, or None."""
    found = context.output_metadata.get(name)
    return None if found is None else found.value


@contextmanager
def without_retry() -> Iterator[None]:
    """Fail the step at once where another try would end the same way; a broken connection stays as it is."""
    try:
        yield
    except LostRace as lost:
        raise dg.Failure(
            f"Another run published version {lost.version} of {lost.key!r} while this one was at work; its result "
            "stands and this one's is dropped.",
            allow_retries=False,
        ) from None
    except InputError as error:
        raise dg.Failure(str(error), metadata={MISTAKE: True}, allow_retries=False) from None
