"""Several writers and readers of one key: one writer wins each number, the others are told, all reading is whole."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.storage.store import ArtefactStore, LostRace, Published
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import NAMES, Place, fetched, files_of, publish


def together(count: int, function: Callable[[int], None]) -> None:
    """Call the function with each number below ``count`` at the same time."""
    threads = [threading.Thread(target=function, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def race(stores: list[ArtefactStore]) -> list[Published | Exception]:
    """Let each store's writer finish its files before any of them publishes, and return what each was told."""
    barrier = threading.Barrier(len(stores))
    outcomes: list[Published | Exception] = [RuntimeError("did not run")] * len(stores)

    def compete(number: int) -> None:
        def write(directory: Path) -> None:
            writer_of(str(number))(directory)
            barrier.wait(timeout=60)

        try:
            outcomes[number] = stores[number].publish("art", write, kind=KIND)
        except Exception as error:
            outcomes[number] = error

    together(len(stores), compete)
    return outcomes


def test_of_eight_writers_one_wins_and_the_others_are_told_by_whom(place: Place, store: ArtefactStore) -> None:
    stores = [place.open() for _ in range(8)]
    for version in (1, 2, 3):
        outcomes = race(stores)
        latest = store.latest("art")
        assert latest is not None
        assert store.versions("art") == list(range(1, version + 1))
        assert outcomes.count(latest) == 1
        losers = [outcome for outcome in outcomes if isinstance(outcome, LostRace)]
        assert len(losers) == 7
        assert {(error.key, error.version, error.winner) for error in losers} == {("art", version, latest.writer)}
        assert fetched(store) == files_of(str(outcomes.index(latest)))
        assert len(store.leftovers("art")) == version * 7 * len(NAMES)


def test_writers_that_try_until_they_win_each_get_a_number(place: Place, store: ArtefactStore) -> None:
    stores = [place.open() for _ in range(5)]
    wins: dict[int, str] = {}

    def persist(number: int) -> None:
        for _ in range(50):
            try:
                published = publish(stores[number], str(number))
            except LostRace:
                continue
            wins[published.version] = str(number)
            return

    together(len(stores), persist)
    assert sorted(wins) == store.versions("art") == [1, 2, 3, 4, 5]
    for version, text in wins.items():
        assert fetched(store, version=version) == files_of(text)


def test_a_lost_race_survives_a_trip_between_processes() -> None:
    error = LostRace("art", 3, "W1")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.winner) == (str(error), "W1")
    assert "Version 3 of 'art'" in str(copy)
    assert "W1" in str(copy)


@pytest.mark.parametrize("others", [1, 3])
def test_a_writer_that_was_overtaken_cannot_win(place: Place, store: ArtefactStore, others: int) -> None:
    publish(store)
    other = place.open()

    def write(directory: Path) -> None:
        writer_of("late")(directory)
        for number in range(others):
            publish(other, f"other {number}")

    with pytest.raises(LostRace, match="Version 2 of 'art'") as caught:
        store.publish("art", write, kind=KIND)
    assert fetched(store, version=2) == files_of("other 0")
    assert caught.value.version == 2
    assert store.newest_version("art") == 1 + others
    assert fetched(store) == files_of(f"other {others - 1}")


def test_work_that_began_before_publishing_can_be_overtaken_too(store: ArtefactStore) -> None:
    began = store.newest_version("art")
    winner = publish(store, "other")
    started: list[Path] = []
    with pytest.raises(LostRace) as caught:
        store.publish("art", started.append, kind=KIND, after=began)
    assert caught.value.winner == winner.writer
    assert not started
    assert publish(store, "next", after=winner.version).version == 2
    with pytest.raises(ValueError, match="does not exist yet"):
        publish(store, "far", after=7)
    assert store.versions("art") == [1, 2]


def test_a_reader_sees_whole_versions_while_they_are_replaced(place: Place) -> None:
    reader, other_reader, writer = place.open(), place.open(), place.open()
    publish(writer, "0")
    done = threading.Event()
    seen: list[dict[str, bytes]] = []
    failures: list[Exception] = []

    def read(store: ArtefactStore) -> None:
        while not done.is_set():
            try:
                seen.append(fetched(store))
            except Exception as error:
                failures.append(error)

    def write() -> None:
        try:
            for number in range(1, 7):
                publish(writer, str(number))
        finally:
            done.set()

    roles = [lambda: read(reader), lambda: read(other_reader), write]
    together(len(roles), lambda number: roles[number]())
    assert failures == []
    assert seen
    for files in seen:
        assert files == files_of(files["a.txt"].decode())
    assert fetched(reader) == files_of("6")


def test_what_is_published_while_leftovers_are_listed_is_none(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[tuple[str, bytes]] = []
    put, list_files = store.backend.put_if_absent, store.backend.list_files

    def hold(path: str, content: bytes) -> bool:
        held.append((path, content))
        return True

    def release_after_the_first_listing(folder: str) -> list[str]:
        listed = list_files(folder)
        while held:
            put(*held.pop())
        return listed

    monkeypatch.setattr(store.backend, "put_if_absent", hold)
    publish(store)
    assert len(store.leftovers("art")) == len(NAMES)
    monkeypatch.setattr(store.backend, "list_files", release_after_the_first_listing)
    assert store.leftovers("art") == []
    assert fetched(store) == files_of("old")
