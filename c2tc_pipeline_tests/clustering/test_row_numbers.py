"""What there is for each row is in files without names: the same numbers, no memory, and no file left behind."""

from __future__ import annotations

import errno
import os
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from c2tc_pipeline.clustering import blocks, row_array
from c2tc_pipeline.clustering.rows import cut_blocks
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.equal_rows import find_few_distinct
from c2tc_pipeline.clustering.lloyd import Clusters, lloyd
from c2tc_pipeline.clustering.rows import PutAway, brought, release_pages, lookup
from c2tc_pipeline.clustering.rows import rows_of
from c2tc_pipeline.condensation.partition import _largest_first
from c2tc_pipeline.condensation.representatives import condensed_of_sorted
from c2tc_pipeline_tests.clustering.mixtures import mixture

CPU = make_kernel("cpu")
K = 8


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "_ROWS_LEAST", 20_000)


def files_from(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put numbers of rows into files from so many on."""
    monkeypatch.setattr(row_array, "_HELD_NUMBERS", numbers)
    monkeypatch.setattr(row_array, "_HELD_BYTES", 4 * numbers)


def stored(path: Path, rows: int) -> np.ndarray:
    np.save(path, np.tile(mixture(20_000), (rows // 20_000, 1)))
    return np.load(path, mmap_mode="r")


def clustered(X: np.ndarray) -> tuple[Clusters, np.ndarray]:
    """Cluster rows as a class, and join it with another one of the same rows."""
    result = _largest_first(lloyd(CPU, cut_blocks(rows_of(X)), np.array(X[:K]), max_iter=3, tol=0))
    return result, condensed_of_sorted([result, result])


@pytest.mark.usefixtures("small_blocks")
def test_the_bytes_are_those_of_numbers_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = stored(tmp_path / "rows.npy", 60_000)
    files_from(2**40, monkeypatch)
    held, held_rows = clustered(X)
    files_from(7_000, monkeypatch)
    away, away_rows = clustered(X)
    assert (type(held.labels), type(away.labels)) == (np.ndarray, np.memmap)
    assert away.labels.tobytes() == held.labels.tobytes()
    assert away_rows.tobytes() == held_rows.tobytes() == np.concatenate([held.labels, held.labels + K]).tobytes()
    assert (away.inertia, away.nearest.tolist()) == (held.inertia, held.nearest.tolist())


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("in_files", [True, False])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, in_files: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    files_from(5_000 if in_files else 2**40, monkeypatch)
    peaks = []
    for rows in (100_000, 500_000):
        X = stored(tmp_path / f"{rows}.npy", rows)
        clustered(X)
        tracemalloc.start()
        clustered(X)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    grown = (peaks[1] - peaks[0]) / 400_000
    # Held in memory there are the clusters of the class twice, and those of both classes.
    assert (grown < 0.3) if in_files else (grown > 8), grown


def test_equal_rows_are_found_with_their_numbers_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.tile(np.arange(50, dtype=np.float32)[:, None], (400, 1))
    files_from(1_000, monkeypatch)
    found = find_few_distinct(rows_of(X), 100)
    assert found is not None
    assert isinstance(found.group, np.memmap)
    np.testing.assert_array_equal(X[found.first[found.group]], X)
    assert found.sizes.tolist() == [400] * 50
    table = np.arange(50, dtype=np.int32)[::-1]
    np.testing.assert_array_equal(lookup(table, found.group), table[np.asarray(found.group)])


def test_pages_that_were_let_go_come_back_with_what_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    files_from(1_000, monkeypatch)
    numbers = row_array.row_array(50_000)
    numbers[:] = np.arange(50_000)
    release_pages(numbers[10:])
    np.testing.assert_array_equal(numbers, np.arange(50_000))
    # There is nothing to give back of what is in memory.
    release_pages(np.arange(3))


def test_arrays_of_any_kind_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    files_from(1, monkeypatch)
    file = PutAway()
    values = (np.arange(6).reshape(2, 3), np.array([0.5, np.nan]), np.empty((0, 4)), np.arange(9)[::2], "word", None)
    away = [file.put(values), file.put(values[0])]
    assert not isinstance(away[0][0], np.ndarray)
    back = brought(away[0])
    for value, found in zip(values[:4], back[:4], strict=True):
        np.testing.assert_array_equal(found, value)
    assert back[4:] == ("word", None)
    np.testing.assert_array_equal(brought(away[1]), values[0])


def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files_from(1, monkeypatch)
    numbers, away = row_array.row_array(1_000), PutAway().put(np.arange(1_000))
    assert int(brought(away)[-1] + numbers[-1]) == 999
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_before_numbers_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Later it could only be told by killing the process: a page of a mapped file has no way to fail.
    monkeypatch.setattr(row_array, "_HELD_NUMBERS", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    asked: list[int] = []

    def full(descriptor: int, offset: int, size: int) -> None:
        asked.append(offset + size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=f"No space left on device: {str(tmp_path)!r}"):
        row_array.row_array(1_000)
    assert asked == [4_000]


def test_a_file_system_that_reserves_nothing_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(row_array, "_HELD_NUMBERS", 100)
    monkeypatch.setattr(os, "posix_fallocate", unknown)
    assert row_array.row_array(1_000).tolist() == [0] * 1_000
