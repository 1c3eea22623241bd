"""A writer that fails, is interrupted or is killed changes nothing that a reader can see."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import NAMES, Place, fail_second_file, failing_from, fetched, files_of, publish


def test_a_writer_that_raises_leaves_nothing(place: Place, store: ArtefactStore) -> None:
    publish(store)
    before = place.contents()

    def write(directory: Path) -> None:
        writer_of("new")(directory)
        raise RuntimeError("broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        store.publish("art", write, kind=KIND)
    assert place.contents() == before


def test_settings_that_are_no_json_leave_nothing(place: Place, store: ArtefactStore) -> None:
    with pytest.raises(TypeError):
        store.publish("art", writer_of("new"), kind=KIND, settings={"path": Path("x")})
    assert place.contents() == {}


def test_a_file_that_cannot_be_stored_keeps_the_old_version(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = publish(store)
    before = place.contents()
    with monkeypatch.context() as patch:
        fail_second_file(store, patch)
        with pytest.raises(OSError, match="No space"):
            publish(store, "new")
    after = place.contents()
    assert {path: after[path] for path in before} == before
    assert sorted(set(after) - set(before)) == store.leftovers("art")
    assert store.latest("art") == published
    assert publish(store, "newer").version == 2
    assert fetched(store) == files_of("newer")


def test_an_interruption_before_the_manifest_leaves_only_leftovers(
    store: ArtefactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = publish(store)
    with monkeypatch.context() as patch:
        patch.setattr(store.backend, "put_if_absent", failing_from(1, print, KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            publish(store, "new")
    assert store.latest("art") == published
    assert fetched(store) == files_of("old")
    assert [path.partition("/W")[2][33:] for path in store.leftovers("art")] == list(NAMES)
    assert publish(store, "newer").version == 2
    assert len(store.leftovers("art")) == len(NAMES)


VICTIM = """
import os, signal, sys
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import writer_of

root, moment = sys.argv[1:]
store = ArtefactStore(root)

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def write(directory):
    writer_of("new")(directory)
    if moment == "while writing":
        die()

def upload(path, source, really=getattr(store.backend, "write_file", None)):
    really(path, source)
    die()

if moment == "while uploading":
    store.backend.write_file = upload
if moment == "before the manifest":
    store.backend.put_if_absent = die
store.publish("art", write, kind="demo")
"""


@pytest.mark.parametrize("moment", ["while writing", "while uploading", "before the manifest"])
def test_a_killed_writer_changes_nothing_that_is_visible(place: Place, store: ArtefactStore, moment: str) -> None:
    if place.in_memory:
        pytest.skip("memory ends with the process")
    if moment == "while uploading" and not place.environment:
        pytest.skip("a directory is filled in place")
    published = publish(store)
    before = place.contents()
    environment = {**os.environ, **place.environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    # Its temporary directory outlives the victim, so it gets one that pytest clears away.
    environment["TMPDIR"] = str(place.scratch)
    done = subprocess.run([sys.executable, "-c", VICTIM, place.root, moment], env=environment, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    after = place.contents()
    assert {path: after[path] for path in before} == before
    assert sorted(set(after) - set(before)) == store.leftovers("art")
    assert store.latest("art") == published
    assert fetched(store) == files_of("old")
    assert publish(store, "newer").version == 2
    assert fetched(store) == files_of("newer")
