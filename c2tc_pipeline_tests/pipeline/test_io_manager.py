"""What an asset returns is what its consumers get, from every kind of place."""

from __future__ import annotations

import logging
import multiprocessing
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.formats import digest_of_files
from c2tc_pipeline_tests.pipeline.toys import TRIES, Toys, failure_of, stored_metadata
from c2tc_pipeline_tests.storage.artefacts import KIND
from c2tc_pipeline_tests.storage.places import Place


def test_each_materialisation_is_a_new_version_and_a_consumer_gets_the_newest(toys: Toys) -> None:
    for number, text in enumerate(("first", "second", "second"), start=1):
        toys.says = text
        run = toys.make("motto")
        metadata = stored_metadata(run)
        assert (metadata["version"], metadata["replaces_version"]) == (number, number - 1)
    assert toys.make("reply").success
    assert toys.got == {"reply": "second"}
    assert metadata["bytes"] == len("second") + 256
    stored = {f"{toys.place.store.backend.root}/{path}" for path in toys.place.contents()}
    assert {f"{metadata['path']}/a.txt", f"{metadata['path']}/folder/b.bin"} < stored
    published = toys.place.store.latest("motto/all")
    assert published is not None
    assert (published.kind, published.settings["partition"], published.settings["run_id"]) == (KIND, None, run.run_id)


def test_tables_are_kept_apart(toys: Toys) -> None:
    for toys.says in ("adult", "flights"):
        assert toys.make("word", toys.says).success
    assert toys.make("plural", "adult").success
    assert toys.got == {"plural": "adult"}
    published = toys.place.store.latest("word/adult")
    assert published is not None
    assert published.settings["partition"] == "adult"


def test_an_optional_input_that_was_never_made_is_none(toys: Toys) -> None:
    assert toys.make("board").success
    assert toys.got == {"board": {"adult": None, "flights": None}}
    assert toys.make("word", "flights").success
    board = toys.make("board")
    assert toys.got == {"board": {"adult": None, "flights": "first"}}
    assert not [entry for entry in toys.instance.all_logs(board.run_id) if int(entry.level) > logging.INFO]


def test_an_input_that_was_never_made_is_asked_for(toys: Toys) -> None:
    assert toys.make("word", "flights").success
    message = failure_of(toys.make("plural", "adult"))
    assert message.startswith("There is no version of 'word/adult' in ")
    assert message.endswith("; make it first.")


def test_a_value_can_be_read_without_a_run(toys: Toys) -> None:
    assert toys.make("word", "adult").success
    assert toys.manager.read("word", "adult") == "first"
    definitions = dg.Definitions(assets=toys.assets(), resources={"io_manager": toys.manager})
    value = definitions.load_asset_value(["adult", "word"], instance=toys.instance)
    assert value == "first"
    with pytest.raises(InputError, match="no version of 'word/flights'"):
        toys.manager.read("word", "flights")


def test_an_asset_without_a_format_is_named(toys: Toys) -> None:
    assert failure_of(toys.make("unknown")).startswith("Asset 'unknown' has no format to be stored in")
    assert toys.place.contents() == {}


def test_no_value_is_not_stored(toys: Toys) -> None:
    result = dg.materialize(
        [dg.asset(name="motto", retry_policy=dg.RetryPolicy(max_retries=TRIES))(lambda: None)],
        resources={"io_manager": toys.manager},
        instance=toys.instance,
        raise_on_error=False,
    )
    assert failure_of(result).startswith("Asset 'motto' has no value to store")
    assert toys.place.contents() == {}


def test_memory_that_ends_with_the_step_is_refused_before_the_work(
    memory_place: Place, instance: dg.DagsterInstance, word_formats: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys = Toys(memory_place, instance)
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    (failed,) = (event for event in toys.make("motto").all_events if event.is_run_failure)
    error = failed.job_failure_data.error
    assert error is not None
    assert error.cause is not None
    assert "The storage root memory:// ends with the process" in error.cause.message
    assert toys.attempts == 0


def test_a_digest_counts_names_and_contents_but_no_timings(tmp_path: Path) -> None:
    def digest(**files: str) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name, text in files.items():
            path = folder / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return digest_of_files(folder)

    base = digest(a_txt="1", sub__b_txt="2")
    assert digest(sub__b_txt="2", a_txt="1", timings_json="3", sub__timings_json="4") == base
    others = [digest(a_txt="1"), digest(a_txt="2", sub__b_txt="1"), digest(a_txt="1", b_txt="2"), digest()]
    assert len({base, *others}) == 5
