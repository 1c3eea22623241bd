"""Artefacts: published whole or not at all, never over somebody else's files, and every changed byte is noticed."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage import (
    MANIFEST_NAME,
    DamagedArtefactError,
    publish_directory,
    read_manifest,
    verify_directory,
)

KIND = "demo"


def writer_of(text: str) -> Callable[[Path], None]:
    """Return a writer of two files, one of them in a folder."""

    def write(directory: Path) -> None:
        (directory / "a.txt").write_text(text)
        (directory / "folder").mkdir()
        (directory / "folder" / "b.bin").write_bytes(bytes(range(256)))

    return write


def failing_writer(directory: Path) -> None:
    (directory / "half.txt").write_text("half")
    raise RuntimeError("the writer broke off")


def publish(target: Path, text: str = "old", **options: Any) -> Path:
    return publish_directory(target, writer_of(text), kind=KIND, settings={"text": text}, **options)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, hidden ones included."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


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
    target = publish_directory(tmp_path / "art", lambda d: (d / "old.txt").write_text("old"), kind=KIND)
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
    started = []
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


def race(tmp_path: Path, writers: int, *, replace: bool) -> list[Exception | None]:
    """Let several writers finish writing at the same time and return what each was told."""
    barrier = threading.Barrier(writers)
    outcomes: list[Exception | None] = [None] * writers

    def run(number: int) -> None:
        def write(directory: Path) -> None:
            writer_of(str(number))(directory)
            barrier.wait(timeout=30)

        try:
            publish_directory(tmp_path / "art", write, kind=KIND, settings={"by": number}, replace=replace)
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_one_of_many_racing_writers_wins_and_the_others_are_told(tmp_path: Path) -> None:
    outcomes = race(tmp_path, 6, replace=False)
    winners = [number for number, error in enumerate(outcomes) if error is None]
    assert len(winners) == 1
    assert all(isinstance(error, FileExistsError) for error in outcomes if error is not None)
    assert verify_directory(tmp_path / "art")["settings"] == {"by": winners[0]}
    assert (tmp_path / "art" / "a.txt").read_text() == str(winners[0])
    assert [path.name for path in tmp_path.iterdir()] == ["art"]


@pytest.mark.parametrize("attempt", range(5))
def test_racing_replacements_leave_one_whole_artefact(tmp_path: Path, attempt: int) -> None:
    publish(tmp_path / "art")
    outcomes = race(tmp_path, 2, replace=True)
    assert None in outcomes
    assert all(isinstance(error, OSError | InputError) for error in outcomes if error is not None)
    by = verify_directory(tmp_path / "art")["settings"]["by"]
    assert outcomes[by] is None
    assert (tmp_path / "art" / "a.txt").read_text() == str(by)
    assert [path.name for path in tmp_path.iterdir()] == ["art"]


def rename_after(monkeypatch: pytest.MonkeyPatch, calls: int, action: Callable[[], object]) -> None:
    """Run ``action`` once, just before the rename that follows the first ``calls`` ones."""
    rename = Path.rename
    seen = []

    def watched(self: Path, target: Path) -> Path:
        seen.append(target)
        if len(seen) == calls + 1:
            action()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)


def test_a_writer_who_publishes_into_the_gap_of_a_replacement_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = publish(tmp_path / "art")
    rename_after(monkeypatch, 2, lambda: publish(target, "gap"))
    with pytest.raises(FileExistsError):
        publish(target, "late", replace=True)
    assert verify_directory(target)["settings"] == {"text": "gap"}
    assert [path.name for path in tmp_path.iterdir()] == ["art"]


def test_a_replacement_that_cannot_be_renamed_puts_the_old_one_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = publish(tmp_path / "art")
    before = contents(tmp_path)

    def no_space() -> None:
        raise OSError(28, "No space left on device")

    rename_after(monkeypatch, 2, no_space)
    with pytest.raises(OSError, match="No space"):
        publish(target, "new", replace=True)
    assert contents(tmp_path) == before


def test_a_directory_without_a_manifest_is_no_artefact(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no manifest\.json"):
        verify_directory(tmp_path)


def test_a_reader_can_insist_on_the_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'demo' artefact, not a 'table'"):
        verify_directory(publish(tmp_path / "art"), kind="table")


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("damage", [damage_missing, damage_truncated, damage_longer])
@pytest.mark.parametrize("name", ["a.txt", "folder/b.bin"])
def test_the_damaged_file_is_named(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    target = publish(tmp_path / "art")
    damage(target / name)
    with pytest.raises(DamagedArtefactError, match=name):
        verify_directory(target)


WITHOUT_KIND: dict[str, Any] = {"format": "c2tc-artefact/1", "files": []}
NAMELESS_FILE: dict[str, Any] = {"format": "c2tc-artefact/1", "kind": KIND, "files": [1], "settings": {}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "7",
        '"text"',
        "[]",
        "{}",
        "\xff",
        '{"format": NaN}',
        json.dumps(WITHOUT_KIND),
        json.dumps(NAMELESS_FILE),
    ],
)
def test_a_garbage_manifest_is_called_damaged(tmp_path: Path, text: str) -> None:
    target = publish(tmp_path / "art")
    (target / MANIFEST_NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedArtefactError, match=r"manifest\.json"):
        verify_directory(target)


@pytest.mark.parametrize("change", [{"files": []}, {"kind": "table"}, {"settings": {"text": "new"}}])
def test_an_edited_manifest_is_called_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    target = publish(tmp_path / "art")
    path = target / MANIFEST_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DamagedArtefactError, match=r"manifest\.json"):
        verify_directory(target)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), mask=st.integers(1, 255))
def test_every_changed_byte_is_noticed(data: st.DataObject, mask: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = publish_directory(
            Path(folder) / "art", writer_of("text"), kind=KIND, settings={"ratio": 0.001, "names": ["é", "b"]}
        )
        manifest = read_manifest(target)
        name = data.draw(st.sampled_from(["a.txt", "folder/b.bin", MANIFEST_NAME]))
        path = target / name
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= mask
        path.write_bytes(content)
        try:
            found = verify_directory(target, kind=KIND)
        except DamagedArtefactError as error:
            assert name in str(error)
        else:
            # White space between JSON tokens is the one thing that may change without a change of meaning.
            assert name == MANIFEST_NAME
            assert found == manifest
