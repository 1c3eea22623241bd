"""Disks that are full or read-only: what was there stays, and the next run after it was mended succeeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from c2tc_pipeline.storage.leftover import Rule
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.storage.store_leftovers import collect_store
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded, tries_of
from c2tc_pipeline_tests.storage.places import fetched, files_of, publish
from c2tc_pipeline_tests.tools.reliability.disks import read_only, small_disk
from c2tc_pipeline_tests.tools.reliability.kill_matrix import TABLE, damaged_in, stored_state
from c2tc_pipeline_tests.tools.reliability.rows import saw

TOO_LARGE = """
import resource, sys
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.storage.leftover import Rule
from c2tc_pipeline.storage.store_leftovers import collect_store
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    ArtefactStore(sys.argv[1]).publish("art", lambda d: (d / "large.bin").write_bytes(bytes(10**6)), kind="demo")
except OSError as error:
    print(error.errno)
"""


def test_a_file_that_grows_too_large_for_the_quota_leaves_nothing(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    publish(store)
    done = subprocess.run(
        [sys.executable, "-c", TOO_LARGE, str(tmp_path / "root")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "27\n"
    assert (store.versions("art"), store.leftovers("art")) == ([1], [])
    assert fetched(store) == files_of("old")
    saw(
        "quota exceeded",
        injected="`RLIMIT_FSIZE` of 100 kB, a file of 1 MB",
        expected="an error, no half file, the old version intact",
        seen="errno 27, version 1 of 1 whole, 0 leftovers",
    )


@pytest.mark.faults
def test_a_full_disk(made: Rig, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4096) as disk:
        shutil.copytree(made.folder / "store", disk / "store")
        folder = tmp_path / "rig"
        shutil.copytree(made.folder, folder)
        with Rig(folder, storage=str(disk / "store")) as rig:
            before = stored_state(rig)
            filler = disk / "filler"
            free = shutil.disk_usage(disk).free
            filler.write_bytes(bytes(free - 8192))
            results = {asset: rig.make(asset, TABLE) for asset in ("raw_table", "encoded_table")}
            assert not any(result.success for result in results.values())
            tries = {tries_of(result, asset) for asset, result in results.items()}
            assert tries == {1 + rig.retries.max_retries}, "room may be made meanwhile"
            told = {
                str(event.step_failure_data.error)
                for result in results.values()
                for event in result.all_events
                if event.is_step_failure
            }
            assert all("No space left on device" in text for text in told)
            assert stored_state(rig) == before
            assert damaged_in(rig) == []
            # What was stored in full when there was no room left for its manifest.
            left = list(collect_store(rig.store, Rule(now=time.time() + 60, older_than=0)))
            assert stored_state(rig) == before
            filler.unlink()
            for asset in results:
                succeeded(rig.make(asset, TABLE))
            assert stored_state(rig) == before
    saw(
        "disk full",
        injected="storage on a tmpfs of 4 MB, filled up to 8 kB; two assets made",
        expected="a clear error after all tries, no half file, old versions intact; with room again, it succeeds",
        seen=f"`No space left on device` after {tries.pop()} tries each, 0 files changed, 0 torn; {len(left)} "
        "leftovers collected while it was full; then the same bytes",
    )


@pytest.mark.faults
def test_a_read_only_storage(rig: Rig) -> None:
    before = stored_state(rig)
    with read_only(rig.folder / "store"):
        result = rig.make("encoded_table", TABLE)
        message = failure_of(result, "encoded_table")
        assert tries_of(result, "encoded_table") == 1
        assert stored_state(rig) == before, "it can still be read"
    assert "is read-only" in message or "permission denied" in message
    assert stored_state(rig) == before
    succeeded(rig.make("encoded_table", TABLE))
    assert stored_state(rig) == before
    saw(
        "storage read-only",
        injected="storage mounted read-only (without root: no right to write)",
        expected="one sentence, no second try, everything can still be read",
        seen="one sentence after 1 try, 0 files changed; writable again, the same bytes",
    )
