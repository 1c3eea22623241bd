"""Verifying all that is stored: every damaged file is named with its reason, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.storage.artefact import MANIFEST_NAME
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.leftover import Rule
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.storage.store_leftovers import collect_store
from c2tc_pipeline.storage.verification import verify_folder, verify_store
from c2tc_pipeline_tests.storage.places import Place, data_path, manifest_path, publish


def test_a_store_without_damage(place: Place, store: ArtefactStore) -> None:
    assert list(verify_store(store)) == []
    for text in ("first", "second"):
        publish(store, text)
    publish(store, "else", "deep/er/key")
    checked = list(verify_store(store))
    assert {each.damage for each in checked} == {None}
    assert (sum(each.is_manifest for each in checked), len(checked)) == (3, 9)
    assert sum(each.size for each in checked) == len("first" + "second" + "else") + 3 * 256


def test_every_damaged_file_is_named_with_its_reason(place: Place, store: ArtefactStore) -> None:
    flipped, cut, missing, garbled, moved = (publish(store, f"text {number}") for number in range(5))
    publish(store, "whole")
    backend = store.backend
    other = publish(store, "other", "other")
    place.overwrite(data_path(flipped, "folder/b.bin"), bytes(255) + b"\0")
    place.overwrite(data_path(cut, "a.txt"), b"text")
    backend.delete(data_path(missing, "a.txt"))
    place.overwrite(manifest_path(garbled), backend.read_bytes(manifest_path(garbled))[:-9])
    place.overwrite(manifest_path(moved), backend.read_bytes(manifest_path(other)))
    found = {each.address: each.damage for each in verify_store(store) if each.damage is not None}
    assert found == {
        backend.address(data_path(flipped, "folder/b.bin")): "has another sha256",
        backend.address(data_path(cut, "a.txt")): "has 4 bytes instead of 6",
        backend.address(data_path(missing, "a.txt")): "is missing",
        backend.address(manifest_path(garbled)): "is damaged",
        backend.address(manifest_path(moved)): "is damaged",
    }


def test_what_is_collected_meanwhile_is_not_damaged(store: ArtefactStore) -> None:
    for text in ("first", "second", "third"):
        publish(store, text)
    checks = verify_store(store)
    seen = [next(checks)]
    # By now all was listed, and the first manifest was read.
    assert len(list(collect_store(store, Rule(now=1e11, older_than=0), keep=1))) == 2
    seen += checks
    assert [each.address for each in seen if each.damage is not None] == []
    assert sum(each.is_manifest for each in seen) == 3
    assert sum(each.size for each in seen) == len("third") + 256


@pytest.mark.parametrize("harmed", ["value.txt", MANIFEST_NAME])
def test_a_damaged_entry_of_a_cache_is_named_and_healed_by_its_next_use(tmp_path: Path, harmed: str) -> None:
    cache = ContentCache(tmp_path / "cache")

    def fetch(name: str) -> str:
        return cache.fetch(
            "demo",
            hash_json(name),
            compute=lambda: name,
            write=lambda value, path: (path / "value.txt").write_text(value),
            read=lambda path: (path / "value.txt").read_text(),
        ).value

    for name in ("one", "two"):
        fetch(name)
    assert {each.damage for each in verify_folder(tmp_path)} == {None}
    entry = next((tmp_path / "cache").rglob(hash_json("one")))
    (entry / harmed).unlink()
    damaged = [each for each in verify_folder(tmp_path) if each.damage is not None]
    assert [(each.address, each.damage) for each in damaged] == [(str(entry / harmed), "is missing")]
    assert fetch("one") == "one"
    assert {each.damage for each in verify_folder(tmp_path)} == {None}
