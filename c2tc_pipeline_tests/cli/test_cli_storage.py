"""``c2tc verify`` and ``c2tc gc``."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

import pytest

from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import publish as publish_folder
from c2tc_pipeline_tests.storage.places import data_path, die_before_manifest, leftovers, publish
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import everything_below


@pytest.fixture(autouse=True)
def _own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


def age(folder: Path, hours: float) -> None:
    """Set the modification times below a folder."""
    then = time.time() - 3600 * hours
    for path in folder.rglob("*"):
        os.utime(path, (then, then))


@pytest.mark.parametrize("command", ["verify", "gc"])
def test_storage_must_exist_if_named(run: Run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name, nothing is stored yet; a mistyped path must not count as undamaged storage."""
    assert run(command).exit_code == 0
    publish(ArtefactStore("runs/store"))
    wrong = tmp_path / "stoer"
    monkeypatch.setenv("C2TC_STORAGE", str(wrong))
    for done in (run(command), run(command, "--storage", str(wrong))):
        assert done.exit_code == 2
        assert str(wrong) in done.output
        assert "C2TC_STORAGE" in done.output
    wrong.write_text("no folder")
    assert run(command).exit_code == 2
    wrong.unlink()
    wrong.mkdir()
    assert run(command).exit_code == 0
    monkeypatch.delenv("C2TC_STORAGE")
    assert run(command, "--storage", "runs/store").exit_code == 0
    for wrong_options in (("--storage", "runs/stoer"), ("--cache", "nowhere"), ("--storage", "ftp://x"), ("nowhere",)):
        done = run(command, *wrong_options)
        assert done.exit_code == 2
        assert re.search(r"(?m)^Error: .*\.$", done.output)


def test_verify_names_damaged_files(run: Run, tmp_path: Path) -> None:
    store = ArtefactStore("runs/store")
    harmed = data_path(publish(store), "a.txt")
    ContentCache(tmp_path / "cache").keep("demo", hash_json("x"), lambda path: (path / "x.txt").write_text("x"))
    (entry,) = (tmp_path / "cache").rglob("x.txt")
    publish_folder(Path("runs/results/people"))
    publish_folder(Path("elsewhere/small"))
    done = run("verify", "elsewhere")
    assert done.exit_code == 0
    assert "4 artefacts, 7 files" in done.output
    Path("runs/store", harmed).write_text("odl")
    entry.write_text("xx")
    Path("runs/results/people/folder/b.bin").unlink()
    done = run("verify", "elsewhere")
    assert done.exit_code == 1
    damaged = (store.backend.address(harmed), str(entry), "runs/results/people/folder/b.bin")
    assert len(done.output.splitlines()) == 4
    for path, line in zip(damaged, done.output.splitlines(), strict=False):
        assert path in line
    assert "3 damaged" in done.output


def test_verify_notices_a_missing_manifest(run: Run) -> None:
    publish_folder(Path("small"))
    assert run("verify", "small").exit_code == 0
    Path("small/manifest.json").unlink()
    done = run("verify", "small")
    assert done.exit_code == 1
    assert "manifest.json" in done.output


def test_gc(run: Run) -> None:
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
    assert "the-run" in done.output
    assert "2 leftovers" in done.output
    assert everything_below(Path("runs")) == before
    done = run("gc", "--older-than", "26")
    assert "0 leftovers" in done.output
    assert everything_below(Path("runs")) == before
    done = run("gc")
    assert "2 leftovers" in done.output
    assert not any(Path("runs/store", path).exists() for path in dead)
    assert not hidden.exists()
    assert run("verify").exit_code == 0
    done = run("gc", "--keep", "1")
    assert store.versions("word/people") == [1, 2, 3], "the successor of version 1 is younger than a day"
    done = run("gc", "--keep", "1", "--older-than", "0")
    assert store.versions("word/people") == [2, 3]
    assert run("verify").exit_code == 0
