"""Verifying and collecting: damage is named; what may be written or read stays, and no number is used twice."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import MANIFEST_NAME
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.maintenance import verify_folder, verify_store
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.store import ArtefactStore, LostRace, Published
from c2tc_pipeline_tests.storage.artefacts import KIND, together, writer_of
from c2tc_pipeline_tests.storage.places import (
    AT_ONCE,
    FAR_AHEAD,
    NAMES,
    Place,
    collected,
    damages,
    data_path,
    die_before_manifest,
    failing_from,
    fetched,
    files_of,
    leftovers,
    manifest_path,
    place_of,
    publish,
)


@pytest.fixture(params=["directory", "memory", pytest.param("s3", marks=pytest.mark.faults)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Every kind of place; S3 is for the long tests, since it is asked many times here."""
    return place_of(request, tmp_path)


def test_every_damaged_file_is_named_with_its_reason(place: Place, store: ArtefactStore) -> None:
    assert list(verify_store(store)) == []
    flipped, cut, missing, garbled, moved = (publish(store, f"text {number}") for number in range(5))
    other = publish(store, "other", "deep/er/key")
    checked = list(verify_store(store))
    assert {each.damage for each in checked} == {None}
    assert (sum(each.is_manifest for each in checked), len(checked)) == (6, 18)
    assert sum(each.size for each in checked) == 5 * len("text 0") + len("other") + 6 * 256
    backend = store.backend
    place.overwrite(data_path(flipped, "folder/b.bin"), bytes(255) + b"\0")
    place.overwrite(data_path(cut, "a.txt"), b"text")
    backend.delete(data_path(missing, "a.txt"))
    place.overwrite(manifest_path(garbled), backend.read_bytes(manifest_path(garbled))[:-9])
    place.overwrite(manifest_path(moved), backend.read_bytes(manifest_path(other)))
    assert damages(store) == {
        backend.address(data_path(flipped, "folder/b.bin")): "has another sha256",
        backend.address(data_path(cut, "a.txt")): "has 4 bytes instead of 6",
        backend.address(data_path(missing, "a.txt")): "is missing",
        backend.address(manifest_path(garbled)): "is damaged",
        backend.address(manifest_path(moved)): "is damaged",
    }


def test_what_is_collected_while_it_is_verified_is_not_damaged(store: ArtefactStore) -> None:
    for text in ("first", "second", "third"):
        publish(store, text)
    checks = verify_store(store)
    seen = [next(checks)]
    # By now all was listed, and the first manifest was read.
    assert len(collected(store, keep=1)) == 2
    seen += checks
    assert {each.damage for each in seen} == {None}
    assert sum(each.size for each in seen) == len("third") + 256


@pytest.mark.parametrize("harmed", ["value.txt", MANIFEST_NAME])
def test_a_damaged_entry_of_a_cache_is_named_and_replaced_by_its_next_use(tmp_path: Path, harmed: str) -> None:
    cache = ContentCache(tmp_path / "cache")
    for name in ("one", "two"):
        entry = cache.keep("demo", hash_json(name), lambda path: (path / "value.txt").write_text("value"))
    assert {each.damage for each in verify_folder(tmp_path)} == {None}
    (entry / harmed).unlink()
    damaged = [(each.address, each.damage) for each in verify_folder(tmp_path) if each.damage is not None]
    assert damaged == [(str(entry / harmed), "is missing")]
    (entry / MANIFEST_NAME).write_text("{")
    assert "is damaged" in {each.damage for each in verify_folder(tmp_path)}
    assert cache.keep("demo", hash_json("two"), lambda path: (path / "value.txt").write_text("value")) == entry
    assert {each.damage for each in verify_folder(tmp_path)} == {None}


def test_files_of_a_dead_writer_go_and_what_is_visible_stays(place: Place, store: ArtefactStore) -> None:
    publish(store)
    publish(store, "other", "deep/er/key")
    before = place.contents()
    die_before_manifest(store, run="0a1b-2c")
    (found,) = collected(store, dry_run=True)
    assert "0a1b-2c" in str(found)
    assert (found.size, found.stays) == (4 + 256, "")
    assert set(before) < set(place.contents())
    assert collected(store) == [found]
    after = place.contents()
    assert {path: after[path] for path in before} == before
    assert (leftovers(store), damages(store), collected(store)) == ([], {}, [])
    assert fetched(store) == files_of("old")
    assert publish(store, "next").version == 3, "the number of the dead writer is taken"
    # The leftovers of a key that was never published go, too.
    die_before_manifest(store, "never")
    assert len(collected(store)) == 1
    assert store.latest("never") is None
    for version in (None, 1):
        with pytest.raises(InputError, match="'never'"):
            fetched(store, "never", version=version)
    assert damages(store) == {}
    assert publish(store, "first", "never").version == 2
    assert fetched(store, "never") == files_of("first")


def test_young_leftovers_and_those_from_the_future_stay(store: ArtefactStore) -> None:
    publish(store)
    die_before_manifest(store)
    publish(store, "new")
    found = collected(store, AT_ONCE, keep=1)
    assert len(found) == 2
    assert all(each.stays for each in found)
    assert len(leftovers(store)) == len(NAMES)
    assert store.versions("art") == [1, 2]


def collecting_before_manifests(
    place: Place, store: ArtefactStore, times: int, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Run a collector so often just before a manifest is put; return the list of how much it removed each time."""
    put, removed = store.backend.put_if_absent, list[int]()

    def collect_first(path: str, content: bytes) -> bool:
        if len(removed) < times:
            removed.append(len(collected(place.open())))
        return put(path, content)

    monkeypatch.setattr(store.backend, "put_if_absent", collect_first)
    return removed


@pytest.mark.parametrize("versions", [0, 1])
@pytest.mark.parametrize("times", [2, 3])
def test_a_writer_whose_number_a_collector_took_stores_its_files_again(
    place: Place, store: ArtefactStore, versions: int, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(versions):
        publish(store)
    removed = collecting_before_manifests(place, store, times, monkeypatch)
    if times == 2:
        done = publish(store, "late", run="0a1b")
        assert (done.version, fetched(store)) == (versions + 3, files_of("late"))
    else:
        with pytest.raises(RuntimeError, match="c2tc gc"):
            publish(store, "late")
        assert store.latest("art") is None or fetched(store) == files_of("old")
    assert removed == [1] * times
    assert (leftovers(store), damages(store)) == ([], {})


def test_a_writer_that_lost_to_a_collector_and_then_to_another_writer_is_told_of_the_writer(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    collecting_before_manifests(place, store, 1, monkeypatch)
    tries: list[Path] = []

    def write(directory: Path) -> None:
        tries.append(directory)
        writer_of("late")(directory)
        if len(tries) == 2:
            publish(place.open(), "winner")

    with pytest.raises(LostRace) as lost:
        store.publish("art", write, kind=KIND)
    assert (lost.value.version, len(tries)) == (3, 2)
    assert fetched(store) == files_of("winner")
    assert damages(store) == {}


@pytest.mark.parametrize("versions", [0, 2])
def test_work_during_which_leftovers_of_others_were_collected_is_not_lost(store: ArtefactStore, versions: int) -> None:
    for number in range(versions):
        publish(store, f"version {number}")
    began = store.newest_version("art")
    for _ in range(2):
        die_before_manifest(store)
        assert collected(store, keep=1)
    assert store.newest_version("art") == began + 2
    # Nothing was published meanwhile, and nothing of this writer's was there to be collected.
    done = publish(store, "long work", after=began)
    assert (done.version, fetched(store)) == (began + 3, files_of("long work"))
    with pytest.raises(LostRace) as lost:
        publish(store, "another's long work", after=began)
    assert (lost.value.version, lost.value.winner) == (done.version, done.writer)
    assert damages(store) == {}


def test_a_writer_that_publishes_while_leftovers_are_collected_keeps_its_files(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    delayed: list[tuple[str, bytes]] = []
    slow = place.open()

    def delay(path: str, content: bytes) -> bool:
        delayed.append((path, content))
        return True

    monkeypatch.setattr(slow.backend, "put_if_absent", delay)
    publish(slow, "slow")
    take = store.take_number

    def publish_first(key: str, number: int) -> None:
        for put in delayed:
            assert place.open().backend.put_if_absent(*put)
        take(key, number)

    monkeypatch.setattr(store, "take_number", publish_first)
    assert collected(store) == []
    assert fetched(store) == files_of("slow")
    assert damages(store) == {}


def test_only_the_newest_versions_and_pinned_ones_are_kept(place: Place, store: ArtefactStore) -> None:
    def add(text: str, baseline: str) -> Published:
        return store.publish("validated_table/t", writer_of(text), kind=KIND, settings={"baseline": baseline})

    versions = [add(f"text {number}", "new" if number > 2 else "old") for number in range(6)]
    pinned = {"validated_table": "baseline"}
    dry = collected(store, keep=2, pinned=pinned, dry_run=True)
    assert store.versions("validated_table/t") == [1, 2, 3, 4, 5, 6]
    assert collected(store, keep=2, pinned=pinned) == dry
    assert [found.what.split(",")[0] for found in dry] == ["version 2", "version 3"]
    assert store.versions("validated_table/t") == [1, 4, 5, 6]
    for version in (1, 4, 5, 6):
        assert fetched(store, "validated_table/t", version=version) == files_of(f"text {version - 1}")
    with pytest.raises(InputError):
        fetched(store, "validated_table/t", version=2)
    assert not any(data_path(versions[1], name) in place.contents() for name in NAMES)
    assert damages(store) == {}
    assert collected(store, keep=2, pinned=pinned) == []
    assert add("next", "new").version == 7
    with pytest.raises(LostRace):
        store.publish("validated_table/t", writer_of("zombie"), kind=KIND, after=1)
    with pytest.raises(InputError):
        collected(store, keep=0)


def test_a_collector_that_is_killed_is_finished_by_the_next(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("first", "second"):
        publish(store, text)
    with monkeypatch.context() as patch:
        patch.setattr(store.backend, "remove_folder", failing_from(1, print, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            collected(store, keep=1)
    assert (store.versions("art"), damages(store)) == ([2], {})
    assert len(leftovers(store)) == len(NAMES)
    assert len(collected(store)) == 1
    assert leftovers(store) == []


def test_a_key_with_a_damaged_manifest_is_left_alone(place: Place, store: ArtefactStore) -> None:
    for key in ("art", "other"):
        harmed = publish(store, "old", key)
        die_before_manifest(store, key)
    place.overwrite(manifest_path(harmed), b"{")
    found = {leftover.address: leftover.stays for leftover in collected(store, keep=1)}
    assert found.pop(store.backend.address("other")) == "unclear"
    assert set(found.values()) == {""}
    assert leftovers(store) == []
    assert sum(path.startswith("other/data/") for path in place.contents()) == 2 * len(NAMES)


def test_half_a_manifest_and_an_empty_folder_go_and_foreign_files_stay(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path)
    publish(store)
    foreign = [tmp_path / name for name in ("notes.txt", "art/data/notes.txt", "art/manifests/notes.txt")]
    for path in foreign:
        path.write_text("mine")
    assert collected(store, keep=1) == []
    (tmp_path / "art" / "manifests" / ".0f.partial").write_bytes(b"{")
    (tmp_path / "art" / "data" / f"W{'0' * 32}").mkdir()
    assert len(collected(store)) == 2
    names = ["00000001.json", "00000002.json", "notes.txt", "notes.txt", store.published("art", 1).writer]
    assert sorted(path.name for path in (tmp_path / "art").glob("*/*")) == sorted(names)
    assert all(path.read_text() == "mine" for path in foreign)


@pytest.mark.parametrize("number", [28, 5])
def test_a_full_disk_is_collected_although_no_number_can_be_taken(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtefactStore(tmp_path)
    die_before_manifest(store)
    monkeypatch.setattr(store, "take_number", failing_from(1, print, OSError(number, "broken")))
    if number == 28:
        assert len(collected(store)) == 1
        assert leftovers(store) == []
    else:
        with pytest.raises(OSError, match="broken"):
            collected(store)


def test_writers_readers_and_collectors_at_once_tear_nothing(tmp_path: Path) -> None:
    """A collector whose clock is far ahead runs all the time; numbers keep all that is published whole."""
    publish(ArtefactStore(tmp_path), "0")
    done: list[str] = []

    def collect() -> None:
        while "end" not in done:
            collected(ArtefactStore(tmp_path), FAR_AHEAD)

    def read() -> None:
        while "end" not in done:
            files = fetched(ArtefactStore(tmp_path))
            assert files == files_of(files["a.txt"].decode())

    def write() -> str:
        won = "0"
        try:
            for number in range(1, 25):
                with contextlib.suppress(RuntimeError, FileNotFoundError):
                    publish(ArtefactStore(tmp_path), str(number))
                    won = str(number)
        finally:
            done.append("end")
        return won

    *_, won = outcomes = together([collect, read, write])
    assert outcomes == [None, None, won]
    assert fetched(ArtefactStore(tmp_path)) == files_of(won)
    assert damages(ArtefactStore(tmp_path)) == {}
