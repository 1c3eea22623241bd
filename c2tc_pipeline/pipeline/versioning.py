"""The graph of assets, their partitions, and the version key of each partition.

Each materialisation records two hashes: its *data version* is a hash of its content; its *version key*, an event tag,
is a hash of everything that determines the content: the algorithm's version, the settings that this asset reads, and
the data versions of its parents. A partition is out of date when its current version key differs from the recorded one
(:mod:`c2tc_pipeline.pipeline.ledger`); a parent remade with the same content leaves its children up to date.

Where an asset reads a table both directly and through another parent, the two must agree: condensing the rows of
today's delivery by yesterday's encoder would mix them up. Such a partition is *behind* and waits for that parent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from c2tc_pipeline.allocation import ALLOCATION_VERSION
from c2tc_pipeline.clustering import CLUSTER_VERSION, CURVE_VERSION
from c2tc_pipeline.condensation import CONDENSED_VERSION, EXPANSION_VERSION, WEIGHTS_VERSION
from c2tc_pipeline.encoding import AUTOENCODER_VERSION, ENCODER_VERSION
from c2tc_pipeline.evaluation import SCORES_VERSION
from c2tc_pipeline.reports import REPORT_VERSION
from c2tc_pipeline.sources import READING_VERSION
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables import PREPARATION_VERSION
from c2tc_pipeline.tables.spec import TableSpec

VERSION_KEY_TAG = "c2tc/version_key"
# A tag may have at most 63 characters; 160 bits are enough to tell version keys apart.
_KEY_LENGTH = 40

ALGORITHM_VERSIONS = {
    "raw_table": str(READING_VERSION),
    "validated_table": str(PREPARATION_VERSION),
    "encoder": f"{ENCODER_VERSION}.{AUTOENCODER_VERSION}",
    "encoded_table": f"{ENCODER_VERSION}.{WEIGHTS_VERSION}",
    "cluster_allocation": f"{ALLOCATION_VERSION}.{CURVE_VERSION}",
    "condensed_table": f"{CONDENSED_VERSION}.{CLUSTER_VERSION}",
    "training_rows": str(EXPANSION_VERSION),
    "evaluation_scores": str(SCORES_VERSION),
    "report": str(REPORT_VERSION),
    "leaderboard": str(REPORT_VERSION),
}
"""The version of each asset's algorithm, composed of the constants beside the algorithms."""

PARENTS: dict[str, tuple[str, ...]] = {
    "raw_table": (),
    "validated_table": ("raw_table",),
    "encoder": ("validated_table",),
    "encoded_table": ("validated_table", "encoder"),
    "cluster_allocation": ("encoded_table",),
    "condensed_table": ("validated_table", "encoder", "encoded_table", "cluster_allocation"),
    "training_rows": ("condensed_table",),
    "evaluation_scores": ("validated_table", "encoded_table", "condensed_table"),
    "report": ("condensed_table", "evaluation_scores"),
    "leaderboard": ("evaluation_scores",),
}
"""What each asset reads, in topological order."""

# The version of an encoded table names the training rows behind it. That of the validated table also names the test
# rows, which condensing does not read.
_NAMED_ELSEWHERE = {"condensed_table": {"validated_table"}}

BY_CELL = frozenset({"cluster_allocation", "condensed_table", "training_rows", "evaluation_scores"})
UNPARTITIONED = frozenset({"leaderboard"})
DATASET = "dataset"
RATIO = "ratio"

Partition = str | None
"""A partition key; None stands for the whole of an asset without partitions."""
VersionOf = Callable[[str, str], str | None]
"""Maps an asset and a partition to a data version, None while it has none."""


@dataclass(frozen=True)
class Partitions:
    """The partitions of a catalogue: one per table, and the grid of tables times all listed ratios."""

    datasets: dg.StaticPartitionsDefinition
    grid: dg.MultiPartitionsDefinition

    @classmethod
    def of(cls, catalogue: Mapping[str, TableSpec]) -> Partitions:
        """Return the partitions of a catalogue, the largest ratio first."""
        datasets = dg.StaticPartitionsDefinition(list(catalogue))
        ratios = sorted({ratio for spec in catalogue.values() for ratio in spec.ratios}, reverse=True)
        by_ratio = dg.StaticPartitionsDefinition([repr(ratio) for ratio in ratios])
        return cls(datasets, dg.MultiPartitionsDefinition({DATASET: datasets, RATIO: by_ratio}))

    @staticmethod
    def cell_key(table: str, ratio: float) -> str:
        """Return the partition key of one table at one ratio, such as ``departures|0.001``."""
        return f"{table}|{ratio!r}"

    @staticmethod
    def parse(partition_key: str) -> tuple[str, float | None]:
        """Return the table and, for a cell of the grid, the ratio."""
        table, _, ratio = partition_key.partition("|")
        return table, float(ratio) if ratio else None


def partition_keys(asset: str, catalogue: Mapping[str, TableSpec]) -> Sequence[Partition]:
    """Return the partitions an asset should have; cells whose table does not list the ratio are left out."""
    if asset in UNPARTITIONED:
        return [None]
    if asset in BY_CELL:
        return [Partitions.cell_key(spec.name, ratio) for spec in catalogue.values() for ratio in spec.ratios]
    return list(catalogue)


def ancestors(asset: str) -> list[str]:
    """Return all direct and indirect parents of an asset, in topological order."""
    above = set(PARENTS[asset]).union(*(ancestors(parent) for parent in PARENTS[asset]))
    return [name for name in PARENTS if name in above]


def in_between(asset: str) -> list[str]:
    """Return the ancestors that read one of the asset's parents themselves, so that the two have to agree."""
    return [name for name in ancestors(asset) if not set(PARENTS[asset]).isdisjoint(ancestors(name))]


def gathers(asset: str) -> bool:
    """Return whether an asset aggregates the available cells of the grid, as reports and the leaderboard do."""
    return asset not in BY_CELL and not BY_CELL.isdisjoint(PARENTS[asset])


def tables_of(partition: Partition, catalogue: Mapping[str, TableSpec]) -> Mapping[str, TableSpec]:
    """Return the tables that a partition is made from."""
    if partition is None:
        return catalogue
    table, _ = Partitions.parse(partition)
    return {table: catalogue[table]} if table in catalogue else {}


def keys_above(asset: str, partition: Partition, ancestor: str, tables: Mapping[str, TableSpec]) -> list[str]:
    """Return the partitions of an ancestor that a partition is made from, given the tables it is made from."""
    if partition is not None and {asset, ancestor} <= BY_CELL:
        return [partition]
    return [key for key in partition_keys(ancestor, tables) if key is not None]


def settings_of(asset: str, spec: TableSpec, ratio: float | None = None) -> dict[str, Any]:
    """Return the settings of a table that an asset reads, and no others; the device does not change results."""
    match asset:
        case "raw_table":
            return spec.model_dump(mode="json", include={"source"})
        case "validated_table":
            fields: Any = {name: True for name in ("label", "label_kind", "missing", "roles", "split")}
            fields["checks"] = {"baseline"}
            return spec.model_dump(mode="json", include=fields)
        case "encoder":
            return spec.settings.model_dump(mode="json", include={"seed", "strings", "numeric"})
        case "encoded_table":
            return spec.settings.model_dump(mode="json", include={"seed", "column_weights"})
        case "training_rows":
            return spec.settings.model_dump(mode="json", include={"seed", "expand_rows"})
        case "cluster_allocation":
            read = {"seed", "allocation", "gamma", "min_rows_per_condensed_row"}
            return {"ratio": ratio, **spec.settings.model_dump(mode="json", include=read)}
        case "condensed_table":
            read = {"seed", "representative", "min_rows_per_condensed_row", "min_category_rows"}
            # A limit that only warns does not change the table.
            limit = spec.checks.repeated_rows if spec.checks.on_repeated_rows == "stop" else None
            return {"ratio": ratio, "repeated_rows": limit, **spec.settings.model_dump(mode="json", include=read)}
        case "evaluation_scores":
            return spec.evaluation.model_dump(mode="json")
        case _:
            return {}


def version_key(asset: str, settings: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """Return the hash of all that determines a partition; parents are data versions by ``asset/partition``."""
    content = {"algorithm": [asset, ALGORITHM_VERSIONS[asset]], "settings": settings, "parents": parents}
    return hash_json(content)[:_KEY_LENGTH]


def current_version_key(
    asset: str, partition: Partition, catalogue: Mapping[str, TableSpec], version_of: VersionOf
) -> str | None:
    """Return the version key of a partition made from the given versions of its parents.

    None when a parent is missing, or when the catalogue does not list this partition.
    """
    tables = tables_of(partition, catalogue)
    if partition not in partition_keys(asset, tables):
        return None
    versions: dict[str, str] = {}
    for parent in PARENTS[asset]:
        found = {
            f"{parent}/{key}": _content(parent, version)
            for key in keys_above(asset, partition, parent, tables)
            if (version := version_of(parent, key)) is not None
        }
        if not found:
            return None
        if parent not in _NAMED_ELSEWHERE.get(asset, ()):
            versions |= found
    if partition is None:
        return version_key(asset, {}, versions)
    table, ratio = Partitions.parse(partition)
    return version_key(asset, settings_of(asset, tables[table], ratio), versions)


def _content(parent: str, version: str) -> str:
    """Return a parent's version; a raw table's, which hashes the source's bytes, with the version of reading them."""
    return f"{version}, read by {ALGORITHM_VERSIONS[parent]}" if parent == "raw_table" else version
