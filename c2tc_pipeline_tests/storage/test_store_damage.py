"""Whatever changed since it was published is noticed by the reader, and named."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.places import NAMES, Place, data_path, fetched, files_of, manifest_path, publish


def flip(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("harm", [flip, lambda content: content[:-1], None], ids=["flipped", "truncated", "missing"])
def test_a_damaged_file_is_named(place: Place, store: ArtefactStore, harm: Callable[[bytes], bytes] | None) -> None:
    publish(store, "older")
    for name in NAMES:
        path = data_path(publish(store), name)
        if harm is None:
            store.backend.delete(path)
        else:
            place.overwrite(path, harm(store.backend.read_bytes(path)))
        with pytest.raises(DamagedArtefactError) as caught:
            fetched(store)
        assert store.backend.address(path) in str(caught.value)
    assert fetched(store, version=1) == files_of("older")


def test_a_damaged_manifest_is_named_and_not_passed_over(place: Place, store: ArtefactStore) -> None:
    publish(store, "older")
    path = manifest_path(publish(store))
    whole = store.backend.read_bytes(path)
    reads: list[Callable[[str], object]] = [lambda key: fetched(store, key), store.latest, store.leftovers]
    for harmed in (flip(whole), whole[:-9], b""):
        place.overwrite(path, harmed)
        for read in reads:
            with pytest.raises(DamagedArtefactError) as caught:
                read("art")
            assert store.backend.address(path) in str(caught.value)


def test_a_manifest_from_elsewhere_is_refused(place: Place, store: ArtefactStore) -> None:
    other = publish(store, "other", "other")
    mine = publish(store)
    place.overwrite(manifest_path(mine), store.backend.read_bytes(manifest_path(other)))
    with pytest.raises(DamagedArtefactError, match="belongs elsewhere"):
        fetched(store)


def test_a_manifest_cannot_lead_a_reader_outside(place: Place, store: ArtefactStore) -> None:
    path = manifest_path(publish(store))
    manifest = json.loads(store.backend.read_bytes(path))
    del manifest["sha256"]
    for name in ("../../outside.txt", "/outside.txt", "", "."):
        manifest["files"][0]["name"] = name
        # Sealed again: the hash keeps accidents out, not forgers.
        place.overwrite(path, json.dumps({**manifest, "sha256": hash_json(manifest)}).encode())
        with pytest.raises(DamagedArtefactError, match=r"00000001\.json"):
            fetched(store)
