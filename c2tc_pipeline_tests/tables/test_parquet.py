"""Reading Parquet, damaged Parquet, strings of several batches in one piece, and passes at the same time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import csv_files
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables import blocks
from c2tc_pipeline.tables.blocks import Blocks, frame_of, in_one_piece, read_table
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1, 2, 3], "s": ["x", None, "z"], "c": pd.Categorical(["u", "v", "u"])})


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "T.PARQUET"])
def test_round_trip(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    frame.to_parquet(tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)
    assert open_source(tmp_path / name).header().columns == ("a", "s", "c")
    assert open_source(tmp_path / name).header().rows == 3


def test_some_columns_in_the_asked_order(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", columns=["s", "a"]).columns.tolist() == ["s", "a"]
    with pytest.raises(InputError, match=r"'x'.*'a', 's', 'c'"):
        read_table(tmp_path / "t.parquet", columns=["x"])


@pytest.mark.parametrize("keys", [[1, 2, 3], [5, 2, 9]])
def test_a_stored_index_with_a_name_is_a_column(tmp_path: Path, frame: pd.DataFrame, keys: list[int]) -> None:
    frame.assign(a=keys).set_index("a").to_parquet(tmp_path / "t.parquet")
    assert sorted(read_table(tmp_path / "t.parquet").columns) == ["a", "c", "s"]
    assert sorted(open_source(tmp_path / "t.parquet").header().columns) == ["a", "c", "s"]
    assert read_table(tmp_path / "t.parquet", columns=["a"])["a"].tolist() == keys


def test_a_stored_index_without_a_name_is_not(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.set_index(pd.Index([7, 5, 6])).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["a", "s", "c"]
    assert read_table(tmp_path / "t.parquet").index.tolist() == [0, 1, 2]
    assert open_source(tmp_path / "t.parquet").header().columns == ("a", "s", "c")


def test_duplicate_columns(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'a'"):
        read_table(tmp_path / "t.parquet")


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[:3],
    lambda content: content[:50],
    lambda content: content[:-1],
    lambda content: b"neither Parquet nor a table\n" * 20,
    lambda content: content[:20_000] + b"flip" + content[20_004:],
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"a": list(range(10_000))})
    pq.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=True)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"t\.parquet"):
        read_table(path)


def pieces(series: pd.Series) -> int:
    return int(series.array.__arrow_array__().num_chunks)


def test_strings_of_several_batches_are_joined() -> None:
    frame = frame_of([pa.record_batch({"a": ["x", None], "b": [1, 2]}), pa.record_batch({"a": ["y"], "b": [3]})], "t")
    assert pieces(frame["a"]) == 1
    assert frame["a"].isna().tolist() == [False, True, False]


def test_values_types_names_and_the_table_itself_stay() -> None:
    table = mixed_table()
    frame = pd.concat([table[:100], table[100:]]).set_axis(["twice", "twice", *table.columns[2:]], axis="columns")
    texts = [position for position, dtype in enumerate(frame.dtypes) if dtype == "str"]
    assert texts
    joined = in_one_piece(frame)
    pd.testing.assert_frame_equal(joined, frame)
    assert {pieces(joined.iloc[:, position]) for position in texts} == {1}
    assert {pieces(frame.iloc[:, position]) for position in texts} == {2}
    assert in_one_piece(joined) is joined, "a table in one piece is not copied"


def test_passes_at_the_same_time_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LARGE_CELLS", "LARGE_CSV_BYTES", "BLOCK_ROWS"):
        monkeypatch.setattr(blocks, limit, 100)
    monkeypatch.setattr(csv_files, "BLOCK_BYTES", 4_096)
    frame = pd.DataFrame({"a": range(3_000), "b": [f"word {number}" for number in range(3_000)]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=100)
    stored, copied = Blocks.of_parquet(tmp_path / "t.parquet"), Blocks.of_source(tmp_path / "t.csv")
    (tmp_path / "t.parquet").unlink()
    for held in (stored, copied):
        assert not held.in_memory
        passes = list(zip(held.frames(), held.frames(["b"]), strict=True))
        assert len(passes) == 30
        for columns, parts in zip((["a", "b"], ["b"]), zip(*passes, strict=True), strict=True):
            pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), frame[columns])
