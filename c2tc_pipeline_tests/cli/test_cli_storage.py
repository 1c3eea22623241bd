"""``c2tc verify`` and ``c2tc gc`` at a prompt."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import pytest

from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import publish as publish_folder
from c2tc_pipeline_tests.storage.places import Place, data_path, die_before_manifest, leftovers, publish
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import everything_below

YET = "Nothing was stored in runs/store yet.\n"


@pytest.fixture(autouse=True)
def _own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def age(folder: Path, hours: float) -> None:
    """Let everything below a folder be that old."""
    then = time.time() - 3600 * hours
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


def test_nothing_stored_is_whole(run: Run) -> None:
    done = run("verify")
    assert (done.exit_code, done.output) == (0, YET + "0 artefacts, 0 files, 0 bytes: all whole.\n")
    done = run("gc")
    assert (done.exit_code, done.output) == (0, YET + "0 leftovers, 0 bytes removed; 0 stay.\n")


@pytest.mark.parametrize("command", ["verify", "gc"])
def test_a_storage_that_was_named_has_to_be_there(
    run: Run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped path must not count as a storage in which all is whole."""
    store = ArtefactStore("runs/store")
    publish(store)
    wrong = tmp_path / "stoer"
    told = (
        f"Error: There is no storage at {wrong}; correct --storage or C2TC_STORAGE, or run the pipeline first, which "
        "makes it.\n"
    )
    done = run(command, "--storage", str(wrong))
    assert (done.exit_code, done.output) == (2, told)
    monkeypatch.setenv("C2TC_STORAGE", str(wrong))
    done = run(command)
    assert (done.exit_code, done.output) == (2, told)
    wrong.write_text("no folder")
    assert run(command).exit_code == 2
    # Named and there, though the folder is empty; and named by the name that is the default anyway.
    wrong.unlink()
    wrong.mkdir()
    done = run(command)
    assert (done.exit_code, done.output.splitlines()) == (0, done.output.splitlines()[-1:])
    monkeypatch.delenv("C2TC_STORAGE")
    assert run(command, "--storage", "runs/store").exit_code == 0
    assert run(command, "--storage", "runs/stoer").exit_code == 2
    assert run(command, "--cache", "nowhere").exit_code == 2


@pytest.mark.parametrize("command", ["verify", "gc"])
def test_a_prefix_on_s3_without_a_file_is_not_there(
    run: Run, command: str, s3_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    publish(s3_place.store)
    assert run(command, "--storage", s3_place.root).exit_code == 0
    done = run(command, "--storage", f"{s3_place.root}-stoer")
    assert done.exit_code == 2
    assert done.output.startswith(f"Error: There is no storage at {s3_place.root}-stoer; ")


def test_verify_names_what_is_damaged_in_storage_cache_results_and_named_folders(run: Run, tmp_path: Path) -> None:
    store = ArtefactStore("runs/store")
    harmed = data_path(publish(store), "a.txt")
    ContentCache(tmp_path / "cache").keep("demo", hash_json("x"), lambda path: (path / "x.txt").write_text("x"))
    (entry,) = (tmp_path / "cache").rglob("x.txt")
    publish_folder(Path("runs/results/people"))
    publish_folder(Path("elsewhere/small"))
    done = run("verify", "elsewhere")
    assert (done.exit_code, done.output) == (0, "4 artefacts, 7 files, 778 bytes: all whole.\n")
    Path("runs/store", harmed).write_text("odl")
    entry.write_text("xx")
    Path("runs/results/people/folder/b.bin").unlink()
    done = run("verify", "elsewhere")
    assert done.exit_code == 1
    assert done.output.splitlines() == [
        f"Damaged: {store.backend.address(harmed)} has another sha256",
        f"Damaged: {entry} has 2 bytes instead of 1",
        "Damaged: runs/results/people/folder/b.bin is missing",
        "4 artefacts, 7 files, 778 bytes: 3 damaged; make what they belong to again.",
    ]


def test_a_named_folder_that_lost_its_manifest_is_not_whole(run: Run) -> None:
    publish_folder(Path("small"))
    assert run("verify", "small").exit_code == 0
    Path("small/manifest.json").unlink()
    done = run("verify", "small")
    said = "Damaged: small holds no artefact, or one without its manifest.json"
    assert done.exit_code == 1
    assert said in done.output.splitlines()


def test_gc_shows_then_removes_and_leaves_what_is_young(run: Run) -> None:
    store = ArtefactStore("runs/store")
    publish(store, "first", "word/people")
    die_before_manifest(store, "word/people", run="the-run")
    dead = leftovers(store, "word/people")
    hidden = Path(f"runs/results/.people.{'0' * 32}.partial")
    hidden.mkdir(parents=True)
    age(Path("runs"), 25)
    publish(store, "second", "word/people")
    before = everything_below(Path("runs"))
    done = run("gc", "--dry-run")
    assert done.exit_code == 0
    assert "files of a writer that published nothing, of run the-run, 260 bytes\n" in done.output
    assert done.output.endswith("2 leftovers, 260 bytes would be removed; 0 stay.\n")
    assert everything_below(Path("runs")) == before
    done = run("gc", "--older-than", "26")
    assert done.output.endswith("0 leftovers, 0 bytes removed; 2 stay.\n")
    assert everything_below(Path("runs")) == before
    done = run("gc")
    assert done.output.endswith("2 leftovers, 260 bytes removed; 0 stay.\n")
    assert not any(Path("runs/store", path).exists() for path in dead)
    assert not hidden.exists()
    assert run("verify").exit_code == 0
    done = run("gc", "--keep", "1")
    assert "version 1, replaced by newer ones" in done.output
    assert "(too young)" in done.output, "its successor has not been there for a day"
    done = run("gc", "--keep", "1", "--older-than", "0")
    assert store.versions("word/people") == [2, 3]
    assert run("verify").exit_code == 0


def test_both_work_on_s3(run: Run, s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("C2TC_STORAGE", s3_place.root)
    published = publish(s3_place.store, "first", "word/people")
    die_before_manifest(s3_place.store, "word/people")
    publish(s3_place.store, "second", "word/people")
    assert run("verify").output.startswith("2 artefacts, 4 files")
    done = run("gc", "--older-than", "0", "--keep", "1")
    assert done.output.endswith("2 leftovers, 521 bytes removed; 0 stay.\n"), done.output
    assert run("verify").exit_code == 0
    (newest,) = (s3_place.store.published("word/people", number) for number in (2,))
    assert published.writer != newest.writer
    s3_place.overwrite(data_path(newest, "a.txt"), b"harmed")
    done = run("verify")
    assert done.exit_code == 1
    assert f"Damaged: {s3_place.root}/{data_path(newest, 'a.txt')} has another sha256\n" in done.output


@pytest.mark.parametrize("command", ["verify", "gc"])
def test_a_place_that_is_none_is_one_sentence(run: Run, command: str) -> None:
    done = run(command, "--storage", "ftp://x")
    assert done.exit_code == 2
    assert done.output == (
        "Error: The storage root has an unknown form; give a path, file:///path, s3://bucket/prefix or memory://name.\n"
    )
    assert run(command, "nowhere").exit_code == 2
