"""Rows in memory, in a file and in S3 are the same rows; per-row arrays in files are the same arrays."""

from __future__ import annotations

import errno
import os
import pickle
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.clustering import rows
from c2tc_pipeline.clustering.equal_rows import find_few_distinct
from c2tc_pipeline.clustering.lloyd import ClassClusters, lloyd
from c2tc_pipeline.clustering.rows import RowSource, SpillFile, cut_blocks, lookup, release_pages, row_array, unspill
from c2tc_pipeline.condensation.clusters import Clusters
from c2tc_pipeline.storage.manifest import hash_array
from c2tc_pipeline_tests.clustering.mixtures import CPU, as_bytes, mixture
from c2tc_pipeline_tests.storage.places import Place

NUMBERS = np.random.default_rng(0).random((500, 7), dtype=np.float32)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, NUMBERS)
    return path


def mapped(file: Path, mode: Literal["r", "c"] = "r") -> np.ndarray:
    return np.load(file, mmap_mode=mode)


@given(start=st.integers(0, 499), length=st.integers(1, 500), data=st.data())
def test_any_part_of_a_file_is_that_part(file: Path, start: int, length: int, data: st.DataObject) -> None:
    stop = min(start + length, 500)
    source = RowSource.of(mapped(file)[start:stop])
    assert not source.in_memory
    np.testing.assert_array_equal(source.read(), NUMBERS[start:stop])
    places = np.array(data.draw(st.lists(st.integers(0, stop - start - 1), max_size=30)), dtype=np.int64)
    np.testing.assert_array_equal(source.take(places), NUMBERS[start:stop][places])
    middle = (stop - start) // 2
    np.testing.assert_array_equal(source.part(middle, stop - start).read(), NUMBERS[start + middle : stop])


@pytest.mark.parametrize(
    ("rows", "in_memory"),
    [
        (lambda file: np.asarray(mapped(file)[100:400])[50:60], False),
        (lambda file: mapped(file, mode="c"), True),
        (lambda file: mapped(file)[::2], True),
        (lambda file: mapped(file)[:, :3], True),
        (np.load, True),
    ],
    ids=["view of a view", "copy on write", "strided", "some columns", "in memory"],
)
def test_only_a_range_of_a_file_is_read_from_it(
    rows: Callable[[Path], np.ndarray], in_memory: bool, file: Path
) -> None:
    source = RowSource.of(rows(file))
    assert source.in_memory == in_memory
    np.testing.assert_array_equal(source.read(), rows(file))
    assert (source.stored is None) == in_memory


def test_deleted_and_truncated_files(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", NUMBERS)
    X = mapped(tmp_path / "rows.npy")
    source = RowSource.of(X)
    os.truncate(tmp_path / "rows.npy", 5_000)
    with pytest.raises(OSError, match=r"rows\.npy"):
        source.read()
    (tmp_path / "rows.npy").unlink()
    assert RowSource.of(X).in_memory


def test_the_digest_does_not_depend_on_the_place_and_a_reference_to_a_file_is_small(file: Path) -> None:
    sources = [RowSource(NUMBERS), RowSource.of(mapped(file)), RowSource(np.asfortranarray(NUMBERS))]
    assert {source.digest() for source in sources} == {hash_array(NUMBERS)}
    sent = pickle.dumps(sources[1])
    assert len(sent) < 500
    np.testing.assert_array_equal(pickle.loads(sent).read(), NUMBERS)


def test_rows_in_s3(file: Path, s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    s3_place.overwrite("rows.npy", file.read_bytes())
    there = RowSource.of(NUMBERS, f"{s3_place.root}/rows.npy").part(100, 500).stored
    assert there is not None
    np.testing.assert_array_equal(there.read(), NUMBERS[100:])
    np.testing.assert_array_equal(there.take(np.array([7, 0, 7, 399])), NUMBERS[[107, 100, 107, 499]])
    with pytest.raises(OSError, match=r"rows\.npy"):
        there.part(0, 10_000).read()


def test_rows_with_a_copy_elsewhere_are_read_here() -> None:
    source = RowSource.of(NUMBERS, "nowhere/rows.npy").part(20, 60)
    np.testing.assert_array_equal(source.read(), NUMBERS[20:60])
    np.testing.assert_array_equal(source.take(np.array([3])), NUMBERS[[23]])


def clustered(X: np.ndarray) -> tuple[ClassClusters, np.ndarray]:
    """Cluster rows as a class, and join it with another class of the same rows."""
    result = lloyd(CPU, cut_blocks(RowSource.of(X)), np.array(X[:8]), max_iter=3, tol=0)
    edges = np.array([0, len(X), 2 * len(X)])
    return result, Clusters.joined(None, edges, [result, result]).labels  # type: ignore[arg-type]


def test_spilled_arrays_give_the_same_bytes(
    tmp_path: Path, cut_at: Callable[[int], None], spill_from: Callable[[int], None]
) -> None:
    cut_at(20_000)
    np.save(tmp_path / "rows.npy", mixture(60_000))
    X = mapped(tmp_path / "rows.npy")
    spill_from(2**40)
    held, held_rows = clustered(X)
    spill_from(7_000)
    spilled, spilled_rows = clustered(X)
    assert (type(held.labels), type(spilled.labels)) == (np.ndarray, np.memmap)
    assert as_bytes(spilled) == as_bytes(held)
    assert spilled_rows.tobytes() == held_rows.tobytes() == np.concatenate([held.labels, held.labels + 8]).tobytes()


def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, cut_at: Callable[[int], None], spill_from: Callable[[int], None]
) -> None:
    cut_at(20_000)
    spill_from(5_000)
    peaks = []
    for count in (100_000, 300_000):
        np.save(tmp_path / f"{count}.npy", np.tile(mixture(20_000), (count // 20_000, 1)))
        X = mapped(tmp_path / f"{count}.npy")
        clustered(X)
        tracemalloc.start()
        clustered(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # In memory the labels alone would take 16 bytes for each row.
    assert (peaks[1] - peaks[0]) / 200_000 < 0.5


def test_equal_rows_with_spilled_groups(spill_from: Callable[[int], None]) -> None:
    X = np.tile(np.arange(50, dtype=np.float32)[:, None], (400, 1))
    spill_from(1_000)
    found = find_few_distinct(RowSource(X), 100)
    assert found is not None
    assert isinstance(found.group, np.memmap)
    np.testing.assert_array_equal(X[found.first[found.group]], X)
    assert found.sizes.tolist() == [400] * 50
    table = np.arange(50, dtype=np.int32)[::-1]
    np.testing.assert_array_equal(lookup(table, found.group), table[np.asarray(found.group)])


def test_arrays_of_any_kind_are_spilled_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill_from: Callable[[int], None]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spill_from(1)
    file = SpillFile()
    values = (np.arange(6).reshape(2, 3), np.array([0.5, np.nan]), np.empty((0, 4)), np.arange(9)[::2], "word", None)
    spilled = [file.spill(values), file.spill(values[0])]
    assert not isinstance(spilled[0][0], np.ndarray)
    back = unspill(spilled[0])
    for value, found in zip(values[:4], back[:4], strict=True):
        np.testing.assert_array_equal(found, value)
    assert back[4:] == ("word", None)
    np.testing.assert_array_equal(unspill(spilled[1]), values[0])
    array = row_array(50_000)
    array += np.arange(50_000, dtype=np.int32)
    release_pages(array[10:])
    np.testing.assert_array_equal(array, np.arange(50_000))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EOPNOTSUPP], ids=["full disk", "no reservation"])
def test_disk_space_is_reserved_before_it_is_mapped(
    code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spill_from: Callable[[int], None]
) -> None:
    spill_from(100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fail(descriptor: int, offset: int, size: int) -> None:
        assert offset + size == 4_000
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(rows.os, "posix_fallocate", fail)
    if code == errno.EOPNOTSUPP:
        assert row_array(1_000).tolist() == [0] * 1_000
        return
    with pytest.raises(OSError, match="No space left") as error:
        row_array(1_000)
    assert error.value.filename == str(tmp_path)
