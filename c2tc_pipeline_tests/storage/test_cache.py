"""The cache: one computation per key, and an entry that was damaged is computed again and reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.storage.artefact import MANIFEST_NAME
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache, default_cache_directory
from c2tc_pipeline.storage.hashing import hash_json

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
    costly = Costly(tmp_path / "cache")
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


def test_a_failed_computation_stores_nothing(tmp_path: Path) -> None:
    def fail() -> str:
        raise RuntimeError("no value")

    with pytest.raises(RuntimeError, match="no value"):
        Costly(tmp_path).fetch(compute=fail)
    assert Costly(tmp_path).fetch() == CacheLookup("value 1", hit=False)


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
