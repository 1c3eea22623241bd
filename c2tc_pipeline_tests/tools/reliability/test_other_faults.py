"""A database that restarts, a clock that jumps, memory that runs out, and several runs of one partition at once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from c2tc_pipeline.condensation import steps
from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.pipeline.resources import CacheResource
from c2tc_pipeline.sources import postgresql
from c2tc_pipeline_tests.pipeline.pipeline_rig import JOBS, Rig, failure_of, succeeded, tries_of
from c2tc_pipeline_tests.pipeline.processes import CONTEXT, ended, start
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, running_postgresql
from c2tc_pipeline_tests.tools.faults import Always, Memory
from c2tc_pipeline_tests.tools.reliability.kill_matrix import TABLE, damaged_in, new_rig, stored_state
from c2tc_pipeline_tests.tools.reliability.rows import saw

pytestmark = pytest.mark.faults

YEAR = 365 * 86400.0


def test_postgresql_restarts_while_a_table_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    rows = 20_000
    begun: list[int] = []
    whole = postgresql.PostgresSource.batches

    with running_postgresql() as server, new_rig(tmp_path / "rig") as rig:
        server.execute(
            f"CREATE TABLE people AS SELECT n AS id, n % 7 AS amount, 'class ' || (n % 3)::text AS outcome"
            f" FROM generate_series(1, {rows}) AS n"
        )
        rig.change(TABLE, source=server.query("SELECT * FROM people ORDER BY id"))
        succeeded(rig.make("raw_table", TABLE))
        undisturbed = stored_state(rig)

        def restarting(self: Any, *arguments: Any) -> Iterator[Any]:
            begun.append(1)
            for batch in whole(self, *arguments):
                yield batch
                if len(begun) == 1:
                    server.stop()
                    server.start()

        monkeypatch.setattr(postgresql.PostgresSource, "batches", restarting)
        result = rig.make("raw_table", TABLE)
        succeeded(result)
        assert stored_state(rig) == undisturbed
        assert damaged_in(rig) == []
    saw(
        "PostgreSQL restarted",
        injected="`pg_ctl stop -m immediate` and `start` after the first batch of a source was read",
        expected="it is read again from the start; the same table",
        seen=f"read {len(begun)} times in {tries_of(result, 'raw_table')} try of the step; the same bytes, 0 torn",
    )


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["forward", "back"])
def test_the_clock_jumps(made: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    really, calls = time.time, count()
    # Every tenth question, the clock is a year further, there and back; it ends where it began to jump to.
    monkeypatch.setattr(time, "time", lambda: really() + (jump if next(calls) // 10 % 2 else 0.0))
    with new_rig(tmp_path / "rig") as rig:
        for asset in JOBS["ingest_job"]:
            succeeded(rig.make(asset, TABLE))
        assert stored_state(rig) == stored_state(made, JOBS["ingest_job"])
        assert damaged_in(rig) == []
        assert next(calls) > 20
        asked = next(calls)
    saw(
        f"clock jumps {'forward' if jump > 0 else 'back'}",
        injected=f"`time.time` a year {'ahead' if jump > 0 else 'behind'} for every other ten questions, in an ingest",
        expected="no difference: nothing that is stored asks a clock; a collector that misjudges an age tears nothing",
        seen=f"{'over 100' if asked > 100 else asked} questions; the same bytes, 0 torn",
    )


def test_memory_runs_out_in_the_torch_step(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored_state(rig)
    rig.overrides["cache"] = CacheResource(directory=str(rig.folder / "cold"))
    loss = FactorisedAutoencoder.summed_loss

    def limit(memory: Memory) -> None:
        limited = memory.under(loss, lambda model, rows: len(rows.weight))
        monkeypatch.setattr(FactorisedAutoencoder, "summed_loss", limited)

    limit(Memory(at=Always()))
    result = rig.make("encoder", TABLE)
    assert not result.success
    tries = tries_of(result, "encoder")
    assert tries == 1 + rig.retries.max_retries
    assert stored_state(rig) == before
    assert damaged_in(rig) == []
    assert list((rig.folder / "cold").rglob("manifest.json")) == []
    limit(Memory(at={2}))
    succeeded(rig.make("encoder", TABLE))
    told = rig.told("encoder", TABLE)
    assert told["fallbacks"] == 1
    went = told["fallback_steps"][0].partition(" (")[0]
    saw(
        "out of memory in the torch step",
        injected="`torch.OutOfMemoryError` at every batch of the autoencoder; then at the second batch only",
        expected="a clear failure and no half model; then a smaller batch, told in the metadata",
        seen=f"failed after {tries} tries, 0 files changed, 0 cache entries; then {went}",
    )


def compete(folder: Path, barrier: Barrier, outcomes: Any) -> None:
    """Make the encoded table, but publish it only when all other runs are ready to do so too."""
    encode = steps.encode_table

    def encode_and_wait(*arguments: Any, **options: Any) -> Any:
        table = encode(*arguments, **options)
        barrier.wait(300)
        return table

    steps.encode_table = encode_and_wait
    with Rig(folder) as rig:
        result = rig.make("encoded_table", TABLE)
        outcomes.put(None if result.success else failure_of(result, "encoded_table"))


@pytest.mark.parametrize("runs", [2, 8])
def test_several_runs_of_one_partition(made: Rig, tmp_path: Path, runs: int) -> None:
    folder = tmp_path / "rig"
    shutil.copytree(made.folder, folder)
    barrier, outcomes = CONTEXT.Barrier(runs), CONTEXT.SimpleQueue()
    processes = [start(compete, folder, barrier, outcomes) for _ in range(runs)]
    assert [ended(process, 400) for process in processes] == [0] * runs
    told = [outcomes.get() for _ in processes]
    with Rig(folder) as rig:
        key = f"encoded_table/{TABLE}"
        assert told.count(None) == 1
        losers = [message for message in told if message is not None]
        assert all(message.startswith(f"Another run published version 2 of {key!r}") for message in losers)
        assert rig.store.versions(key) == [1, 2]
        assert stored_state(rig) == stored_state(made)
        assert damaged_in(rig) == []
    saw(
        f"{runs} runs of one partition",
        injected=f"{runs} processes that make `encoded_table` and publish at the same time",
        expected="one wins, the others are told and not tried again; the result is whole",
        seen=f"1 published version 2, {len(losers)} told; the same bytes, 0 torn",
    )
