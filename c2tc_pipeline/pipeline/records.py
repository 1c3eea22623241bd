"""Out-of-date steps of tables, by what Dagster recorded with each materialisation.

Dagster records the code version and the data versions of the inputs, and shows an asset as stale when one of them
differs from the present one. That is the definition here, too; it is written down once more because the pinned release
has no public call for it, and because Dagster's own means to launch what is stale do not fit:

- ``RunRequest(stale_assets_only=True)`` looks at direct parents only, so a change takes one run for each layer;
- a condition on every asset (``AutomationCondition``) costs 7 ms an asset and tick, 12 s for a hundred tables, puts all
  tables into one run without the name of a job, and does not launch a failed step again before something changes.

The sensors, the schedules, ``c2tc run`` and the steps all use this definition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.versioning import (
    GATHERING,
    OVER_ALL,
    TableStep,
    code_version,
    in_between,
    parents_of,
    steps_named,
    table_steps,
)
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue

# Dagster's own tags, which have no public names.
DATA_VERSION_TAG = "dagster/data_version"
CODE_VERSION_TAG = "dagster/code_version"
INPUT_VERSION_TAG = "dagster/input_data_version"
# Ours: the source's fingerprint, whether its delivery was refused, and the hash of what a gathering step was made from.
SOURCE_TAG = "c2tc/source"
REFUSED_TAG = "c2tc/refused"
GATHERED_TAG = "c2tc/gathered"
# SQLite takes a limited number of values in one statement.
_KEYS_AT_ONCE = 5000

Tags = Mapping[str, str]


class Records:
    """The newest materialisations of some tables, by default all, and of the steps over all, read when first needed.

    With a store, a step whose value is not in it counts as not made.
    """

    def __init__(
        self,
        instance: dg.DagsterInstance,
        catalogue: Catalogue,
        *,
        tables: Iterable[str] | None = None,
        store: ArtefactStore | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._tables = [*catalogue] if tables is None else [*tables]
        self._instance = instance
        self._store = store
        self._current: dict[TableStep, bool] = {}

    @cached_property
    def _last_runs(self) -> dict[dg.AssetKey, str | None]:
        """The last run that was to make each step."""
        return {entry.asset_key: entry.last_run_id for entry in self._entries}

    @cached_property
    def _made(self) -> dict[dg.AssetKey, tuple[int, Tags]]:
        """The number of the newest event of each step, and its tags."""
        found: dict[dg.AssetKey, tuple[int, Tags]] = {}
        for entry in self._entries:
            newest = entry.last_materialization_record
            if newest is not None and newest.asset_materialization is not None:
                found[entry.asset_key] = newest.storage_id, newest.asset_materialization.tags or {}
        return found

    @cached_property
    def _entries(self) -> list[Any]:
        steps = [step for table in self._tables for step in table_steps(self.catalogue[table])]
        keys = [step.key for step in (*steps, *(TableStep("", name) for name in OVER_ALL))]
        pages = (keys[start : start + _KEYS_AT_ONCE] for start in range(0, len(keys), _KEYS_AT_ONCE))
        return [each.asset_entry for page in pages for each in self._instance.get_asset_records(page)]

    def tags(self, step: TableStep) -> Tags | None:
        """Return the tags of a step's newest materialisation, or None if it was never made."""
        return self._made[step.key][1] if step.key in self._made else None

    def version(self, step: TableStep) -> str | None:
        """Return the data version of a step, or None."""
        return (self.tags(step) or {}).get(DATA_VERSION_TAG)

    def is_current(self, step: TableStep) -> bool:
        """Return whether a step was made by the present code, from the present versions of its parents."""
        if step not in self._current:
            self._current[step] = self._compare(step)
        return self._current[step]

    def _compare(self, step: TableStep) -> bool:
        tags = self.tags(step)
        if tags is None or tags.get(CODE_VERSION_TAG) != code_version(step, self.catalogue):
            return False
        if self._store is not None and self._store.latest(artefact_key(step.step, step.scope)) is None:
            return False
        if step.step in GATHERING:
            return tags.get(GATHERED_TAG) == self.gathered(step)
        return all(
            tags.get(f"{INPUT_VERSION_TAG}/{parent.key.to_user_string()}") == self.version(parent)
            for parent in parents_of(step, self.catalogue)
        )

    def available(self, step: TableStep) -> list[TableStep]:
        """Return the parents of a gathering step that exist and are up to date, at ratios where all of them are."""
        parents = [*parents_of(step, self.catalogue)]
        lacking = {(each.table, each.ratio) for each in parents if not self._is_settled(each)}
        return [each for each in parents if (each.table, each.ratio) not in lacking]

    def _is_settled(self, step: TableStep) -> bool:
        """Return whether a step is up to date, and what it was made from at its own ratio, too."""
        own = [each for each in parents_of(step, self.catalogue) if each.ratio is not None]
        return self.is_current(step) and all(self._is_settled(each) for each in own)

    def gathered(self, step: TableStep) -> str:
        """Return the hash of what a gathering step would be made from now."""
        return hash_json({each.key.to_user_string(): self.version(each) for each in self.available(step)})[:20]

    def behind(self, step: TableStep) -> TableStep | None:
        """Return a step to remake first, because otherwise the parents of this one would not agree; or None.

        Where a step reads a table both directly and through another parent, the two must be of one delivery:
        condensing the rows of today by the encoder of yesterday would mix them up.
        """
        if step.step in GATHERING or not step.table:
            return None
        spec = self.catalogue[step.table]
        between = (each for name in in_between(step.step) for each in steps_named(name, spec))
        of_own_ratio = (each for each in between if each.ratio in (None, step.ratio))
        return next((each for each in of_own_ratio if self.tags(each) is not None and not self.is_current(each)), None)

    def out_of_date(self, table: str, *, delivered: bool = False) -> list[TableStep]:
        """Return the steps of a table to make, parents first: those that are out of date, and all that follow them.

        ``delivered`` says that the source has other content than what was ingested. A source that was never ingested
        counts only then, and a delivery that was refused by its check is not tried again.
        """
        wanted: set[TableStep] = set()
        for step in table_steps(self.catalogue[table]):
            if self._is_due(step, wanted, delivered):
                wanted.add(step)
        return [step for step in table_steps(self.catalogue[table]) if step in wanted]

    def _is_due(self, step: TableStep, wanted: set[TableStep], delivered: bool) -> bool:
        if step.step == "raw_table":
            return delivered or (self.tags(step) is not None and not self.is_current(step))
        parents = [*parents_of(step, self.catalogue)]
        if not wanted.isdisjoint(parents):
            return True
        if step.step == "validated_table" and REFUSED_TAG in (self.tags(parents[0]) or {}):
            return False
        exist = self.available(step) if step.step in GATHERING else all(self.tags(each) is not None for each in parents)
        return bool(exist) and not self.is_current(step)

    def reason(self, steps: Iterable[TableStep]) -> str:
        """Return a hash of the steps, their code versions and the data versions of their inputs."""
        inputs = {
            step.key.to_user_string(): [
                code_version(step, self.catalogue),
                *(self.version(each) for each in parents_of(step, self.catalogue)),
            ]
            for step in steps
        }
        return hash_json(inputs)

    def newest_event(self, steps: Iterable[TableStep]) -> int:
        """Return the number of the newest event of some steps, 0 if none was made."""
        return max((self._made[step.key][0] for step in steps if step.key in self._made), default=0)

    def last_runs(self, steps: Iterable[TableStep]) -> set[str]:
        """Return the last run that was to make each of some steps, whether it did or not."""
        return {run for step in steps if (run := self._last_runs.get(step.key)) is not None}

    def source_changed(self, table: str, fingerprint: str) -> bool:
        """Return whether a source with this fingerprint holds other bytes than those ingested.

        It is read only where nothing cheaper decides: equal fingerprints mean equal bytes, other sizes other bytes.
        """
        tags = self.tags(TableStep(table, "raw_table")) or {}
        recorded, digest = tags.get(SOURCE_TAG), tags.get(DATA_VERSION_TAG)
        if recorded is None or digest is None:
            return True
        if fingerprint == recorded:
            return False
        sizes = version_size(fingerprint), version_size(recorded)
        source = open_source(self.catalogue.resolve_source(self.catalogue[table]))
        return (None not in sizes and sizes[0] != sizes[1]) or source.digest() != digest


def unreadable(error: InputError | OSError) -> str:
    """Return why a source can't be read, without the text of foreign errors, which may hold secrets."""
    return str(error) if isinstance(error, InputError) else f"Its source could not be read ({type(error).__name__})."
