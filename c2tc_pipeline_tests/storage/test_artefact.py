"""Published directories: whole or not at all, verified, and never over somebody else's files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import (
    MANIFEST_NAME,
    ScratchDirectory,
    discard_directory,
    publish_directory,
    read_manifest,
    verify_directory,
)
from c2tc_pipeline.storage.maintenance import Collector
from c2tc_pipeline.storage.manifest import DamagedArtefactError, refusing_damage
from c2tc_pipeline_tests.storage.artefacts import KIND, contents, publish, race, writer_of
from c2tc_pipeline_tests.storage.places import AT_ONCE, FAR_AHEAD

WRITTEN = {"a.txt", "folder/b.bin", MANIFEST_NAME}


def failing_writer(error: BaseException) -> Callable[[Path], None]:
    def write(directory: Path) -> None:
        writer_of("new")(directory)
        raise error

    return write


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("error", [RuntimeError("broke off"), KeyboardInterrupt(), None], ids=repr)
def test_a_failing_writer_changes_nothing(tmp_path: Path, error: BaseException | None, existing: bool) -> None:
    if existing:
        publish(tmp_path / "art")
    before = contents(tmp_path)
    write = failing_writer(error) if error else writer_of("new")
    # Without an error of the writer it is the settings that are no JSON.
    with pytest.raises(type(error) if error else TypeError):
        publish_directory(tmp_path / "art", write, kind=KIND, settings={"bad": object()}, replace=True)
    assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["art"] if existing else [])


def test_an_empty_directory_is_taken_over_even_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with pytest.raises(InputError):
        verify_directory(here)
    publish(Path())
    manifest = verify_directory(here, kind=KIND)
    assert [(entry["name"], entry["size"]) for entry in manifest["files"]] == [("a.txt", 3), ("folder/b.bin", 256)]
    assert manifest["settings"] == {"text": "old"}
    assert set(contents(tmp_path)) == {f"here/{name}" for name in WRITTEN}
    with pytest.raises(InputError, match="demo"):
        verify_directory(here, kind="table")


def test_a_published_artefact_is_only_replaced_on_request_and_leaves_only_new_files(tmp_path: Path) -> None:
    target = publish_directory(tmp_path / "art", lambda path: (path / "old.txt").write_text("old"), kind=KIND)
    before = contents(tmp_path)
    with pytest.raises(FileExistsError):
        publish(target, "new")
    assert contents(tmp_path) == before
    publish(target, "new", replace=True)
    assert set(contents(tmp_path)) == {f"art/{name}" for name in WRITTEN}
    assert verify_directory(target)["settings"] == {"text": "new"}


def artefact_and(change: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda target: change(publish(target))


def foreign_directory(target: Path) -> None:
    target.mkdir()
    (target / "thesis.tex").write_text("mine")


STRANGE_TARGETS: dict[str, Callable[[Path], object]] = {
    "file": lambda target: target.write_text("mine"),
    "foreign directory": foreign_directory,
    "link to a directory": lambda target: target.symlink_to(target.parent),
    "dangling link": lambda target: target.symlink_to(target.parent / "nowhere"),
    "another kind": lambda target: publish_directory(target, writer_of("mine"), kind="other"),
    "extra file": artefact_and(lambda target: (target / "folder" / "notes.txt").write_text("mine")),
    "extra link": artefact_and(lambda target: (target / "link").symlink_to(target.parent)),
    "garbage manifest": artefact_and(lambda target: (target / MANIFEST_NAME).write_text("[]")),
}


@pytest.mark.parametrize("make", STRANGE_TARGETS.values(), ids=STRANGE_TARGETS)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("before", [False, True], ids=["while it is written", "before"])
def test_what_is_not_ours_is_never_overwritten(
    tmp_path: Path, make: Callable[[Path], object], replace: bool, before: bool
) -> None:
    target, started = tmp_path / "art", []

    def write(directory: Path) -> None:
        started.append(directory)
        writer_of("new")(directory)
        make(target)

    if before:
        make(target)
    with pytest.raises(InputError, match="art"):
        publish_directory(target, write, kind=KIND, replace=replace)
    assert bool(started) != before, "what is there before is refused before any work"
    after = contents(tmp_path)
    assert b"new" not in after.values()
    assert not any(".partial" in name or ".retired" in name for name in after)


def test_a_file_that_is_added_at_the_last_moment_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = publish(tmp_path / "art")
    before_rename(monkeypatch, 1, lambda: (target / "notes.txt").write_text("mine"))
    with pytest.raises(InputError, match=r"art' holds 'notes\.txt'"):
        publish(target, "new", replace=True)
    assert (target / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["art"]


@pytest.mark.parametrize("depth", ["art", "new/folder/art", "notes.txt/art"])
def test_a_target_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    # By what the system answers, since root may write anywhere.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError):
        publish_directory(tmp_path / depth, lambda folder: pytest.fail("work was done"), kind=KIND)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("replace", [False, True])
def test_racing_writers_leave_one_whole_artefact(tmp_path: Path, replace: bool) -> None:
    if replace:
        publish(tmp_path / "art")

    def publish_with(number: int, write: Callable[[Path], None]) -> None:
        publish_directory(tmp_path / "art", write, kind=KIND, settings={"by": number}, replace=replace)

    outcomes = race([partial(publish_with, number) for number in range(6)])
    by = verify_directory(tmp_path / "art")["settings"]["by"]
    assert outcomes[by] is None
    assert (tmp_path / "art" / "a.txt").read_text() == str(by)
    assert outcomes.count(None) == (6 if replace else 1)
    assert all(isinstance(error, FileExistsError) for error in outcomes if error is not None)
    assert [path.name for path in tmp_path.iterdir()] == ["art"]


def before_rename(monkeypatch: pytest.MonkeyPatch, number: int, action: Callable[[], object]) -> None:
    """Run an action once, just before the rename of this number, the first being 1."""
    rename, seen = Path.rename, []

    def watched(self: Path, target: Path) -> Path:
        seen.append(target)
        if len(seen) == number:
            action()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)


def test_a_replacement_that_cannot_be_renamed_puts_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = publish(tmp_path / "art")
    before = contents(tmp_path)

    def no_space() -> None:
        raise OSError(28, "No space left on device")

    before_rename(monkeypatch, 2, no_space)
    with pytest.raises(OSError, match="No space"):
        publish(target, "new", replace=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("changed", ["replaced", "removed"])
def test_only_the_artefact_that_was_read_is_replaced(tmp_path: Path, changed: str) -> None:
    target = publish(tmp_path / "art")
    read = read_manifest(target)
    publish(target, "other", replace=True) if changed == "replaced" else discard_directory(target)
    with pytest.raises(InputError, match="meanwhile"):
        publish(target, "new", replace=True, instead_of=read)
    assert [path.name for path in tmp_path.iterdir()] == (["art"] if changed == "replaced" else [])


VICTIM = """
import os, signal, sys
from pathlib import Path
from c2tc_pipeline.storage import manifest
from c2tc_pipeline_tests.storage.artefacts import publish

moment, target = sys.argv[1:]
renames = []

def rename(path, other, really=Path.rename):
    renames.append(path)
    # The first rename moves the old one aside, the second makes the new one visible.
    if moment == f"before rename {len(renames)}":
        os.kill(os.getpid(), signal.SIGKILL)
    return really(path, other)

Path.rename = rename
if moment == "before the manifest":
    manifest.seal_manifest = lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)
publish(target, "new", replace=True)
"""


@pytest.fixture(scope="module", params=["before the manifest", "before rename 1", "before rename 2"])
def killed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A moment, and a folder in which a replacement was killed then."""
    folder = tmp_path_factory.mktemp("killed")
    target = publish(folder / "art")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", VICTIM, request.param, str(target)]
    assert subprocess.run(command, env=environment, timeout=60, check=False).returncode == -signal.SIGKILL
    return request.param, folder


@pytest.mark.parametrize("next_user", ["reader", "collector", "writer"])
def test_a_killed_replacement_loses_nothing(tmp_path: Path, killed: tuple[str, Path], next_user: str) -> None:
    moment, left = killed
    folder = shutil.copytree(left, tmp_path / "copy")
    target = folder / "art"
    assert target.exists() == (moment != "before rename 2")
    if next_user == "writer":
        with pytest.raises(FileExistsError):
            publish(target, "newer")
    found = list(Collector(**FAR_AHEAD).folder(folder)) if next_user == "collector" else []
    assert len(found) == (1 + (moment == "before rename 2") if next_user == "collector" else 0)
    assert verify_directory(target)["settings"] == {"text": "old"}
    list(Collector(**FAR_AHEAD).folder(folder))
    assert [path.name for path in folder.iterdir()] == ["art"]


def test_only_old_leftovers_with_their_names_are_collected(tmp_path: Path) -> None:
    hidden = tmp_path / f".art.{'0' * 32}.partial"
    for folder in (hidden, tmp_path / ".art.partial", tmp_path / f"art.{'0' * 32}.partial"):
        folder.mkdir()
        (folder / "a.txt").write_text("x")
    before = contents(tmp_path)
    (found,) = Collector(**AT_ONCE).folder(tmp_path)
    assert found.stays
    assert contents(tmp_path) == before
    (found,) = Collector(**FAR_AHEAD).folder(tmp_path)
    assert (found.address, found.size, found.stays) == (str(hidden), 1, "")
    assert len(contents(tmp_path)) == 2


def test_a_damaged_artefact_is_not_restored(tmp_path: Path) -> None:
    retired = publish(tmp_path / "art").rename(tmp_path / f".art.{'0' * 32}.retired")
    (retired / "a.txt").write_text("harm")
    with pytest.raises(InputError):
        verify_directory(tmp_path / "art")
    assert len(list(Collector(**FAR_AHEAD).folder(tmp_path))) == 1
    assert contents(tmp_path) == {}


def test_temporary_directories_of_ended_processes_are_collected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "import os; from c2tc_pipeline.storage.artefact import ScratchDirectory; s = ScratchDirectory(); os._exit(0)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    (dead,) = tmp_path.iterdir()
    for name in ("c2tc-else", "c2tc-scratch-1-init"):
        (tmp_path / name).mkdir()
    with ScratchDirectory() as alive:
        (found,) = Collector(**FAR_AHEAD).scratch()
        assert (found.address, found.stays) == (str(dead), "")
        assert Path(alive).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"c2tc-else", "c2tc-scratch-1-init"}


GARBAGE = ["", "{", "null", "7", "[]", "{}", "\xff", '{"format": NaN}', '{"format": "c2tc-artefact/1"}', None]
EDITS: list[dict[str, Any]] = [{"files": []}, {"files": [1]}, {"kind": "table"}, {"settings": {"text": "new"}}]


@pytest.mark.parametrize("change", [*GARBAGE, *EDITS], ids=repr)
def test_a_garbage_or_edited_manifest_is_called_damaged(tmp_path: Path, change: str | dict[str, Any] | None) -> None:
    path = publish(tmp_path / "art") / (MANIFEST_NAME if change is not None else "a.txt")
    if change is None:
        path.unlink()
    else:
        text = change if isinstance(change, str) else json.dumps({**json.loads(path.read_text()), **change})
        path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedArtefactError, match=path.name):
        verify_directory(path.parent)


def means_the_same(content: bytes, original: bytes) -> bool:
    """Tell whether only white space between JSON tokens changed."""
    try:
        return bool(json.loads(content) == json.loads(original))
    except ValueError:
        return False


@settings(deadline=None, max_examples=40)
@given(data=st.data(), mask=st.integers(0, 255))
def test_every_changed_byte_is_noticed(data: st.DataObject, mask: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        recorded = {"ratio": 0.001, "names": ["é", "b"]}
        target = publish_directory(Path(folder) / "art", writer_of("text"), kind=KIND, settings=recorded)
        manifest = read_manifest(target)
        name = data.draw(st.sampled_from(sorted(WRITTEN)))
        path = target / name
        original = path.read_bytes()
        content = bytearray(original)
        place = data.draw(st.integers(0, len(content) - 1))
        # A byte is changed, or the file ends there.
        if mask:
            content[place] ^= mask
        else:
            del content[place:]
        path.write_bytes(content)
        if name == MANIFEST_NAME and means_the_same(bytes(content), original):
            assert verify_directory(target, kind=KIND) == manifest
        else:
            with pytest.raises(DamagedArtefactError, match=name):
                verify_directory(target, kind=KIND)


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyError("label"), DamagedArtefactError),
        (OSError("no number"), DamagedArtefactError),
        (OSError(5, "Input/output error"), OSError),
        (MemoryError(), InputError),
        (InputError("said already"), InputError),
    ],
    ids=repr,
)
def test_errors_of_readers_become_one_sentence_but_those_of_disks_stay(
    error: Exception, raised: type[Exception]
) -> None:
    with pytest.raises(raised) as caught, refusing_damage("small"):
        raise error
    assert type(caught.value) is raised
