"""Small assets whose values are words, to be stored in any place, raced for and damaged."""

# No postponed annotations here: Dagster compares that of a context with the class itself.
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg

from c2tc_pipeline.pipeline.formats import Format
from c2tc_pipeline.pipeline.io_managers import OPTIONAL, REPLACES_VERSION, StoreIOManager, artefact_key
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import Place

TABLES = ("adult", "flights")
TRIES = 3


def write_word(value: str, directory: Path) -> None:
    writer_of(value)(directory)


def read_word(directory: Path) -> str:
    return (directory / "a.txt").read_text()


WORDS = Format(kind=KIND, write=write_word, read=read_word)


def nothing() -> None:
    """Do nothing while an asset works, the default."""


@dataclass
class Toys:
    """Runs toy assets against a place.

    ``word`` and its kin return the text ``says``; each first looks which version it replaces, if it is ``fenced``, and
    then calls ``meanwhile``. Those that consume something keep what they got in ``got``.
    """

    place: Place
    instance: dg.DagsterInstance
    says: str = "first"
    fenced: bool = True
    meanwhile: Callable[[], None] = nothing
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
            metadata = {}
            if self.fenced:
                metadata[REPLACES_VERSION] = self.place.store.newest_version(artefact_key(name, table or None))
            self.meanwhile()
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
