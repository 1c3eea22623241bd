"""Content hashes: equal content gives equal hashes, anything else does not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.storage.hashing import hash_array, hash_file, hash_json

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, min_size=1, max_size=5))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert hash_json(value) == hash_json(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("one", "other"), [(1, 2), (1, "1"), ([1, 2], [2, 1]), ([[1], 2], [1, [2]]), ({"a": 1}, ["a", 1])]
)
def test_different_json_values_have_different_hashes(one: object, other: object) -> None:
    assert hash_json(one) != hash_json(other)


def test_not_a_number_has_no_hash() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        hash_json(float("nan"))


ARRAYS = [
    np.arange(6.0),
    np.arange(6.0)[::-1],
    np.arange(6.0).reshape(2, 3),
    np.arange(6.0).reshape(3, 2),
    np.arange(6.0, dtype=np.float32),
    np.arange(6.0).astype(">f8"),
    np.arange(6),
    np.zeros((0, 3)),
    np.zeros((0, 4)),
    np.array(["a", "b"]),
    np.array(["2024-01-01"], dtype="datetime64[s]"),
    np.array(["2024-01-02"], dtype="datetime64[s]"),
]


def test_values_shape_and_type_all_count() -> None:
    assert len({hash_array(array) for array in ARRAYS}) == len(ARRAYS)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
def test_the_memory_layout_does_not_matter(array: np.ndarray) -> None:
    spread = np.repeat(np.asfortranarray(array), 2, axis=0)[::2]
    assert hash_array(spread) == hash_array(array.copy())


def test_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        hash_array(np.array([{}, None], dtype=object))


def test_the_hash_of_a_file_is_its_sha256(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5_000
    (tmp_path / "file").write_bytes(content)
    assert hash_file(tmp_path / "file") == hashlib.sha256(content).hexdigest()
