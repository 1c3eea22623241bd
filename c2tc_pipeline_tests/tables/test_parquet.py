"""Reading Parquet, and damaged Parquet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.blocks import peek_table, read_table


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"a": [1, 2, 3], "s": ["x", None, "z"], "c": pd.Categorical(["u", "v", "u"])})


@pytest.mark.parametrize("name", ["t.parquet", "t.pq", "T.PARQUET"])
def test_round_trip(tmp_path: Path, frame: pd.DataFrame, name: str) -> None:
    frame.to_parquet(tmp_path / name)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)
    assert peek_table(tmp_path / name).columns == ("a", "s", "c")
    assert peek_table(tmp_path / name).rows == 3


def test_some_columns_in_the_asked_order(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", columns=["s", "a"]).columns.tolist() == ["s", "a"]
    with pytest.raises(InputError, match=r"'x'.*'a', 's', 'c'"):
        read_table(tmp_path / "t.parquet", columns=["x"])


@pytest.mark.parametrize("keys", [[1, 2, 3], [5, 2, 9]])
def test_a_stored_index_with_a_name_is_a_column(tmp_path: Path, frame: pd.DataFrame, keys: list[int]) -> None:
    frame.assign(a=keys).set_index("a").to_parquet(tmp_path / "t.parquet")
    assert sorted(read_table(tmp_path / "t.parquet").columns) == ["a", "c", "s"]
    assert sorted(peek_table(tmp_path / "t.parquet").columns) == ["a", "c", "s"]
    assert read_table(tmp_path / "t.parquet", columns=["a"])["a"].tolist() == keys


def test_a_stored_index_without_a_name_is_not(tmp_path: Path, frame: pd.DataFrame) -> None:
    frame.set_index(pd.Index([7, 5, 6])).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").columns.tolist() == ["a", "s", "c"]
    assert read_table(tmp_path / "t.parquet").index.tolist() == [0, 1, 2]
    assert peek_table(tmp_path / "t.parquet").columns == ("a", "s", "c")


def test_duplicate_columns(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="'a'"):
        read_table(tmp_path / "t.parquet")


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: b"",
    lambda content: content[:3],
    lambda content: content[:50],
    lambda content: content[:-1],
    lambda content: b"a,b\n1,2\n" * 20,
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
