"""Collecting: what nobody can ask for goes, what anybody may write or read stays, and no number is used twice."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.leftover import Leftover, Rule, State
from c2tc_pipeline.storage.local_backend import LocalBackend
from c2tc_pipeline.storage.s3_backend import S3Backend
from c2tc_pipeline.storage.store import ArtefactStore, LostRace, NumberCollectedError, Published
from c2tc_pipeline.storage.store_leftovers import as_pins, collect_store
from c2tc_pipeline.storage.verification import verify_store
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import (
    NAMES,
    Place,
    data_path,
    die_before_manifest,
    failing_from,
    fetched,
    files_of,
    manifest_path,
    publish,
)

FAR_AHEAD = Rule(now=1e11, older_than=3600)
"""As if all of it were very old: what a clock that jumped would make a collector believe."""
AT_ONCE = Rule(now=0, older_than=3600)
"""As if all of it had just been written, or the clock had jumped back."""


@pytest.fixture(params=["directory", "memory", pytest.param("s3", marks=pytest.mark.faults)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Every kind of place; S3 is for the long tests, since it is asked many times here."""
    if request.param == "directory":
        return Place(str(tmp_path / "root"), tmp_path)
    chosen = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(chosen, Place)
    return chosen


def collected(store: ArtefactStore, rule: Rule = FAR_AHEAD, **options: Any) -> list[Leftover]:
    return list(collect_store(store, rule, **options))


def damages(store: ArtefactStore) -> list[str]:
    return [checked.address for checked in verify_store(store) if checked.damage is not None]


def test_files_of_a_dead_writer_go_and_what_is_visible_stays(place: Place, store: ArtefactStore) -> None:
    publish(store)
    publish(store, "other", "deep/er/key")
    before = place.contents()
    die_before_manifest(store, run="0a1b-2c")
    (found,) = collected(store, dry_run=True)
    assert found.what == "files of a writer that published nothing, of run 0a1b-2c"
    assert found.size == 4 + 256
    assert set(before) < set(place.contents())
    assert collected(store) == [found]
    after = place.contents()
    assert {path: after[path] for path in before} == before
    assert store.leftovers("art") == []
    assert fetched(store) == files_of("old")
    assert damages(store) == []
    assert collected(store) == []
    assert publish(store, "next").version == 3, "the number of the dead writer is taken"


def test_the_leftovers_of_a_key_that_was_never_published_go_too(place: Place, store: ArtefactStore) -> None:
    die_before_manifest(store)
    assert len(collected(store)) == 1
    assert store.latest("art") is None
    with pytest.raises(InputError, match="There is no version of 'art'"):
        fetched(store)
    with pytest.raises(InputError, match="There is no version 1 of 'art'"):
        fetched(store, version=1)
    assert damages(store) == []
    assert publish(store, "first").version == 2
    assert fetched(store) == files_of("first")


def test_young_leftovers_and_those_from_the_future_stay(store: ArtefactStore) -> None:
    publish(store)
    die_before_manifest(store)
    publish(store, "new")
    assert {found.state for found in collected(store, AT_ONCE, keep=1)} == {State.YOUNG}
    assert len(store.leftovers("art")) == len(NAMES)
    assert store.versions("art") == [1, 2]


def collecting_before_manifests(
    place: Place, store: ArtefactStore, times: int, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Let a collector come so often just before a manifest is put; return the list to which it adds what it removed."""
    put, removed = store.backend.put_if_absent, list[int]()

    def collect_first(path: str, content: bytes) -> bool:
        if len(removed) < times:
            # No holds, as where a place has none, and a clock that is far ahead: only the number is left to guard it.
            other = place.open()
            monkeypatch.setattr(other.backend, "is_held", lambda folder: False)
            removed.append(len(collected(other)))
        return put(path, content)

    monkeypatch.setattr(store.backend, "put_if_absent", collect_first)
    return removed


@pytest.mark.parametrize("versions", [0, 1])
def test_a_writer_whose_number_a_collector_took_stores_its_files_again(
    place: Place, store: ArtefactStore, versions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(versions):
        publish(store, f"version {number}")
    removed = collecting_before_manifests(place, store, 2, monkeypatch)
    done = store.publish("art", writer_of("late"), kind=KIND, run="0a1b")
    assert removed == [1, 1]
    assert done.version == versions + 3
    assert fetched(store) == files_of("late")
    assert store.leftovers("art") == []
    assert damages(store) == []


def test_a_writer_that_a_collector_takes_for_dead_every_time_is_told_so_and_tears_nothing(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    removed = collecting_before_manifests(place, store, 100, monkeypatch)
    with pytest.raises(
        NumberCollectedError, match="Version 4 of 'art' was not published, since `c2tc gc` took"
    ) as told:
        store.publish("art", writer_of("late"), kind=KIND)
    assert removed == [1, 1, 1]
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    assert fetched(store) == files_of("old")
    assert damages(store) == []


def test_a_writer_that_lost_to_a_collector_and_then_to_another_writer_is_told_of_the_writer(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    collecting_before_manifests(place, store, 1, monkeypatch)
    times = 0

    def write(directory: Path) -> None:
        nonlocal times
        times += 1
        writer_of("late")(directory)
        if times == 2:
            publish(place.open(), "winner")

    with pytest.raises(LostRace) as lost:
        store.publish("art", write, kind=KIND)
    assert (lost.value.version, times) == (3, 2)
    assert fetched(store) == files_of("winner")
    assert damages(store) == []


@pytest.mark.parametrize("versions", [0, 2])
def test_work_during_which_leftovers_of_others_were_collected_is_not_lost(store: ArtefactStore, versions: int) -> None:
    for number in range(versions):
        publish(store, f"version {number}")
    began = store.newest_version("art")
    for _ in range(2):
        die_before_manifest(store)
        assert collected(store, keep=1)[0].state is State.READY
    assert store.newest_version("art") == began + 2
    # Nothing was published meanwhile, and nothing of this writer's was there to be collected.
    done = publish(store, "long work", after=began)
    assert (done.version, fetched(store)) == (began + 3, files_of("long work"))
    with pytest.raises(LostRace) as lost:
        publish(store, "another's long work", after=began)
    assert (lost.value.version, lost.value.winner) == (done.version, done.writer)
    assert damages(store) == []


def test_a_writer_that_publishes_while_leftovers_are_collected_keeps_its_files(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(store)
    held: list[tuple[str, bytes]] = []
    slow = place.open()

    def hold(path: str, content: bytes) -> bool:
        held.append((path, content))
        return True

    monkeypatch.setattr(slow.backend, "put_if_absent", hold)
    publish(slow, "slow")
    take = store.take_number

    def publish_first(key: str, number: int) -> None:
        for path, content in held:
            assert place.open().backend.put_if_absent(path, content)
        take(key, number)

    monkeypatch.setattr(store, "take_number", publish_first)
    assert collected(store) == []
    assert fetched(store) == files_of("slow")
    assert damages(store) == []


def test_what_is_held_stays_whatever_the_clock_says(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    publish(store, "first")

    def write(directory: Path) -> None:
        writer_of("second")(directory)
        (found,) = collected(store)
        assert found.state is State.HELD

    with store.fetch("art", version=1) as directory:
        store.publish("art", write, kind=KIND)
        (found,) = collected(store, keep=1)
        assert found.state is State.HELD
        assert (directory / "a.txt").read_text() == "first"
    (found,) = collected(store, keep=1)
    assert found.state is State.READY
    assert store.versions("art") == [2]


def test_only_the_newest_versions_and_pinned_ones_are_kept(place: Place, store: ArtefactStore) -> None:
    def add(text: str, baseline: str) -> Published:
        return store.publish("validated_table/t", writer_of(text), kind=KIND, settings={"baseline": baseline})

    versions = [add(f"text {number}", "new" if number > 2 else "old") for number in range(6)]
    pins = as_pins(validated_table="baseline")
    dry = collected(store, keep=2, pinned=pins, dry_run=True)
    assert store.versions("validated_table/t") == [1, 2, 3, 4, 5, 6]
    assert collected(store, keep=2, pinned=pins) == dry
    assert [found.what for found in dry] == [f"version {number}, replaced by newer ones" for number in (2, 3)]
    assert store.versions("validated_table/t") == [1, 4, 5, 6]
    for version in (1, 4, 5, 6):
        assert fetched(store, "validated_table/t", version=version) == files_of(f"text {version - 1}")
    with pytest.raises(InputError, match="There is no version 2"):
        fetched(store, "validated_table/t", version=2)
    assert not any(data_path(versions[1], name) in place.contents() for name in NAMES)
    assert damages(store) == []
    assert collected(store, keep=2, pinned=pins) == []
    assert add("next", "new").version == 7


def test_a_number_stays_taken_when_its_files_are_collected(store: ArtefactStore) -> None:
    for text in ("first", "second", "third"):
        publish(store, text)
    assert len(collected(store, keep=1)) == 2
    with pytest.raises(LostRace):
        publish(store, "zombie", after=0)
    assert fetched(store) == files_of("third")


def test_files_that_several_numbers_stand_for_go_together(store: ArtefactStore) -> None:
    publish(store, "first")
    die_before_manifest(store)
    collected(store)
    publish(store, "second")
    assert store.versions("art") == [1, 2, 3]
    assert len(collected(store, keep=1)) == 1
    assert store.versions("art") == [3]
    assert damages(store) == []


def test_a_collector_that_is_killed_is_finished_by_the_next(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("first", "second"):
        publish(store, text)
    with monkeypatch.context() as patch:
        patch.setattr(store.backend, "remove_folder", failing_from(1, print, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            collected(store, keep=1)
    assert store.versions("art") == [2]
    assert damages(store) == []
    assert len(store.leftovers("art")) == len(NAMES)
    assert len(collected(store)) == 1
    assert store.leftovers("art") == []


def test_a_key_with_a_damaged_manifest_is_left_alone(place: Place, store: ArtefactStore) -> None:
    for key in ("art", "other"):
        harmed = publish(store, "old", key)
        die_before_manifest(store, key)
    place.overwrite(manifest_path(harmed), b"{")
    found = {leftover.address: leftover.state for leftover in collected(store, keep=1)}
    assert found.pop(store.backend.address("other")) is State.UNCLEAR
    assert set(found.values()) == {State.READY}
    assert store.leftovers("art") == []
    assert sum(path.startswith("other/data/") for path in place.contents()) == 2 * len(NAMES)


def test_too_few_versions_to_keep_are_refused(store: ArtefactStore) -> None:
    with pytest.raises(InputError, match="the newest always stays"):
        collected(store, keep=0)


def test_half_a_manifest_and_an_empty_folder_go(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    publish(store)
    (tmp_path / "root" / "art" / "manifests" / ".0f.partial").write_bytes(b"{")
    (tmp_path / "root" / "art" / "data" / f"W{'0' * 32}").mkdir()
    assert sorted(found.what for found in collected(store)) == [
        "files of a writer that published nothing",
        "half a manifest",
    ]
    assert sorted(path.name for path in (tmp_path / "root" / "art").glob("*/*")) == sorted(
        ["00000001.json", "00000002.json", store.published("art", 1).writer]
    )


def test_what_is_not_the_stores_stays(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    publish(store)
    strange = [tmp_path / "root" / name for name in ("notes.txt", "art/data/notes.txt", "art/manifests/notes.txt")]
    for path in strange:
        path.write_text("mine")
    assert collected(store, keep=1) == []
    assert all(path.read_text() == "mine" for path in strange)


def test_an_upload_that_did_not_end_is_given_up(s3_place: Place) -> None:
    backend = s3_place.store.backend
    assert isinstance(backend, S3Backend)
    publish(s3_place.store)
    key = f"{backend._prefix}art/data/W{'0' * 32}/large.bin"
    begun = backend._files.call_s3("create_multipart_upload", Bucket=backend._bucket, Key=key)
    backend._files.call_s3(
        "upload_part", Bucket=backend._bucket, Key=key, UploadId=begun["UploadId"], PartNumber=1, Body=b"part"
    )
    (found,) = collected(s3_place.store)
    assert (found.address, found.what) == (f"s3://{backend._bucket}/{key}", "an upload that did not end")
    assert collected(s3_place.store) == []
    assert fetched(s3_place.store) == files_of("old")


def test_writers_readers_and_collectors_at_once_tear_nothing(tmp_path: Path) -> None:
    """A collector whose clock is far ahead runs all the time; holds and numbers keep everything whole."""
    root = tmp_path / "root"
    publish(ArtefactStore(root), "0")
    done = threading.Event()
    failures: list[BaseException] = []

    def collect() -> None:
        store = ArtefactStore(root)
        while not done.is_set():
            try:
                collected(store, keep=1)
            except Exception as error:
                failures.append(error)

    def read() -> None:
        store = ArtefactStore(root)
        while not done.is_set():
            try:
                files = fetched(store)
                assert files == files_of(files["a.txt"].decode())
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work) for work in (collect, read)]
    for thread in threads:
        thread.start()
    try:
        store, won = ArtefactStore(root), 0
        for number in range(1, 25):
            try:
                publish(store, str(number))
                won = number
            except (LostRace, NumberCollectedError, FileNotFoundError):
                continue
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert fetched(store) == files_of(str(won))
    assert damages(store) == []


def test_a_hold_ends_with_its_reader(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    folder = f"art/data/{publish(store).writer}"
    assert isinstance(store.backend, LocalBackend)
    with store.fetch("art"), store.fetch("art"):
        assert store.backend.is_held(folder)
    assert not store.backend.is_held(folder)
