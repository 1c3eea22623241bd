"""The cache: one computation per key, and an entry that was touched is computed again and reported."""

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

    def __init__(self, directory: Path) -> None:
        self.cache = ContentCache(directory)
        self.made = 0

    def compute(self) -> str:
        self.made += 1
        return f"value {self.made}"

    def fetch(self, kind: str = "demo", key: str = KEY) -> CacheLookup[str]:
        return self.cache.fetch(
            kind,
            key,
            compute=self.compute,
            write=lambda value, path: (path / "value.txt").write_text(value),
            read=lambda path: (path / "value.txt").read_text(),
        )


def entry_of(directory: Path) -> Path:
    (manifest,) = directory.rglob(MANIFEST_NAME)
    return manifest.parent


def test_the_second_fetch_is_a_hit(tmp_path: Path) -> None:
    costly = Costly(tmp_path / "cache")
    assert costly.fetch() == CacheLookup("value 1", hit=False)
    assert costly.fetch() == CacheLookup("value 1", hit=True)
    assert Costly(tmp_path / "cache").fetch() == CacheLookup("value 1", hit=True)


def test_keys_and_kinds_are_kept_apart(tmp_path: Path) -> None:
    costly = Costly(tmp_path)
    found = [costly.fetch(), costly.fetch(key=hash_json("else")), costly.fetch(kind="other")]
    assert [lookup.value for lookup in found] == ["value 1", "value 2", "value 3"]
    assert not any(lookup.hit for lookup in found)


def flip(entry: Path) -> None:
    content = bytearray((entry / "value.txt").read_bytes())
    content[-1] ^= 1
    (entry / "value.txt").write_bytes(content)


def truncate(entry: Path) -> None:
    (entry / "value.txt").write_bytes(b"")


def remove_value(entry: Path) -> None:
    (entry / "value.txt").unlink()


def remove_manifest(entry: Path) -> None:
    (entry / MANIFEST_NAME).unlink()


def garble_manifest(entry: Path) -> None:
    (entry / MANIFEST_NAME).write_text("{}")


def halve_manifest(entry: Path) -> None:
    text = (entry / MANIFEST_NAME).read_text()
    (entry / MANIFEST_NAME).write_text(text[: len(text) // 2])


def manifest_of_another_kind(entry: Path) -> None:
    text = (entry / MANIFEST_NAME).read_text()
    (entry / MANIFEST_NAME).write_text(text.replace('"demo"', '"other"'))


@pytest.mark.parametrize(
    "damage",
    [flip, truncate, remove_value, remove_manifest, garble_manifest, halve_manifest, manifest_of_another_kind],
)
def test_a_damaged_entry_is_made_again_and_reported(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    costly = Costly(tmp_path)
    costly.fetch()
    damage(entry_of(tmp_path))
    assert costly.fetch() == CacheLookup("value 2", hit=False, damaged=True)
    assert costly.fetch() == CacheLookup("value 2", hit=True, damaged=False)


def test_a_failed_computation_stores_nothing(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path)

    def fail() -> str:
        raise RuntimeError("no value")

    with pytest.raises(RuntimeError, match="no value"):
        cache.fetch("demo", KEY, compute=fail, write=lambda value, path: None, read=lambda path: "")
    assert Costly(tmp_path).fetch() == CacheLookup("value 1", hit=False)


def test_whoever_stores_second_keeps_their_value_and_the_first_entry_stays(tmp_path: Path) -> None:
    slow, fast = Costly(tmp_path), Costly(tmp_path)
    fast.made = 10

    def overtaken() -> str:
        fast.fetch()
        return slow.compute()

    found = slow.cache.fetch(
        "demo",
        KEY,
        compute=overtaken,
        write=lambda value, path: (path / "value.txt").write_text(value),
        read=lambda path: (path / "value.txt").read_text(),
    )
    assert found == CacheLookup("value 1", hit=False)
    assert slow.fetch() == CacheLookup("value 11", hit=True)


def test_the_default_directory_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "chosen"))
    assert default_cache_directory() == tmp_path / "chosen"
    monkeypatch.delenv("C2TC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_directory() == tmp_path / "xdg" / "c2tc"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_directory() == tmp_path / ".cache" / "c2tc"


def test_a_cache_that_cannot_be_written_still_gives_the_value(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the directory should be")
    costly = Costly(tmp_path / "cache")
    assert costly.fetch() == CacheLookup("value 1", hit=False)
    assert costly.fetch() == CacheLookup("value 2", hit=False)


def test_an_entry_that_verifies_but_cannot_be_read_is_made_again(tmp_path: Path) -> None:
    costly = Costly(tmp_path)
    costly.fetch()

    def unreadable(path: Path) -> str:
        raise ValueError(f"{path} makes no sense")

    found = costly.cache.fetch("demo", KEY, compute=costly.compute, write=lambda v, p: None, read=unreadable)
    assert (found.value, found.damaged) == ("value 2", True)
