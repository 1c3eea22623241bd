"""Several writers of one artefact: one wins, the others are told, and what is there is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage import artefact
from c2tc_pipeline.storage.artefact import publish_directory, verify_directory
from c2tc_pipeline_tests.storage.artefacts import KIND, contents, publish, writer_of


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


def cannot_exchange(one: Path, other: Path) -> bool:
    """Be a system that can't."""
    return False


@pytest.mark.parametrize("attempt", range(5))
@pytest.mark.parametrize("able", [True, False])
def test_racing_replacements_leave_one_whole_artefact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attempt: int, able: bool
) -> None:
    if not able:
        monkeypatch.setattr(artefact, "exchange", cannot_exchange)
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
    monkeypatch.setattr(artefact, "exchange", cannot_exchange)
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

    monkeypatch.setattr(artefact, "exchange", cannot_exchange)
    rename_after(monkeypatch, 2, no_space)
    with pytest.raises(OSError, match="No space"):
        publish(target, "new", replace=True)
    assert contents(tmp_path) == before


def test_a_stranger_that_appears_at_the_last_moment_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = publish(tmp_path / "art")
    really = artefact.exchange

    def exchange_late(one: Path, other: Path) -> bool:
        (target / "notes.txt").write_text("mine")
        return really(one, other)

    monkeypatch.setattr(artefact, "exchange", exchange_late)
    with pytest.raises(InputError, match=r"holds 'notes\.txt', which c2tc did not write"):
        publish(target, "new", replace=True)
    assert (target / "a.txt").read_text() == "old"
    assert (target / "notes.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["art"]
