"""Stored files that are flipped, cut or removed, a source that is cut off, and a clock that jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from c2tc_pipeline.pipeline.io_managers import StoreIOManager, artefact_key
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline_tests.pipeline.pipeline_rig import PARTS, Rig, failure_of, scopes_of, succeeded
from c2tc_pipeline_tests.storage.places import damages
from c2tc_pipeline_tests.tools.reliability import kill_matrix as matrix

pytestmark = pytest.mark.faults

YEAR = 365 * 86400.0


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


HARMS: list[Callable[[bytes], bytes | None]] = [flip, lambda content: content[:-1], lambda content: None]


def test_every_stored_file_is_refused_by_name_once_it_is_damaged(rig: Rig) -> None:
    for asset in matrix.ASSETS:
        (partition,) = scopes_of(asset, rig.catalogue)
        published = rig.store.latest(artefact_key(asset, partition))
        assert published is not None
        folder = Path(rig.store.address(published))
        for path in filter(lambda path: path.stat().st_size, (folder / name for name in published.files)):
            whole = path.read_bytes()
            for how in HARMS:
                changed = how(whole)
                path.unlink() if changed is None else path.write_bytes(changed)
                with pytest.raises(DamagedArtefactError) as caught:
                    StoreIOManager(root=rig.storage).read(asset, partition)
                assert repr(str(path)) in str(caught.value)
                assert [*damages(rig.store)] == [str(path)]
                path.write_bytes(whole)


def test_a_source_that_was_cut_off_is_named(rig: Rig) -> None:
    before = rig.stored_files()
    source = rig.folder / f"{matrix.TABLE}.parquet"
    source.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
    assert str(source) in failure_of(rig.make("raw_table", matrix.TABLE), "raw_table")
    assert rig.stored_files() == before


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["forward", "back"])
def test_a_clock_that_jumps_changes_nothing(
    made: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    really, calls = time.time, count()
    # A year further for every other ten questions.
    monkeypatch.setattr(time, "time", lambda: really() + (jump if next(calls) // 10 % 2 else 0.0))
    with matrix.new_rig(tmp_path / "rig") as rig:
        for asset in PARTS["ingest"]:
            succeeded(rig.make(asset, matrix.TABLE))
        assert rig.stored_files() == made.stored_files(*PARTS["ingest"])
        assert matrix.damaged_in(rig) == []
        assert next(calls) > 20
