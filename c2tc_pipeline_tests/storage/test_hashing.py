"""Content hashes: equal content gives equal hashes, anything else does not; and Parquet files in one way."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.storage import parquet
from c2tc_pipeline.storage.hashing import hash_array, hash_file, hash_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
VALUES = [1, 2, "1", [1, 2], [2, 1], [[1], 2], [1, [2]], {"a": 1}, ["a", 1]]
NUMBERS = np.arange(6.0)
ARRAYS = [NUMBERS, NUMBERS[::-1], NUMBERS.reshape(2, 3), NUMBERS.reshape(3, 2), NUMBERS.astype(np.float32)]
ARRAYS += [NUMBERS.astype(">f8"), np.arange(6), np.zeros((0, 3)), np.zeros((0, 4)), np.array(["a", "b"])]
ARRAYS += [np.array([f"2024-01-0{day}"], dtype="datetime64[s]") for day in (1, 2)]


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert hash_json(value) == hash_json(dict(reversed(value.items())))


def test_values_shape_and_type_all_count() -> None:
    assert len({hash_array(array) for array in ARRAYS}) == len(ARRAYS)
    assert len({hash_json(value) for value in VALUES}) == len(VALUES)
    with pytest.raises(ValueError, match="not JSON compliant"):
        hash_json(float("nan"))
    with pytest.raises(TypeError, match="Python objects"):
        hash_array(np.array([{}, None], dtype=object))


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
def test_the_memory_layout_does_not_matter(array: np.ndarray) -> None:
    spread = np.repeat(np.asfortranarray(array), 2, axis=0)[::2]
    assert hash_array(spread) == hash_array(array.copy())


def test_the_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5_000
    (tmp_path / "file").write_bytes(content)
    assert hash_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()


def test_a_table_written_in_parts_has_the_bytes_of_one_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 4)
    one, other = tmp_path / "one", tmp_path / "other"
    table = pd.DataFrame({"x": range(10)})
    table.to_parquet(one, compression="zstd", index=False, write_page_checksum=True, row_group_size=4)
    parquet.write_parquet_parts((table[start:stop] for start, stop in ((0, 1), (1, 9), (9, 10))), other)
    assert one.read_bytes() == other.read_bytes()
    assert parquet.read_parquet(other).equals(table)


def test_compressed_arrays_are_refused(tmp_path: Path) -> None:
    for save, name in ((np.savez, "plain.npz"), (np.savez_compressed, "packed.npz")):
        save(tmp_path / name, a=NUMBERS)
    with parquet.open_arrays(tmp_path / "plain.npz") as arrays:
        assert arrays["a"].tolist() == NUMBERS.tolist()
    with pytest.raises(ValueError, match=r"packed\.npz"), parquet.open_arrays(tmp_path / "packed.npz"):
        pass
