"""What an asset returns is what its consumers get, from every kind of place."""

# No postponed annotations here: Dagster compares that of a context with the class itself.
import logging
import multiprocessing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.formats import FORMATS, Format, digest_of_files
from c2tc_pipeline.pipeline.io_managers import OPTIONAL, REPLACES_VERSION, StoreIOManager, artefact_key
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import Place, data_path

TABLES = ("adult", "flights")
TRIES = 3


def write_word(value: str, directory: Path) -> None:
    writer_of(value)(directory)


def read_word(directory: Path) -> str:
    return (directory / "a.txt").read_text()


WORDS = Format(kind=KIND, write=write_word, read=read_word)


@dataclass
class Toys:
    """Runs toy assets in a place: producers return ``says``, and consumers keep what they got in ``got``."""

    place: Place
    instance: dg.DagsterInstance
    says: str = "first"
    got: dict[str, Any] = field(default_factory=dict)
    attempts: int = 0

    @property
    def manager(self) -> StoreIOManager:
        return StoreIOManager(root=self.place.root)

    def make(self, name: str, table: str = "") -> dg.ExecuteInProcessResult:
        """Materialise one asset in a run of its own, which may fail."""
        return dg.materialize(
            self.assets(),
            selection=[_key(name, table)],
            resources={"io_manager": self.manager},
            instance=self.instance,
            raise_on_error=False,
        )

    def assets(self) -> list[dg.AssetsDefinition]:
        words = {table: _key("word", table) for table in TABLES}
        optional = {table: dg.AssetIn(key=key, metadata={OPTIONAL: True}) for table, key in words.items()}
        return [
            *(self._producer(name) for name in ("motto", "unknown")),
            *(self._producer("word", table) for table in TABLES),
            self._consumer(_key("reply"), {"given": dg.AssetIn(key="motto")}),
            *(self._consumer(_key("plural", table), {"given": dg.AssetIn(key=key)}) for table, key in words.items()),
            self._consumer(_key("board"), optional),
        ]

    def _producer(self, name: str, table: str = "") -> dg.AssetsDefinition:
        @dg.asset(key=_key(name, table), retry_policy=dg.RetryPolicy(max_retries=TRIES - 1))
        def producer() -> dg.MaterializeResult[str]:
            self.attempts += 1
            metadata = {REPLACES_VERSION: self.place.store.newest_version(artefact_key(name, table or None))}
            return dg.MaterializeResult(value=self.says, metadata=metadata)

        return producer

    def _consumer(self, key: dg.AssetKey, inputs: dict[str, dg.AssetIn]) -> dg.AssetsDefinition:
        # The retry policy shows whether a failed loading is tried again.
        @dg.asset(key=key, ins=inputs, retry_policy=dg.RetryPolicy(max_retries=TRIES - 1))
        def consumer(**given: Any) -> dg.MaterializeResult:
            self.got[key.path[-1]] = given.get("given", given)
            return dg.MaterializeResult()

        return consumer


def _key(name: str, table: str = "") -> dg.AssetKey:
    return dg.AssetKey([table, name] if table else [name])


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    """Return what a run says that failed in its one step, without having tried again."""
    assert not result.success
    assert not [event for event in result.all_events if event.event_type_value == "STEP_UP_FOR_RETRY"]
    (failed,) = (event.step_failure_data for event in result.all_events if event.is_step_failure)
    assert failed.user_failure_data is not None
    assert failed.user_failure_data.description is not None
    return failed.user_failure_data.description


def stored_metadata(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """Return the metadata of a run's one materialisation, as plain values."""
    (event,) = result.get_asset_materialization_events()
    return {name: entry.value for name, entry in event.materialization.metadata.items()}


@pytest.fixture
def word_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the toy assets be stored, all but the one called unknown."""
    for name in ("motto", "word"):
        monkeypatch.setitem(FORMATS, name, WORDS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder: the tests of the storage cover the other kinds."""
    return Place(str(tmp_path / "root"), tmp_path)


@pytest.fixture
def toys(place: Place, instance: dg.DagsterInstance, word_formats: None, monkeypatch: pytest.MonkeyPatch) -> Toys:
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    return Toys(place, instance)


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
    assert "'word/adult'" in failure_of(toys.make("plural", "adult"))


def test_a_value_can_be_read_without_a_run(toys: Toys) -> None:
    assert toys.make("word", "adult").success
    assert toys.manager.read("word", "adult") == "first"
    definitions = dg.Definitions(assets=toys.assets(), resources={"io_manager": toys.manager})
    value = definitions.load_asset_value(["adult", "word"], instance=toys.instance)
    assert value == "first"
    with pytest.raises(InputError, match="no version of 'word/flights'"):
        toys.manager.read("word", "flights")


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
        assert store.backend.address(path) in failure_of(toys.make(*consumer))
    assert toys.got == {}
    assert toys.make("word", "adult").success
    assert toys.make("board").success
    assert toys.got == {"board": {"adult": "first", "flights": "first"}}


def test_an_asset_without_a_format_is_named(toys: Toys) -> None:
    assert "'unknown'" in failure_of(toys.make("unknown"))
    assert toys.place.contents() == {}


def test_no_value_is_not_stored(toys: Toys) -> None:
    result = dg.materialize(
        [dg.asset(name="motto", retry_policy=dg.RetryPolicy(max_retries=TRIES))(lambda: None)],
        resources={"io_manager": toys.manager},
        instance=toys.instance,
        raise_on_error=False,
    )
    assert "'motto'" in failure_of(result)
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
    assert "memory://" in error.cause.message
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
