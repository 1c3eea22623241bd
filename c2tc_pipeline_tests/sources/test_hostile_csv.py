"""CSV files that are wrong or strange: the right table, or one sentence with row and column, in bounded memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import csv_files
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.values import CellType, TextColumn
from c2tc_pipeline.tables.readers import read_table


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
    rows = 60_000
    frame = pd.DataFrame(
        {
            "turns_text": [str(number) for number in range(rows)],
            "turns_float": np.arange(rows),
            "zip": [f"{number % 99_999:05d}" for number in range(rows)],
            "gaps": pd.Series(np.arange(rows), dtype="Int64"),
            "huge": [str(number) for number in range(rows)],
            "day": ["2020-08-09"] * rows,
        }
    )
    frame["turns_float"] = frame["turns_float"].astype(float)
    frame.loc[rows - 1, "turns_text"] = "n/k"
    frame.loc[rows - 2, "turns_float"] = 0.5
    frame.loc[rows - 3, "gaps"] = None
    frame.loc[rows - 1, "huge"] = str(2**64)
    frame.loc[rows - 1, "day"] = "2020-02-31"
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


def test_a_decision_does_not_depend_on_where_batches_begin() -> None:
    cells = ["1", " 2", None, "3.5", "", "1e3"]
    for cut in range(len(cells) + 1):
        guess = TextColumn()
        for part in (cells[:cut], cells[cut:]):
            guess.add(pa.array(part, pa.string()))
        assert guess.type is CellType.NUMBER


def test_whole_numbers_too_large_for_64_bits_beside_fractions_are_numbers() -> None:
    guess = TextColumn()
    decided = []
    for cell in (str(2**64), "0.5"):
        guess.add(pa.array([cell]))
        decided.append(guess.type)
    assert decided == [CellType.TEXT, CellType.NUMBER]


def test_nul_bytes_are_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,x\0y\n2,\0\n")
    assert read_table(tmp_path / "t.csv")["b"].tolist() == ["x\0y", "\0"]


def test_bytes_that_are_not_utf8_are_named_by_row_and_column(tmp_path: Path, small_blocks: None) -> None:
    content = b"a,b,c\n" + b"1,2,x\n" * 90_000 + b"1,\xff,x\n" + b"1,2,x\n" * 10
    (tmp_path / "t.csv").write_bytes(content)
    assert refusal(tmp_path / "t.csv") == (
        "Data row 90001 (line 90002) of t.csv, column 'b', holds bytes that are not UTF-8; save the file as UTF-8."
    )


@pytest.mark.parametrize(
    "cell", [b"y" * 100_000_000, b'"' + (b"y" * 99 + b"\n") * 1_000_000 + b'"'], ids=["one line", "lines"]
)
def test_a_field_of_100_mb_is_named_by_row_and_column(tmp_path: Path, cell: bytes) -> None:
    with (tmp_path / "t.csv").open("wb") as file:
        file.write(b"a,b,c\n1,x,2\n3,")
        file.write(cell)
        file.write(b",4\n5,z,6\n")
    assert refusal(tmp_path / "t.csv") == (
        "Data row 2 (line 3) of t.csv is longer than 8 MiB, in column 'b'; shorten that value, or close the quotation "
        "mark before it."
    )


def test_a_field_of_3_mb_is_read(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1," + b"y" * (3 << 20) + b"\n2,z\n")
    assert read_table(tmp_path / "t.csv")["b"].str.len().tolist() == [3 << 20, 1]


def test_a_ragged_row_after_a_long_field_is_the_one_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1," + b"y" * (1 << 20) + b"\n2\n")
    assert refusal(tmp_path / "t.csv").startswith("Data row 2 (line 3) of t.csv has 1 field where the header has 2")


def test_20_000_columns_with_long_names(tmp_path: Path) -> None:
    names = [f"a column with a rather long name, number {number} of them" for number in range(20_000)]
    quoted = ",".join(f'"{name}"' for name in names)
    assert len(quoted) > 1 << 20
    (tmp_path / "wide.csv").write_text(quoted + "\n" + ",".join("7" for _ in names) + "\n")
    frame = read_table(tmp_path / "wide.csv")
    assert frame.shape == (1, 20_000)
    assert (frame.dtypes == "int64").all()
    (tmp_path / "twins.csv").write_text(quoted + ',"' + names[3] + '"\n')
    assert refusal(tmp_path / "twins.csv") == f"Two columns of twins.csv are called {names[3]!r}; rename one of them."
