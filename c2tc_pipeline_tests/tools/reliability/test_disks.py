"""Disks that are full or read-only: old versions stay, and the next run after the repair succeeds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from c2tc_pipeline.storage.maintenance import Collector
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded, tries_of
from c2tc_pipeline_tests.storage.places import fetched, files_of, leftovers, publish
from c2tc_pipeline_tests.tools.reliability.kill_matrix import TABLE, damaged_in

TOO_LARGE = """
import resource, sys
from c2tc_pipeline.storage.store import ArtefactStore
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    ArtefactStore(sys.argv[1]).publish("art", lambda d: (d / "large.bin").write_bytes(bytes(10**6)), kind="demo")
except OSError as error:
    print(error.errno)
"""


@contextmanager
def mounted(folder: Path, *options: tuple[str, ...]) -> Iterator[None]:
    """Mount something on a folder, by one or more calls of ``mount``; skip where that is not allowed."""
    try:
        for each in options:
            if subprocess.run(["mount", *each, str(folder)], capture_output=True, check=False).returncode:
                pytest.skip("nothing can be mounted here")
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write below a folder: by its rights, or as root, whom rights do not stop, by a mount."""
    if os.geteuid() == 0:
        with mounted(folder, ("--bind", str(folder)), ("-o", "remount,ro,bind")):
            yield
        return
    modes = {path: path.stat().st_mode for path in (folder, *folder.rglob("*"))}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def test_a_file_that_grows_too_large_for_the_quota_leaves_nothing(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path / "root")
    publish(store)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", TOO_LARGE, str(tmp_path / "root")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "27\n"
    assert (store.versions("art"), leftovers(store)) == ([1], [])
    assert fetched(store) == files_of("old")


@pytest.mark.faults
def test_a_full_disk(made: Rig, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, ("-t", "tmpfs", "-o", "size=4096k", "tmpfs")):
        shutil.copytree(made.folder / "store", disk / "store")
        shutil.copytree(made.folder, tmp_path / "rig")
        with Rig(tmp_path / "rig", storage=str(disk / "store")) as rig:
            before = rig.stored_files()
            filler = disk / "filler"
            filler.write_bytes(bytes(shutil.disk_usage(disk).free - 8192))
            results = {asset: rig.make(asset, TABLE) for asset in ("raw_table", "encoded_table")}
            for asset, result in results.items():
                # Room may be made meanwhile.
                assert tries_of(result, asset) == 1 + rig.retries.max_retries
                failures = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
                assert failures
                assert all("No space left on device" in str(error) for error in failures)
            assert rig.stored_files() == before
            assert damaged_in(rig) == []
            # What was stored in full when there was no room left for its manifest.
            list(Collector(older_than=-60).store(rig.store))
            assert rig.stored_files() == before
            filler.unlink()
            for asset in results:
                succeeded(rig.make(asset, TABLE))
            assert rig.stored_files() == before


@pytest.mark.faults
def test_a_read_only_storage(rig: Rig) -> None:
    before = rig.stored_files()
    with read_only(rig.folder / "store"):
        result = rig.make("encoded_table", TABLE)
        assert str(rig.folder / "store") in failure_of(result, "encoded_table")
        assert tries_of(result, "encoded_table") == 1
        assert rig.stored_files() == before, "it can still be read"
    succeeded(rig.make("encoded_table", TABLE))
    assert rig.stored_files() == before
