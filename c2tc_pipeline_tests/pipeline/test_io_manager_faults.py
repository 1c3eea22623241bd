"""Runs that race, break off or meet damage: what is visible stays whole, and the run that lost fails at once."""

from __future__ import annotations

import threading
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.formats import FORMATS, Format
from c2tc_pipeline_tests.pipeline.toys import TRIES, Toys, failure_of, read_word, write_word
from c2tc_pipeline_tests.storage.artefacts import KIND
from c2tc_pipeline_tests.storage.places import data_path, fetched, files_of, publish


def test_a_run_that_was_overtaken_fails_once_and_the_other_result_stands(toys: Toys) -> None:
    others = 2

    def overtake() -> None:
        if toys.attempts == 1:
            # Another table does not overtake.
            publish(toys.place.open(), "other", "word/flights")
            return
        for number in range(others):
            publish(toys.place.open(), f"other {number}", "word/adult")

    toys.meanwhile = overtake
    assert toys.make("word", "adult").success
    message = failure_of(toys.make("word", "adult"))
    assert message.startswith("Another run published version 2 of 'word/adult' while this one was at work;")
    assert toys.attempts == 2
    assert toys.place.store.newest_version("word/adult") == 1 + others
    assert toys.make("plural", "adult").success
    assert toys.got == {"plural": f"other {others - 1}"}


def test_of_two_runs_at_once_one_wins_with_a_whole_result(toys: Toys) -> None:
    barrier = threading.Barrier(2)
    results: dict[str, dg.ExecuteInProcessResult] = {}

    def wait_for_the_other() -> None:
        barrier.wait(timeout=60)

    def compete(text: str) -> None:
        with dg.DagsterInstance.ephemeral() as instance:
            mine = Toys(toys.place, instance, says=text, meanwhile=wait_for_the_other)
            results[text] = mine.make("word", "adult")

    threads = [threading.Thread(target=compete, args=(text,)) for text in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = (text for text, result in results.items() if result.success)
    (loser,) = (result for result in results.values() if not result.success)
    assert failure_of(loser).startswith("Another run published version 1 of 'word/adult'")
    assert toys.place.store.versions("word/adult") == [1]
    assert fetched(toys.place.store, "word/adult") == files_of(winner)


def test_a_write_that_breaks_off_is_tried_again_and_leaves_nothing(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    assert toys.make("motto").success
    before = toys.place.contents()

    def break_off(value: str, directory: Path) -> None:
        write_word(value, directory)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setitem(FORMATS, "motto", Format(kind=KIND, write=break_off, read=read_word))
        toys.attempts = 0
        assert not toys.make("motto").success
    assert toys.attempts == TRIES
    assert toys.place.contents() == before
    toys.says = "second"
    assert toys.make("motto").success
    assert toys.manager.read("motto") == "second"


@pytest.mark.parametrize(("takes", "tries"), [(2, 1), (3, 2)])
def test_a_run_whose_number_a_collector_took_while_it_stored_is_not_lost(
    toys: Toys, monkeypatch: pytest.MonkeyPatch, takes: int, tries: int
) -> None:
    taken: list[int] = []

    def write_and_collect(value: str, directory: Path) -> None:
        write_word(value, directory)
        if len(taken) < takes:
            store = toys.place.open()
            taken.append(store.newest_version("motto/all") + 1)
            store.take_number("motto/all", taken[-1])

    monkeypatch.setitem(FORMATS, "motto", Format(kind=KIND, write=write_and_collect, read=read_word))
    assert toys.make("motto").success
    assert len(taken) == takes
    # Stored again by the store itself; only where that does not help the step is.
    assert toys.attempts == tries
    assert toys.manager.read("motto") == toys.says


def test_a_damaged_file_stops_the_consumer_and_is_named(toys: Toys) -> None:
    for table in ("adult", "flights"):
        assert toys.make("word", table).success
    store = toys.place.store
    published = store.latest("word/adult")
    assert published is not None
    path = data_path(published, "folder/b.bin")
    content = store.backend.read_bytes(path)
    toys.place.overwrite(path, bytes([content[0] ^ 1]) + content[1:])
    for consumer in ("plural", "adult"), ("board", ""):
        message = failure_of(toys.make(*consumer))
        assert message == f"File {store.backend.address(path)!r} does not match its manifest; make the artefact again."
    assert toys.got == {}
    assert toys.make("word", "adult").success
    assert toys.make("board").success
    assert toys.got == {"board": {"adult": "first", "flights": "first"}}


def test_an_artefact_of_another_kind_is_not_taken_for_the_asset(toys: Toys) -> None:
    toys.place.store.publish("motto/all", lambda directory: (directory / "a.txt").write_text("x"), kind="else")
    assert "holds a 'else', not a 'demo'" in failure_of(toys.make("reply"))
