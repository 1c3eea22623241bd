"""Two runs of one partition at the same time leave one whole result, and one of them is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from c2tc_pipeline.condensation import steps
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded, tries_of
from c2tc_pipeline_tests.pipeline.processes import CONTEXT, ended, start

# One that does not wait for its turn on the device, as only one run could then be at it.
ASSET = "encoded_table"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Everything that the encoded table is made from."""
    with Rig(tmp_path) as rig:
        rig.add("people")
        for asset in ("raw_table", "validated_table", "encoder"):
            succeeded(rig.make(asset, "people"))
        yield rig


def compete(folder: Path, barrier: Barrier, outcomes: Any) -> None:
    """Make the encoded table, but publish it only when the other run is ready to do so too."""
    encode = steps.encode

    def encode_and_wait(*arguments: Any, **options: Any) -> Any:
        table = encode(*arguments, **options)
        barrier.wait(120)
        return table

    steps.encode = encode_and_wait
    with Rig(folder) as rig:
        result = rig.make(ASSET, "people")
        outcomes.put((None if result.success else failure_of(result, ASSET), tries_of(result, ASSET), result.run_id))


def overtaken_while_loading(folder: Path, loaded: Any, go_on: Any, outcomes: Any) -> None:
    """Make the encoded table, but wait after the first input was loaded until another run has come and gone."""
    read = StoreIOManager.read

    def read_and_wait(manager: StoreIOManager, *arguments: Any) -> Any:
        value = read(manager, *arguments)
        loaded.set()
        go_on.wait(120)
        return value

    setattr(StoreIOManager, "read", read_and_wait)  # noqa: B010
    with Rig(folder) as rig:
        result = rig.make(ASSET, "people")
        outcomes.put(None if result.success else failure_of(result, ASSET))


def test_a_run_that_was_overtaken_while_it_loaded_its_inputs_cannot_win(rig: Rig) -> None:
    loaded, go_on, outcomes = CONTEXT.Event(), CONTEXT.Event(), CONTEXT.SimpleQueue()
    slow = start(overtaken_while_loading, rig.folder, loaded, go_on, outcomes)
    assert loaded.wait(120)
    succeeded(rig.make(ASSET, "people"))
    winner = rig.store.latest(f"{ASSET}/people")
    go_on.set()
    assert ended(slow) == 0
    assert str(outcomes.get()).startswith(f"Another run published version 1 of '{ASSET}/people'")
    assert rig.store.latest(f"{ASSET}/people") == winner


def test_one_of_two_runs_wins_and_the_other_is_told(rig: Rig) -> None:
    barrier, outcomes = CONTEXT.Barrier(2), CONTEXT.SimpleQueue()
    runs = [start(compete, rig.folder, barrier, outcomes) for _ in range(2)]
    assert [ended(run) for run in runs] == [0, 0]
    told = {message: (tries, run) for message, tries, run in (outcomes.get() for _ in runs)}
    assert {message: tries for message, (tries, _) in told.items()} == {
        None: 1,
        f"Another run published version 1 of '{ASSET}/people' while this one was at work; its result stands and this "
        "one's is dropped.": 1,
    }
    stored = rig.store.latest(f"{ASSET}/people")
    assert stored is not None
    assert (stored.version, stored.settings["run_id"]) == (1, told[None][1])
    assert StoreIOManager(root=rig.storage).read(ASSET, "people").digest() == rig.versions(ASSET)[ASSET, "people"]
    raced, version = rig.stored_files(ASSET), rig.versions(ASSET)
    assert list(Ledger(rig.instance, rig.catalogue).pending(ASSET)) == []
    assert rig.make(ASSET, "people").success, "nothing is left behind that would stop the next run"
    assert (rig.stored_files(ASSET), rig.versions(ASSET)) == (raced, version)
