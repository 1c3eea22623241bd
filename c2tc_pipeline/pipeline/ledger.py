"""Out-of-date partitions: version keys recorded by an instance, compared with those of a catalogue.

The automation condition, the schedules, ``c2tc run`` and the steps all use this definition. Version keys are defined in
:mod:`c2tc_pipeline.pipeline.versioning`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.versioning import (
    PARENTS,
    UNPARTITIONED,
    VERSION_KEY_TAG,
    Partition,
    current_version_key,
    gathers,
    in_between,
    keys_above,
    partition_keys,
    tables_of,
)
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec

# Dagster's own tag, which has no public name.
DATA_VERSION_TAG = "dagster/data_version"
SOURCE_TAG = "c2tc/source"
# Dagster refuses to fetch more than a thousand events at once.
_EVENTS_AT_ONCE = 500

Work = dict[Partition, Sequence[str]]
"""Partitions, and the assets to make for each, parents first."""


class Ledger:
    """Compare recorded version keys with current ones; the records of each asset are read once, on first use."""

    def __init__(self, instance: dg.DagsterInstance, catalogue: Mapping[str, TableSpec]) -> None:
        self._instance = instance
        self._catalogue = catalogue
        self._is_part = False
        self._versions: dict[str, dict[str, str]] = {}
        self._differing: dict[str, dict[Partition, str]] = {}

    @classmethod
    def of_partition(
        cls, instance: dg.DagsterInstance, catalogue: Mapping[str, TableSpec], partition: Partition
    ) -> Ledger:
        """Return a ledger of the tables that a partition is made from, whose cost does not grow with other tables."""
        ledger = cls(instance, tables_of(partition, catalogue))
        ledger._is_part = partition is not None
        return ledger

    def version(self, asset: str, partition: str) -> str | None:
        """Return the current data version of a partition, or None."""
        if asset not in self._versions:
            tags = self._instance.event_log_storage.get_latest_tags_by_partition(
                dg.AssetKey(asset),
                dg.DagsterEventType.ASSET_MATERIALIZATION,
                [DATA_VERSION_TAG],
                asset_partitions=self._selected(asset),
            )
            self._versions[asset] = {key: found[DATA_VERSION_TAG] for key, found in tags.items()}
        return self._versions[asset].get(partition)

    def expected(self, asset: str, partition: Partition) -> str | None:
        """Return the current version key of a partition; None if a parent is missing or it is not listed."""
        if not gathers(asset):
            return current_version_key(asset, partition, self._catalogue, self.version)
        cells = self.cells(asset, partition)
        return current_version_key(
            asset, partition, self._catalogue, lambda parent, key: self.version(parent, key) if key in cells else None
        )

    def cells(self, asset: str, partition: Partition) -> set[str]:
        """Return the cells that a report or the leaderboard is made from: those made and up to date."""
        tables = tables_of(partition, self._catalogue)
        return {
            key
            for key in partition_keys(PARENTS[asset][-1], tables)
            if key is not None
            and all(self.version(name, key) and key not in self._differs(name) for name in PARENTS[asset])
        }

    def behind(self, asset: str, partition: Partition) -> list[str]:
        """Return the assets to remake first, because the partition's parents would not agree; without unmade ones."""
        if gathers(asset):
            return []
        tables = tables_of(partition, self._catalogue)
        return [
            name
            for name in in_between(asset)
            if any(
                key in self._differs(name) and self.version(name, key) is not None
                for key in keys_above(asset, partition, name, tables)
            )
        ]

    def pending(self, asset: str) -> dict[Partition, str]:
        """Return the partitions that are out of date and not behind, with their current version keys."""
        return {key: wanted for key, wanted in self._differs(asset).items() if not self.behind(asset, key)}

    def is_current(self, asset: str, partition: Partition) -> bool:
        """Return whether a partition was made, and under its current version key."""
        return self.expected(asset, partition) is not None and partition not in self._differs(asset)

    def work(self, assets: Sequence[str]) -> Work:
        """Return for each partition the first of a job's assets that is out of date, and all that follow it."""
        work: Work = {}
        for number, asset in enumerate(assets):
            for partition in self.pending(asset):
                work.setdefault(partition, assets[number:])
        return {key: guarded(chosen, assets) for key, chosen in work.items()}

    def _differs(self, asset: str) -> dict[Partition, str]:
        if asset not in self._differing:
            wanted = {key: self.expected(asset, key) for key in partition_keys(asset, self._catalogue)}
            recorded = self._recorded(asset) if any(wanted.values()) else {}
            self._differing[asset] = {
                key: now for key, now in wanted.items() if now is not None and now != recorded.get(key)
            }
        return self._differing[asset]

    def _selected(self, asset: str) -> list[str] | None:
        """Return the partitions to query; None stands for all, where listing each would make a long query."""
        return [key for key in partition_keys(asset, self._catalogue) if key is not None] if self._is_part else None

    def _recorded(self, asset: str) -> dict[Partition, str]:
        # Unlike data versions, custom tags are not indexed and have to be read from the events.
        key = dg.AssetKey(asset)
        if asset in UNPARTITIONED:
            return _version_keys(self._instance.fetch_materializations(key, limit=1).records)
        wanted = set(partition_keys(asset, self._catalogue))
        selected = self._selected(asset)
        newest = self._instance.event_log_storage.get_latest_storage_id_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION, partitions=None if selected is None else set(selected)
        )
        ids = [event_id for partition, event_id in newest.items() if partition in wanted]
        recorded: dict[Partition, str] = {}
        for start in range(0, len(ids), _EVENTS_AT_ONCE):
            some = dg.AssetRecordsFilter(key, storage_ids=ids[start : start + _EVENTS_AT_ONCE])
            recorded |= _version_keys(self._instance.fetch_materializations(some, limit=_EVENTS_AT_ONCE).records)
        return recorded


def guarded(chosen: Sequence[str], assets: Sequence[str]) -> Sequence[str]:
    """Return the assets to make; the checks of raw_table guard validated_table, so it is never made without them."""
    return assets if chosen and chosen[0] == "validated_table" else chosen


def _version_keys(records: Sequence[dg.EventLogRecord]) -> dict[Partition, str]:
    events = [record.asset_materialization for record in records if record.asset_materialization is not None]
    return {event.partition: (event.tags or {}).get(VERSION_KEY_TAG, "") for event in events}


@dataclass(frozen=True)
class Ingested:
    """The last ingest of a table's source: number of the event (0 if none), fingerprint and digest."""

    event: int = 0
    fingerprint: str | None = None
    digest: str | None = None

    @classmethod
    def last(cls, instance: dg.DagsterInstance, table: str) -> Ingested:
        """Return what the instance recorded last for a table."""
        wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey("raw_table"), asset_partitions=[table])
        for record in instance.fetch_materializations(wanted, limit=1).records:
            if record.asset_materialization is not None:
                tags = record.asset_materialization.tags or {}
                return cls(record.storage_id, tags.get(SOURCE_TAG), tags.get(DATA_VERSION_TAG))
        return cls()

    def is_older_than(self, source: str, fingerprint: str) -> bool:
        """Return whether a source with this fingerprint holds other bytes than those ingested.

        It is read only where nothing cheaper decides: equal fingerprints mean equal bytes, other sizes other bytes.
        """
        if self.fingerprint is None or self.digest is None:
            return True
        if fingerprint == self.fingerprint:
            return False
        sizes = version_size(fingerprint), version_size(self.fingerprint)
        return (None not in sizes and sizes[0] != sizes[1]) or open_source(source).digest() != self.digest


def changed_sources(instance: dg.DagsterInstance, catalogue: Catalogue) -> tuple[list[str], list[str]]:
    """Return the tables whose source holds other bytes than those ingested, and why other sources can't be read."""
    changed, problems = [], []
    for name, spec in catalogue.items():
        source = catalogue.resolve_source(spec)
        try:
            if Ingested.last(instance, name).is_older_than(source, open_source(source).version()):
                changed.append(name)
        except (InputError, OSError) as error:
            problems.append(f"{name}: {unreadable(error)}")
    return changed, problems


def unreadable(error: InputError | OSError) -> str:
    """Return why a source can't be read, without the text of foreign errors, which may hold secrets."""
    return str(error) if isinstance(error, InputError) else f"Its source could not be read ({type(error).__name__})."
