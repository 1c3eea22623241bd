"""CSV files that are wrong or strange: the right table, or one sentence with row and column, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import csv_files
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.values import CellType, TextColumn
from c2tc_pipeline.tables.blocks import read_table


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 500
    return message.replace(f"{path.parent}/", "")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that a few megabytes are many of them, and are read twice."""
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 1 << 18)
    monkeypatch.setattr(csv_files, "KEPT_BYTES", 1 << 18)


@pytest.mark.parametrize("name", ["late.csv", "late.csv.gz"])
def test_types_that_change_late_in_a_file_that_is_read_twice(tmp_path: Path, small_blocks: None, name: str) -> None:
    rows = 30_000
    numbers = [str(number) for number in range(rows - 1)]
    frame = pd.DataFrame(
        {
            "turns_text": [*numbers, "n/k"],
            "turns_float": [*map(float, numbers), 0.5],
            "zip": [f"{number % 99_999:05d}" for number in range(rows)],
            "gaps": pd.array([*map(int, numbers), None], dtype="Int64"),
            "huge": [*numbers, str(2**64)],
            "day": ["2020-08-09"] * (rows - 1) + ["2020-02-31"],
        }
    )
    frame.to_csv(tmp_path / name, index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)


def test_memory_is_bounded_by_blocks_and_not_by_the_file(tmp_path: Path, small_blocks: None) -> None:
    path = tmp_path / "long.csv"
    path.write_text("a,b,c\n" + "".join(f"{number},some text of this row,{number / 7}\n" for number in range(400_000)))
    before = pa.total_allocated_bytes()
    rows, most = 0, 0
    for batch in open_source(path).batches():
        rows += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == 400_000
    # The table alone is 23 MB; the reader holds some blocks in advance.
    assert most < 40 * csv_files.BLOCK_BYTES < path.stat().st_size
    assert path.stat().st_size > 16e6


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["1", " 2", None, "3.5", "", "1e3", "x", "true", "2020-08-09", "1,5"])), st.data())
def test_a_type_does_not_depend_on_where_batches_begin(cells: list[str | None], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(cells)))
    whole, parts = TextColumn(), TextColumn()
    whole.add(pa.array(cells, pa.string()))
    for part in (cells[:cut], cells[cut:]):
        parts.add(pa.array(part, pa.string()))
    assert parts.type is whole.type


def test_integers_too_large_for_64_bits_beside_fractions_are_numbers() -> None:
    column = TextColumn()
    decided = []
    for cell in (str(2**64), "0.5"):
        column.add(pa.array([cell]))
        decided.append(column.type)
    assert decided == [CellType.TEXT, CellType.NUMBER]


@pytest.mark.parametrize(
    "cell", [b"y" * 20_000_000, b'"' + (b"y" * 99 + b"\n") * 200_000 + b'"'], ids=["one line", "lines"]
)
def test_a_field_of_20_mb_is_named_by_row_and_column(tmp_path: Path, cell: bytes) -> None:
    with (tmp_path / "t.csv").open("wb") as file:
        file.write(b"a,b,c\n1,x,2\n3,")
        file.write(cell)
        file.write(b",4\n5,z,6\n")
    message = refusal(tmp_path / "t.csv")
    assert message.startswith("Data row 2 (line 3) of t.csv is longer than 8 MiB, in column 'b'")


def test_a_row_too_long_for_blocks_is_named_after_worse_faults(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    long_cells = {size: b"a,b\n1," + b"y" * (size << 20) + b"\n" for size in (1, 3, 7)}
    path.write_bytes(long_cells[3] + b"2,z\n")
    assert read_table(path)["b"].str.len().tolist() == [3 << 20, 1]
    path.write_bytes(long_cells[1] + b"2\n")
    assert refusal(path).startswith("Data row 2 (line 3) of t.csv has 1 field")
    path.write_bytes(b"a,b\n" + b"0,x\n" * 900_000 + long_cells[7][4:] + b"0,x\n")
    assert refusal(path).startswith("Data row 900001 (line 900002) of t.csv is longer than 4 MiB, in column 'b'")


def test_a_header_of_more_than_a_megabyte(tmp_path: Path) -> None:
    names = [f"a column with a rather long name, {'x' * 200} number {number} of them" for number in range(5_000)]
    quoted = ",".join(f'"{name}"' for name in names)
    assert len(quoted) > 1 << 20
    (tmp_path / "wide.csv").write_text(quoted + "\n" + ",".join("7" for _ in names) + "\n")
    frame = read_table(tmp_path / "wide.csv")
    assert frame.shape == (1, 5_000)
    assert (frame.dtypes == "int64").all()
    (tmp_path / "twins.csv").write_text(quoted + ',"' + names[3] + '"\n')
    assert repr(names[3]) in refusal(tmp_path / "twins.csv")
