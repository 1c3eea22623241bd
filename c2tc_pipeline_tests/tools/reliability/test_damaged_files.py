"""Every stored file flipped, cut short or removed: nobody takes it for what it was, and everybody says which it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from c2tc_pipeline.pipeline.io_managers import StoreIOManager, artefact_key
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline.storage.verification import verify_store
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, tries_of
from c2tc_pipeline_tests.tools.reliability.kill_matrix import ASSETS, TABLE, partitions_of, stored_state
from c2tc_pipeline_tests.tools.reliability.moments import CACHED
from c2tc_pipeline_tests.tools.reliability.rows import saw

pytestmark = pytest.mark.faults


def flip(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


HARMS: dict[str, Callable[[bytes], bytes | None]] = {
    "flipped": flip,
    "cut": lambda content: content[:-1],
    "removed": lambda content: None,
}


def harm(path: Path, how: Callable[[bytes], bytes | None]) -> None:
    changed = how(path.read_bytes())
    path.unlink()
    if changed is not None:
        path.write_bytes(changed)


def test_every_stored_file(rig: Rig) -> None:
    refused = files = 0
    for asset in ASSETS:
        (partition,) = partitions_of(rig, asset)
        published = rig.store.latest(artefact_key(asset, partition))
        assert published is not None
        folder = Path(rig.store.address(published))
        for name in published.files:
            path, whole = folder / name, (folder / name).read_bytes()
            if not whole:
                continue
            files += 1
            for how in HARMS.values():
                harm(path, how)
                with pytest.raises(DamagedArtefactError) as caught:
                    StoreIOManager(root=rig.storage).read(asset, partition)
                assert repr(str(path)) in str(caught.value)
                (found,) = (each for each in verify_store(rig.store) if each.damage is not None)
                assert found.address == str(path)
                refused += 1
                path.write_bytes(whole)
    saw(
        "stored files flipped, cut, removed",
        injected=f"one bit, one byte or the whole of each of {files} files of 9 assets",
        expected="refused by whoever reads it, and by `c2tc verify`, with the file's name",
        seen=f"{refused} of {3 * files} refused by name, by both",
    )


def test_a_run_over_a_damaged_input(rig: Rig) -> None:
    published = rig.store.latest(f"encoded_table/{TABLE}")
    assert published is not None
    path = Path(rig.store.address(published)) / "rows.npy"
    harm(path, flip)
    cell = f"{TABLE}|0.1"
    result = rig.make("cluster_allocation", cell)
    message = failure_of(result, "cluster_allocation")
    assert message == f"File {str(path)!r} does not match its manifest; make the artefact again."
    assert tries_of(result, "cluster_allocation") == 1
    assert rig.store.versions(f"cluster_allocation/{cell}") == [1]
    saw(
        "a run over a damaged input",
        injected="one bit of `rows.npy` of `encoded_table`; `cluster_allocation` made",
        expected="the run stops, names the file, does not try again, publishes nothing",
        seen="stopped after 1 try with the file's name; 0 versions published",
    )


def test_a_source_that_was_cut_off(rig: Rig) -> None:
    before = stored_state(rig)
    source = rig.folder / f"{TABLE}.parquet"
    harm(source, lambda content: content[: len(content) // 2])
    message = failure_of(rig.make("raw_table", TABLE), "raw_table")
    assert str(source) in message
    assert stored_state(rig) == before
    saw(
        "a source cut off",
        injected="half of the Parquet file of a table; `raw_table` made",
        expected="the run stops and names the file; what was made before stays",
        seen="one sentence with the file's name; 0 files changed",
    )


def test_every_entry_of_the_cache(rig: Rig) -> None:
    before = stored_state(rig)
    entries = [path for path in (rig.folder / "cache").rglob("*") if path.is_file() and path.stat().st_size]
    assert entries
    for number, path in enumerate(entries):
        harm(path, list(HARMS.values())[number % 3])
    hits = 0
    for asset in CACHED:
        (partition,) = partitions_of(rig, asset)
        assert rig.make(asset, partition).success
        hits += bool(rig.told(asset, partition)["cache_hit"])
    assert hits == 0
    assert stored_state(rig) == before
    saw(
        "cache entries flipped, cut, removed",
        injected=f"all {len(entries)} files of the cache, in turn; the {len(CACHED)} assets that use it made",
        expected="no entry is trusted; all are made again, with the same result",
        seen="0 cache hits; the same bytes",
    )
