"""Publishing: whole or not at all, and never over somebody else's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import MANIFEST_NAME, publish_directory, verify_directory
from c2tc_pipeline_tests.storage.artefacts import KIND, contents, publish, writer_of


def failing_writer(directory: Path) -> None:
    (directory / "half.txt").write_text("half")
    raise RuntimeError("the writer broke off")


def test_the_manifest_lists_every_file_and_the_settings(tmp_path: Path) -> None:
    target = publish(tmp_path / "deep" / "art")
    manifest = verify_directory(target, kind=KIND)
    assert [entry["name"] for entry in manifest["files"]] == ["a.txt", "folder/b.bin"]
    assert [entry["size"] for entry in manifest["files"]] == [3, 256]
    assert manifest["settings"] == {"text": "old"}
    assert sorted(contents(tmp_path)) == ["deep/art/a.txt", "deep/art/folder/b.bin", f"deep/art/{MANIFEST_NAME}"]


def test_a_failing_writer_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="broke off"):
        publish_directory(tmp_path / "art", failing_writer, kind=KIND)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(directory: Path) -> None:
        writer_of("x")(directory)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish_directory(tmp_path / "art", interrupted, kind=KIND)
    assert list(tmp_path.iterdir()) == []


def test_settings_that_are_not_json_leave_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        publish_directory(tmp_path / "art", writer_of("x"), kind=KIND, settings={"bad": object()})
    assert list(tmp_path.iterdir()) == []


def test_an_empty_directory_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "art").mkdir()
    verify_directory(publish(tmp_path / "art"), kind=KIND)


def test_a_published_artefact_is_not_overwritten_without_leave(tmp_path: Path) -> None:
    publish(tmp_path / "art")
    before = contents(tmp_path)
    with pytest.raises(FileExistsError):
        publish(tmp_path / "art", "new")
    assert contents(tmp_path) == before


def test_replacing_leaves_only_the_new_files(tmp_path: Path) -> None:
    def write_old(directory: Path) -> None:
        (directory / "old.txt").write_text("old")

    target = publish_directory(tmp_path / "art", write_old, kind=KIND)
    publish(target, "new", replace=True)
    assert sorted(contents(tmp_path)) == ["art/a.txt", "art/folder/b.bin", f"art/{MANIFEST_NAME}"]
    assert verify_directory(target)["settings"] == {"text": "new"}


def test_a_failing_replacement_keeps_the_old_content(tmp_path: Path) -> None:
    publish(tmp_path / "art")
    before = contents(tmp_path)
    with pytest.raises(RuntimeError, match="broke off"):
        publish_directory(tmp_path / "art", failing_writer, kind=KIND, replace=True)
    assert contents(tmp_path) == before
    assert len(list(tmp_path.iterdir())) == 1


def make_file(target: Path) -> None:
    target.write_text("mine")


def make_foreign_directory(target: Path) -> None:
    target.mkdir()
    (target / "thesis.tex").write_text("mine")


def make_link_to_empty_directory(target: Path) -> None:
    (target.parent / "elsewhere").mkdir()
    target.symlink_to(target.parent / "elsewhere")


def make_dangling_link(target: Path) -> None:
    target.symlink_to(target.parent / "nowhere")


def make_artefact_of_another_kind(target: Path) -> None:
    publish_directory(target, writer_of("mine"), kind="other")


def make_artefact_with_an_extra_file(target: Path) -> None:
    publish(target)
    (target / "folder" / "notes.txt").write_text("mine")


def make_artefact_with_an_extra_link(target: Path) -> None:
    publish(target)
    (target / "link").symlink_to(target.parent)


def make_artefact_with_a_garbage_manifest(target: Path) -> None:
    publish(target)
    (target / MANIFEST_NAME).write_text("[]")


STRANGE_TARGETS = [
    make_file,
    make_foreign_directory,
    make_link_to_empty_directory,
    make_dangling_link,
    make_artefact_of_another_kind,
    make_artefact_with_an_extra_file,
    make_artefact_with_an_extra_link,
    make_artefact_with_a_garbage_manifest,
]


@pytest.mark.parametrize("make", STRANGE_TARGETS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("replace", [False, True])
def test_what_is_not_ours_is_refused_before_any_work(
    tmp_path: Path, make: Callable[[Path], None], replace: bool
) -> None:
    target = tmp_path / "art"
    make(target)
    before = contents(tmp_path)
    started: list[Path] = []
    with pytest.raises(InputError, match="art") as caught:
        publish_directory(target, started.append, kind=KIND, replace=replace)
    assert "\n" not in str(caught.value)
    assert not started
    assert contents(tmp_path) == before


@pytest.mark.parametrize("make", STRANGE_TARGETS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("replace", [False, True])
def test_what_appears_while_we_write_is_not_overwritten(
    tmp_path: Path, make: Callable[[Path], None], replace: bool
) -> None:
    target = tmp_path / "art"

    def write(directory: Path) -> None:
        writer_of("new")(directory)
        make(target)

    with pytest.raises(InputError):
        publish_directory(target, write, kind=KIND, replace=replace)
    after = contents(tmp_path)
    assert not any(".partial" in name or ".retired" in name for name in after)
    assert b"new" not in after.values()


def test_the_current_directory_can_be_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    publish(Path())
    assert sorted(contents(tmp_path)) == ["here/a.txt", "here/folder/b.bin", f"here/{MANIFEST_NAME}"]


def test_a_target_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes\.txt' is a file"):
        publish(tmp_path / "notes.txt" / "art")
    assert contents(tmp_path) == {"notes.txt": b"mine"}


@pytest.mark.parametrize("depth", ["art", "new/folder/art"])
def test_a_folder_that_is_not_ours_to_write_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: str
) -> None:
    # By what the system answers, since root may write anywhere.
    asked: list[Path] = []

    def refuse(path: Path, mode: int) -> bool:
        asked.append(Path(path))
        return False

    monkeypatch.setattr(os, "access", refuse)
    with pytest.raises(InputError, match="may not be written to; choose another path"):
        publish_directory(tmp_path / depth, lambda folder: pytest.fail("work was done"), kind=KIND)
    assert asked == [tmp_path]
    assert list(tmp_path.iterdir()) == []
