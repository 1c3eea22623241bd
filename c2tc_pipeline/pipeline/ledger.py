"""What an instance has recorded, against what a catalogue asks for: which partitions are out of date.

The automation condition, the schedules and the steps all ask here. What a recipe is stands in
:mod:`c2tc_pipeline.pipeline.versioning`; when something is launched is decided in
:mod:`c2tc_pipeline.pipeline.automation`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from c2tc_pipeline.pipeline.versioning import (
    PARENTS,
    RECIPE_TAG,
    UNPARTITIONED,
    Partition,
    current_recipe,
    gathers,
    in_between,
    keys_above,
    partition_keys,
    tables_of,
)
from c2tc_pipeline.tables.spec import TableSpec

# Dagster's own tag; it has no public name for it.
DATA_VERSION_TAG = "dagster/data_version"
# Dagster refuses to fetch more than a thousand events at once.
_EVENTS_AT_ONCE = 500


class Ledger:
    """What an instance has recorded, against what a catalogue asks for, as of the first question about each asset.

    Parameters
    ----------
    instance : DagsterInstance
        Holds the materialisations.
    catalogue : mapping of str to TableSpec
        The tables.

    Examples
    --------
    >>> tables = {"adult": TableSpec(name="adult", source="adult.csv", label="income")}
    >>> ledger = Ledger(dg.DagsterInstance.ephemeral(), tables)
    >>> ledger.out_of_date("raw_table"), ledger.out_of_date("encoder")
    (['adult'], [])
    """

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
        """Return the ledger of the tables that a partition is made from, for questions about that partition only.

        It reads what those tables recorded. A step that read the records of the whole catalogue would make a run the
        slower the more tables there are beside its own.

        Examples
        --------
        >>> tables = {name: TableSpec(name=name, source="x.csv", label="y") for name in ("adult", "bank")}
        >>> ledger = Ledger.of_partition(dg.DagsterInstance.ephemeral(), tables, "bank|0.01")
        >>> ledger.out_of_date("raw_table")
        ['bank']
        """
        ledger = cls(instance, tables_of(partition, catalogue))
        ledger._is_part = partition is not None
        return ledger

    def version(self, asset: str, partition: str) -> str | None:
        """Return the data version that a partition has now, or None."""
        if asset not in self._versions:
            tags = self._instance.event_log_storage.get_latest_tags_by_partition(
                dg.AssetKey(asset),
                dg.DagsterEventType.ASSET_MATERIALIZATION,
                [DATA_VERSION_TAG],
                asset_partitions=self._asked_for(asset),
            )
            self._versions[asset] = {key: found[DATA_VERSION_TAG] for key, found in tags.items()}
        return self._versions[asset].get(partition)

    def expected(self, asset: str, partition: Partition) -> str | None:
        """Return the recipe by which a partition would be made now; None if it can't or should not be."""
        if not gathers(asset):
            return current_recipe(asset, partition, self._catalogue, self.version)
        cells = self.cells(asset, partition)
        return current_recipe(
            asset, partition, self._catalogue, lambda parent, key: self.version(parent, key) if key in cells else None
        )

    def cells(self, asset: str, partition: Partition) -> set[str]:
        """Return the cells that an asset which gathers cells is made from: those that are there and up to date."""
        tables = tables_of(partition, self._catalogue)
        return {
            key
            for key in partition_keys(PARENTS[asset][-1], tables)
            if key is not None
            and all(self.version(name, key) and key not in self._differs(name) for name in PARENTS[asset])
        }

    def behind(self, asset: str, partition: Partition) -> list[str]:
        """Return which assets have to be remade before a partition can be, because its parents would not agree.

        One that was never made is not among them, because without it there is no recipe. An asset that gathers cells
        does without those that are out of date.
        """
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
        """Return the partitions that are out of date and not behind, each with the recipe by which to make it."""
        return {key: to_be for key, to_be in self._differs(asset).items() if not self.behind(asset, key)}

    def out_of_date(self, asset: str) -> list[Partition]:
        """Return the partitions that are :meth:`pending`; [None] for a whole asset without partitions."""
        return list(self.pending(asset))

    def _differs(self, asset: str) -> dict[Partition, str]:
        if asset not in self._differing:
            wanted = {key: self.expected(asset, key) for key in partition_keys(asset, self._catalogue)}
            recorded = self._recorded(asset) if any(wanted.values()) else {}
            self._differing[asset] = {
                key: to_be for key, to_be in wanted.items() if to_be is not None and to_be != recorded.get(key)
            }
        return self._differing[asset]

    def _asked_for(self, asset: str) -> list[str] | None:
        """Return the partitions to ask for; None stands for all, where naming each would make a long question."""
        return [key for key in partition_keys(asset, self._catalogue) if key is not None] if self._is_part else None

    def _recorded(self, asset: str) -> dict[Partition, str]:
        # Unlike data versions, tags of one's own are not indexed: they have to be read from the events.
        key = dg.AssetKey(asset)
        if asset in UNPARTITIONED:
            return _recipes(self._instance.fetch_materializations(key, limit=1).records)
        wanted = set(partition_keys(asset, self._catalogue))
        asked_for = self._asked_for(asset)
        newest = self._instance.event_log_storage.get_latest_storage_id_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION, partitions=None if asked_for is None else set(asked_for)
        )
        ids = [event_id for partition, event_id in newest.items() if partition in wanted]
        recorded: dict[Partition, str] = {}
        for start in range(0, len(ids), _EVENTS_AT_ONCE):
            some = dg.AssetRecordsFilter(key, storage_ids=ids[start : start + _EVENTS_AT_ONCE])
            recorded |= _recipes(self._instance.fetch_materializations(some, limit=_EVENTS_AT_ONCE).records)
        return recorded


def _recipes(records: Sequence[dg.EventLogRecord]) -> dict[Partition, str]:
    events = [record.asset_materialization for record in records if record.asset_materialization is not None]
    return {event.partition: event.tags[RECIPE_TAG] for event in events if event.tags and RECIPE_TAG in event.tags}
