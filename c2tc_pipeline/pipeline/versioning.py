"""What a partition of an asset is made from: its recipe.

Each materialisation carries two texts. Its *data version* is a hash of its content. Its *recipe*, an event tag, is a
hash of everything that determined that content: the version of the algorithm, the settings of the table that this asset
reads, and the data versions of its parents. A partition is out of date when the recipe by which it would be made now is
not the one recorded. Because recipes name the parents' content and not their runs, a parent that is remade with the
same content leaves its children up to date.

Where an asset reads a table both itself and through another parent, the two must agree: condensing the rows of today's
delivery by the encoder of yesterday's would mix them up. Such a partition is *behind* and waits for that parent.

What an instance has recorded, and so what is out of date, is in :mod:`c2tc_pipeline.pipeline.ledger`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from c2tc_pipeline.allocation import ALLOCATION_VERSION
from c2tc_pipeline.clustering import CLUSTER_VERSION, CURVE_VERSION
from c2tc_pipeline.condensation import CONDENSED_VERSION
from c2tc_pipeline.encoding import AUTOENCODER_VERSION, ENCODER_VERSION
from c2tc_pipeline.evaluation import SCORES_VERSION
from c2tc_pipeline.pipeline.partitions import Partitions
from c2tc_pipeline.reports import REPORT_VERSION
from c2tc_pipeline.sources import READING_VERSION
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables import PREPARATION_VERSION
from c2tc_pipeline.tables.spec import TableSpec

RECIPE_TAG = "c2tc/recipe"
# A tag may have at most 63 characters; 160 bits are more than enough to tell recipes apart.
_RECIPE_LENGTH = 40

ALGORITHM_VERSIONS = {
    "raw_table": str(READING_VERSION),
    "validated_table": str(PREPARATION_VERSION),
    "encoder": f"{ENCODER_VERSION}.{AUTOENCODER_VERSION}",
    "encoded_table": str(ENCODER_VERSION),
    "cluster_allocation": f"{ALLOCATION_VERSION}.{CURVE_VERSION}",
    "condensed_table": f"{CONDENSED_VERSION}.{CLUSTER_VERSION}",
    "evaluation_scores": str(SCORES_VERSION),
    "report": str(REPORT_VERSION),
    "leaderboard": str(REPORT_VERSION),
}
"""The version of each asset's algorithm, put together from the constants beside the algorithms."""

PARENTS: dict[str, tuple[str, ...]] = {
    "raw_table": (),
    "validated_table": ("raw_table",),
    "encoder": ("validated_table",),
    "encoded_table": ("validated_table", "encoder"),
    "cluster_allocation": ("encoded_table",),
    "condensed_table": ("validated_table", "encoder", "encoded_table", "cluster_allocation"),
    "evaluation_scores": ("validated_table", "encoded_table", "condensed_table"),
    "report": ("condensed_table", "evaluation_scores"),
    "leaderboard": ("evaluation_scores",),
}
"""What each asset reads, in an order in which they can be made; those made on request only are not among them."""

# The version of an encoded table names the training rows behind it. That of the validated table names the test rows
# too, which are of no concern to condensing.
_NAMED_ELSEWHERE = {"condensed_table": {"validated_table"}}

BY_CELL = frozenset({"cluster_allocation", "condensed_table", "evaluation_scores"})
UNPARTITIONED = frozenset({"leaderboard"})

Partition = str | None
VersionOf = Callable[[str, str], str | None]
"""Given an asset and a partition, its data version, or None while it has none."""


def ancestors(asset: str) -> list[str]:
    """Return everything an asset depends on, directly or not, first things first.

    Examples
    --------
    >>> ancestors("encoded_table")
    ['raw_table', 'validated_table', 'encoder']
    """
    above = set(PARENTS[asset]).union(*(ancestors(parent) for parent in PARENTS[asset]))
    return [name for name in PARENTS if name in above]


def in_between(asset: str) -> list[str]:
    """Return what stands between an asset and another of its parents, so that the two have to agree.

    Examples
    --------
    >>> in_between("encoded_table"), in_between("cluster_allocation")
    (['encoder'], [])
    """
    return [name for name in ancestors(asset) if not set(PARENTS[asset]).isdisjoint(ancestors(name))]


def gathers(asset: str) -> bool:
    """Return whether an asset puts together cells of the grid, as many as there are, and is none itself.

    Examples
    --------
    >>> gathers("report"), gathers("condensed_table")
    (True, False)
    """
    return asset not in BY_CELL and not BY_CELL.isdisjoint(PARENTS[asset])


def partition_keys(asset: str, catalogue: Mapping[str, TableSpec]) -> Sequence[Partition]:
    """Return the partitions that an asset should have; None stands for the whole of an asset without partitions.

    Examples
    --------
    >>> tables = {"adult": TableSpec(name="adult", source="adult.csv", label="income", ratios=[0.1, 0.01])}
    >>> partition_keys("encoder", tables), partition_keys("condensed_table", tables)
    (['adult'], ['adult|0.1', 'adult|0.01'])
    >>> partition_keys("leaderboard", tables)
    [None]
    """
    if asset in UNPARTITIONED:
        return [None]
    return Partitions.wanted_cells(catalogue) if asset in BY_CELL else list(catalogue)


def settings_of(asset: str, spec: TableSpec, ratio: float | None = None) -> dict[str, Any]:
    """Return the settings of a table that an asset reads, and no others.

    The device does not count: the same comes out of every one of them, but for rounding.

    Examples
    --------
    >>> spec = TableSpec(name="adult", source="adult.csv", label="income")
    >>> settings_of("cluster_allocation", spec, 0.01)
    {'ratio': 0.01, 'seed': 0, 'allocation': 'hfils', 'gamma': 0.25, 'min_rows_per_condensed_row': 1}
    """
    match asset:
        case "raw_table":
            return spec.model_dump(mode="json", include={"source"})
        case "validated_table":
            return spec.model_dump(
                mode="json", include={"label": True, "roles": True, "split": True, "checks": {"baseline"}}
            )
        case "encoder":
            return spec.settings.model_dump(mode="json", include={"seed", "strings", "numeric"})
        case "cluster_allocation":
            read = {"seed", "allocation", "gamma", "min_rows_per_condensed_row"}
            return {"ratio": ratio, **spec.settings.model_dump(mode="json", include=read)}
        case "condensed_table":
            read = {"seed", "representative", "min_rows_per_condensed_row"}
            # A limit that only warns decides nothing about the table.
            limit = spec.checks.repeated_rows if spec.checks.on_repeated_rows == "stop" else None
            return {"ratio": ratio, "repeated_rows": limit, **spec.settings.model_dump(mode="json", include=read)}
        case "evaluation_scores":
            return spec.evaluation.model_dump(mode="json")
        case _:
            return {}


def recipe(asset: str, settings: Mapping[str, Any], parents: Mapping[str, str]) -> str:
    """Return the hash of all that determines a partition.

    Parameters
    ----------
    asset : str
        The asset.
    settings : mapping
        Its :func:`settings_of`.
    parents : mapping of str to str
        Data versions by ``asset/partition``.

    Examples
    --------
    >>> parents = {"validated_table/adult": "v1"}
    >>> recipe("encoder", {"seed": 0}, parents) == recipe("encoder", {"seed": 1}, parents)
    False
    """
    content = {"algorithm": [asset, ALGORITHM_VERSIONS[asset]], "settings": settings, "parents": parents}
    return hash_json(content)[:_RECIPE_LENGTH]


def current_recipe(
    asset: str, partition: Partition, catalogue: Mapping[str, TableSpec], version_of: VersionOf
) -> str | None:
    """Return the recipe by which a partition would be made from given versions of its parents.

    A report and the leaderboard gather the cells that there are: a missing one is left out. Anything else needs all of
    its parents.

    Parameters
    ----------
    asset : str
        The asset.
    partition : str or None
        Its partition; None for an asset without partitions.
    catalogue : mapping of str to TableSpec
        The tables.
    version_of : callable
        Data version of an asset's partition, or None.

    Returns
    -------
    str or None
        None when a parent is missing, or when the catalogue does not ask for this partition.

    Examples
    --------
    >>> tables = {"adult": TableSpec(name="adult", source="adult.csv", label="income")}
    >>> current_recipe("encoder", "adult", tables, lambda asset, partition: None) is None
    True
    >>> len(current_recipe("encoder", "adult", tables, lambda asset, partition: "v1"))
    40
    """
    tables = tables_of(partition, catalogue)
    if partition not in partition_keys(asset, tables):
        return None
    versions: dict[str, str] = {}
    for parent in PARENTS[asset]:
        keys = keys_above(asset, partition, parent, tables)
        found = {
            f"{parent}/{key}": _named(parent, version)
            for key in keys
            if (version := version_of(parent, key)) is not None
        }
        if not found:
            return None
        if parent not in _NAMED_ELSEWHERE.get(asset, ()):
            versions |= found
    if partition is None:
        return recipe(asset, {}, versions)
    table, ratio = Partitions.parse(partition)
    return recipe(asset, settings_of(asset, tables[table], ratio), versions)


def _named(parent: str, version: str) -> str:
    """Return the content of a parent; a raw table's version names its source's bytes, not what was read of them."""
    return f"{version}, read by {ALGORITHM_VERSIONS[parent]}" if parent == "raw_table" else version


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
