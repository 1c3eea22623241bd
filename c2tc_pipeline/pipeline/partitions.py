"""What the pipeline is divided by: tables, and tables times ratios.

Only keys belong here, all of them known when the catalogue has been read; what a partition's recipe is stands in
:mod:`c2tc_pipeline.pipeline.versioning`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from c2tc_pipeline.tables.spec import TableSpec

DATASET = "dataset"
RATIO = "ratio"


@dataclass(frozen=True)
class Partitions:
    """The partitions of a catalogue.

    Parameters
    ----------
    datasets : StaticPartitionsDefinition
        One key a table.
    grid : MultiPartitionsDefinition
        Table times ratio, with every ratio that any table lists.

    Examples
    --------
    >>> wide = TableSpec(name="wide", source="wide.csv", label="y", ratios=[0.1, 0.01])
    >>> tall = TableSpec(name="tall", source="tall.csv", label="y", ratios=[0.01, 0.001])
    >>> partitions = Partitions.of({"wide": wide, "tall": tall})
    >>> list(partitions.datasets.get_partition_keys())
    ['wide', 'tall']
    >>> len(partitions.grid.get_partition_keys())
    6
    """

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
        """Return the key of one table at one ratio.

        Examples
        --------
        >>> Partitions.cell_key("flights", 0.001)
        'flights|0.001'
        """
        return f"{table}|{ratio!r}"

    @staticmethod
    def parse(partition_key: str) -> tuple[str, float | None]:
        """Return the table and, for a key of the grid, the ratio.

        Examples
        --------
        >>> Partitions.parse("flights|1e-05"), Partitions.parse("flights")
        (('flights', 1e-05), ('flights', None))
        """
        table, _, ratio = partition_key.partition("|")
        return table, float(ratio) if ratio else None

    @staticmethod
    def wanted_cells(catalogue: Mapping[str, TableSpec]) -> list[str]:
        """Return the cells of the grid whose table lists their ratio; where tables list different ones, it has holes.

        Examples
        --------
        >>> wide = TableSpec(name="wide", source="wide.csv", label="y", ratios=[0.1, 0.01])
        >>> tall = TableSpec(name="tall", source="tall.csv", label="y", ratios=[0.001])
        >>> Partitions.wanted_cells({"wide": wide, "tall": tall})
        ['wide|0.1', 'wide|0.01', 'tall|0.001']
        """
        return [Partitions.cell_key(spec.name, ratio) for spec in catalogue.values() for ratio in spec.ratios]
