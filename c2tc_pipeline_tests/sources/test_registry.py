"""Adding a kind of source from outside: one class, one line of the registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from c2tc_pipeline.sources import addresses
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, sliced
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.catalogue import load_catalogue, validate_catalogue


class CountSource(Source):
    """The numbers below another one, and whether they are even."""

    kind = "count"

    def __init__(self, below: int) -> None:
        self.below = below

    @classmethod
    def from_address(cls, address: str, storage_options: Mapping[str, Any] | None = None) -> Source | None:
        return cls(int(address.removeprefix("count://"))) if address.startswith("count://") else None

    @classmethod
    def address_of(cls, fields: Any) -> str:
        return f"count://{fields}"

    @property
    def shown(self) -> str:
        return f"count://{self.below}"

    name = "numbers"

    def header(self) -> TableHeader:
        return TableHeader(("n", "even"), self.below)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        numbers = range(self.below)
        whole = pa.record_batch({"n": numbers, "even": [number % 2 == 0 for number in numbers]})
        yield from sliced([whole.select(self.chosen(columns, whole.schema.names))], rows)


def test_a_source_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "SOURCES", [CountSource, *addresses.SOURCES])
    path = tmp_path / "catalog.yaml"
    path.write_text("tables: {a: {source: count://7, label: even}, b: {source: {count: 7}, label: even}}")
    catalogue = load_catalogue(path)
    assert [(report.problem, report.rows) for report in validate_catalogue(catalogue)] == [(None, 7)] * 2
    delivered = [Blocks.of_source(catalogue.resolve_source(spec)) for spec in catalogue.values()]
    assert [next(delivery.frames())["n"].tolist() for delivery in delivered] == [list(range(7))] * 2
    assert delivered[0].digest == delivered[1].digest
    assert delivered[0].version == f"db-{delivered[0].digest[:32]}"
