"""What killed writers leave in plain folders, and that a killed replacement never takes the old artefact with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.storage import artefact, folder_leftovers
from c2tc_pipeline.storage.artefact import publish_directory, verify_directory
from c2tc_pipeline.storage.folder_leftovers import collect_folder, collect_scratch
from c2tc_pipeline.storage.holds import ScratchDirectory
from c2tc_pipeline.storage.leftover import Rule, State
from c2tc_pipeline_tests.storage.artefacts import KIND, contents, publish, writer_of
from c2tc_pipeline_tests.storage.test_races import cannot_exchange

FAR_AHEAD = Rule(now=1e11, older_than=3600)

VICTIM = """
import os, signal, sys
from pathlib import Path
from c2tc_pipeline.storage import artefact
from c2tc_pipeline_tests.storage.artefacts import publish

moment, target = sys.argv[1:]

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def exchange_and_die(one, other, really=artefact.exchange):
    assert really(one, other)
    die()

def rename_and_die(path, other, really=Path.rename):
    really(path, other)
    die()

if moment == "before the manifest":
    artefact.seal_manifest = lambda *arguments, **options: die()
if moment == "before the exchange":
    artefact.exchange = die
if moment == "after the exchange":
    artefact.exchange = exchange_and_die
if moment == "between two renames":
    artefact.exchange = lambda one, other: (setattr(Path, "rename", rename_and_die), False)[1]
publish(target, "new", replace=True)
"""


@pytest.mark.parametrize(
    ("moment", "visible", "whole_after_kill"),
    [
        ("before the manifest", "old", True),
        ("before the exchange", "old", True),
        ("after the exchange", "new", True),
        ("between two renames", "old", False),
    ],
)
def test_a_replacement_that_is_killed_loses_nothing(
    tmp_path: Path, moment: str, visible: str, whole_after_kill: bool
) -> None:
    target = publish(tmp_path / "art")
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, moment, str(target)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert target.exists() == whole_after_kill
    found = {leftover.what for leftover in collect_folder(tmp_path, FAR_AHEAD)}
    back = set() if whole_after_kill else {"the artefact that 'art' was; it is moved back"}
    assert found == {"a 'art' that was not finished", *back}
    assert verify_directory(target)["settings"] == {"text": visible}
    assert [path.name for path in tmp_path.iterdir()] == ["art"]
    publish(target, "newer", replace=True)


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    def write(directory: Path) -> None:
        writer_of("x")(directory)
        (found,) = collect_folder(tmp_path, FAR_AHEAD)
        assert found.state is State.HELD

    verify_directory(publish_directory(tmp_path / "deep" / "art", write, kind=KIND))


def test_what_its_writer_finishes_meanwhile_is_no_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [tmp_path / f".{name}.{'0' * 32}.partial" for name in ("art", "other")]
    for folder in left:
        folder.mkdir()

    def finish_and_ask(path: Path, really: Callable[[Path], bool] = folder_leftovers.is_held) -> bool:
        # The one that is looked at second becomes visible while the first is looked at.
        left[1].rename(tmp_path / "other")
        return really(path)

    monkeypatch.setattr(folder_leftovers, "is_held", finish_and_ask)
    (found,) = collect_folder(tmp_path, FAR_AHEAD)
    assert found.address == str(left[0])
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_young_leftovers_and_strange_names_stay(tmp_path: Path) -> None:
    hidden = tmp_path / f".art.{'0' * 32}.partial"
    for folder in (hidden, tmp_path / ".art.partial", tmp_path / f"art.{'0' * 32}.partial"):
        folder.mkdir()
        (folder / "a.txt").write_text("x")
    before = contents(tmp_path)
    (found,) = collect_folder(tmp_path, Rule(now=0, older_than=0))
    assert found.state is State.YOUNG
    assert contents(tmp_path) == before
    (found,) = collect_folder(tmp_path, FAR_AHEAD)
    assert str(found) == f"{hidden}: a 'art' that was not finished, 1 bytes"
    assert len(contents(tmp_path)) == 2


def test_a_damaged_artefact_is_not_moved_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefact, "exchange", cannot_exchange)
    retired = publish(tmp_path / "art").rename(tmp_path / f".art.{'0' * 32}.retired")
    (retired / "a.txt").write_text("harm")
    (found,) = collect_folder(tmp_path, FAR_AHEAD)
    assert found.what == "what 'art' was before"
    assert contents(tmp_path) == {}


def test_temporary_directories_of_ended_processes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os; from c2tc_pipeline.storage.holds import ScratchDirectory; s = ScratchDirectory(); os._exit(0)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    (dead,) = tmp_path.iterdir()
    (tmp_path / "c2tc-else").mkdir()
    with ScratchDirectory() as alive:
        (found,) = collect_scratch(FAR_AHEAD)
        assert (found.address, found.state) == (str(dead), State.READY)
        assert Path(alive).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["c2tc-else"]
