"""Content hashes, Parquet files in one way, and the cache: one computation per key, again after damage."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.storage import parquet
from c2tc_pipeline.storage.artefact import MANIFEST_NAME
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache, default_cache_directory
from c2tc_pipeline.storage.manifest import hash_array, hash_file, hash_json

KEY = hash_json("what determines the value")


class Costly:
    """Counts how often a value is made."""

    def __init__(self, directory: Path, made: int = 0) -> None:
        self.cache, self.made = ContentCache(directory), made

    def compute(self) -> str:
        self.made += 1
        return f"value {self.made}"

    def fetch(
        self, kind: str = "demo", key: str = KEY, *, compute: Callable[[], str] | None = None, unreadable: bool = False
    ) -> CacheLookup[str]:
        def read(path: Path) -> str:
            if unreadable:
                raise ValueError(f"{path} makes no sense")
            return (path / "value.txt").read_text()

        def write(value: str, path: Path) -> None:
            (path / "value.txt").write_text(value)

        return self.cache.fetch(kind, key, compute=compute or self.compute, write=write, read=read)


def test_each_key_and_kind_is_computed_once(tmp_path: Path) -> None:
    def fail() -> str:
        raise RuntimeError("no value")

    costly = Costly(tmp_path / "cache")
    with pytest.raises(RuntimeError, match="no value"):
        costly.fetch(compute=fail)
    found = [costly.fetch(), costly.fetch(key=hash_json("else")), costly.fetch(kind="other")]
    assert found == [CacheLookup(f"value {number}", hit=False) for number in (1, 2, 3)]
    assert Costly(tmp_path / "cache").fetch() == CacheLookup("value 1", hit=True)


def change(name: str, how: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda entry: (entry / name).write_bytes(how((entry / name).read_bytes()))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": change("value.txt", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    "truncated": change("value.txt", lambda content: b""),
    "removed": lambda entry: (entry / "value.txt").unlink(),
    "without manifest": lambda entry: (entry / MANIFEST_NAME).unlink(),
    "garbled manifest": change(MANIFEST_NAME, lambda content: b"{}"),
    "half a manifest": change(MANIFEST_NAME, lambda content: content[: len(content) // 2]),
    "another kind": change(MANIFEST_NAME, lambda content: content.replace(b'"demo"', b'"other"')),
}


@pytest.mark.parametrize("damage", [*DAMAGES.values(), None], ids=[*DAMAGES, "unreadable"])
def test_a_damaged_entry_is_made_again_and_reported(tmp_path: Path, damage: Callable[[Path], object] | None) -> None:
    costly = Costly(tmp_path)
    costly.fetch()
    if damage is not None:
        damage(next(tmp_path.rglob(MANIFEST_NAME)).parent)
    assert costly.fetch(unreadable=damage is None) == CacheLookup("value 2", hit=False, damaged=True)
    assert costly.fetch() == CacheLookup("value 2", hit=True, damaged=False)


def test_of_two_computations_the_first_entry_stays(tmp_path: Path) -> None:
    slow, fast = Costly(tmp_path), Costly(tmp_path, made=10)
    found = slow.fetch(compute=lambda: fast.fetch().value and slow.compute())
    assert found == CacheLookup("value 1", hit=False)
    assert slow.fetch() == CacheLookup("value 11", hit=True)


def test_a_cache_that_cannot_be_written_still_gives_the_value(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the directory should be")
    costly = Costly(tmp_path / "cache")
    assert [costly.fetch().value for _ in range(2)] == ["value 1", "value 2"]


def test_the_default_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_cache_directory() == tmp_path / "chosen"
    monkeypatch.delenv("C2TC_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    for xdg, expected in ((str(tmp_path / "xdg"), tmp_path / "xdg"), ("", tmp_path / ".cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        assert default_cache_directory() == expected / "c2tc"


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


@settings(max_examples=40)
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


def test_the_memory_layout_does_not_matter() -> None:
    for array in ARRAYS:
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
