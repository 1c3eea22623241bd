"""Folders of Parquet parts: one table, or the part named that does not fit; and a kind of source from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import addresses
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, sliced
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.catalogue import load_catalogue, validate_catalogue


def write(folder: Path, *parts: pd.DataFrame) -> Path:
    folder.mkdir(exist_ok=True)
    for number, part in enumerate(parts):
        part.to_parquet(folder / f"part-{number:03d}.parquet", index=False)
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(folder)
    return str(caught.value)


def test_parts_in_the_order_of_their_names(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"a": [n, n], "s": ["x", None], "c": pd.Categorical(["u", str(n)])}) for n in range(12)]
    folder = write(tmp_path / "parts", *frames)
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").touch()
    (folder / "notes.txt").touch()
    assert read_table(folder)["a"].tolist() == [n for n in range(12) for _ in range(2)]
    assert read_table(folder)["c"].tolist()[-1] == "11"
    assert open_source(folder).header() == type(open_source(folder).header())(("a", "s", "c"), 24)


def test_a_part_without_values_in_a_column_takes_the_others_type(tmp_path: Path) -> None:
    folder = write(tmp_path / "parts", pd.DataFrame({"s": [None, None]}), pd.DataFrame({"s": ["x", "y"]}))
    first, second = open_source(folder).batches()
    assert first.schema == second.schema
    assert second["s"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (pd.DataFrame({"a": [1.5], "b": [1]}), "column 'a' is of type double"),
        (pd.DataFrame({"a": [1]}), "no column 'b'"),
        (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), "a column 'c'"),
    ],
)
def test_the_part_that_differs_is_named(tmp_path: Path, other: pd.DataFrame, difference: str) -> None:
    first = pd.DataFrame({"a": [1], "b": [1]})
    folder = write(tmp_path / "parts", first, first[["b", "a"]], other)
    assert "part-002.parquet" in refusal(folder)
    assert difference in refusal(folder)


def test_a_damaged_part_and_folders_in_folders_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "parts", pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]}))
    whole = (folder / "part-001.parquet").read_bytes()
    (folder / "part-001.parquet").write_bytes(whole[:-9])
    assert "part-001.parquet is not a whole Parquet file" in refusal(folder)
    (folder / "part-001.parquet").write_bytes(whole)
    (folder / "more").mkdir()
    assert "'more'" in refusal(folder)


def test_a_new_part_is_another_state_and_a_touched_one_has_the_same_digest(tmp_path: Path) -> None:
    folder = write(tmp_path / "parts", pd.DataFrame({"a": [1]}))
    state, digest = open_source(folder).version(), open_source(folder).digest()
    part = folder / "part-000.parquet"
    part.write_bytes(part.read_bytes())
    assert open_source(folder).digest() == digest
    write(folder, pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [2]}))
    assert open_source(folder).version() != state
    assert open_source(folder).digest() != digest


class CountSource(Source):
    """The numbers below another one, and whether they are even."""

    kind = "count"

    def __init__(self, below: int) -> None:
        self.below = below

    @classmethod
    def from_address(cls, address: str) -> Source | None:
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
