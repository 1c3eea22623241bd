"""Rows in memory and rows in a file are the same rows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.clustering.rows import HeldRows, RowSource, StoredRows, rows_of, stored_at
from c2tc_pipeline.storage.hashing import hash_array
from c2tc_pipeline_tests.storage.places import Place


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return np.random.default_rng(0).random((500, 7), dtype=np.float32)


@pytest.fixture(scope="module")
def file(numbers: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, numbers)
    return path


def mapped(file: Path, mode: Literal["r", "c"] = "r") -> np.ndarray:
    return np.load(file, mmap_mode=mode)


@given(start=st.integers(0, 499), length=st.integers(1, 500), data=st.data())
def test_any_part_of_a_file_is_that_part(
    numbers: np.ndarray, file: Path, start: int, length: int, data: st.DataObject
) -> None:
    stop = min(start + length, 500)
    source = rows_of(mapped(file)[start:stop])
    assert isinstance(source, StoredRows)
    np.testing.assert_array_equal(source.read(), numbers[start:stop])
    places = np.array(data.draw(st.lists(st.integers(0, stop - start - 1), max_size=30)), dtype=np.int64)
    np.testing.assert_array_equal(source.take(places), numbers[start:stop][places])
    middle = (stop - start) // 2
    np.testing.assert_array_equal(source.part(middle, stop - start).read(), numbers[start + middle : stop])


def test_a_view_of_a_view_is_found(numbers: np.ndarray, file: Path) -> None:
    view = np.asarray(mapped(file)[100:400])[50:60]
    source = rows_of(view)
    assert isinstance(source, StoredRows)
    np.testing.assert_array_equal(source.read(), numbers[150:160])


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(lambda file: mapped(file, mode="c"), id="pages of its own"),
        pytest.param(lambda file: mapped(file)[::2], id="with gaps"),
        pytest.param(lambda file: mapped(file)[:, :3], id="some columns"),
        pytest.param(lambda file: np.load(file), id="in memory"),
    ],
)
def test_what_is_not_a_run_of_a_file_is_held(rows: object, file: Path) -> None:
    X = rows(file)  # type: ignore[operator]
    source = rows_of(X)
    assert isinstance(source, HeldRows)
    np.testing.assert_array_equal(source.read(), X)


def test_a_file_that_is_gone_is_still_mapped(numbers: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "gone.npy", numbers)
    X = mapped(tmp_path / "gone.npy")
    (tmp_path / "gone.npy").unlink()
    np.testing.assert_array_equal(rows_of(X).read(), numbers)


def test_a_file_that_was_cut_short_is_named(numbers: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "short.npy", numbers)
    source = rows_of(mapped(tmp_path / "short.npy"))
    with open(tmp_path / "short.npy", "r+b") as stream:
        stream.truncate(5_000)
    with pytest.raises(OSError, match=r"short\.npy.*ends before its last row"):
        source.read()


def test_the_place_of_rows_makes_no_difference_to_their_hash(numbers: np.ndarray, file: Path) -> None:
    sources: list[RowSource] = [HeldRows(numbers), rows_of(mapped(file)), HeldRows(np.asfortranarray(numbers))]
    assert {source.digest() for source in sources} == {hash_array(numbers)}


def test_a_reference_is_small(file: Path) -> None:
    source = rows_of(mapped(file))
    sent = pickle.dumps(source)
    assert len(sent) < 500
    np.testing.assert_array_equal(pickle.loads(sent).read(), source.read())


def test_rows_in_s3(numbers: np.ndarray, file: Path, s3_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    s3_place.overwrite("rows.npy", file.read_bytes())
    there = stored_at(f"{s3_place.root}/rows.npy", numbers).part(100, 500).there
    np.testing.assert_array_equal(there.read(), numbers[100:])
    np.testing.assert_array_equal(there.take(np.array([7, 0, 7, 399])), numbers[[107, 100, 107, 499]])
    with pytest.raises(OSError, match="ends before its last row"):
        replace(there, rows=10_000).read()


def test_mirrored_rows_are_read_here(numbers: np.ndarray) -> None:
    rows = stored_at("nowhere/rows.npy", numbers).part(20, 60)
    np.testing.assert_array_equal(rows.read(), numbers[20:60])
    np.testing.assert_array_equal(rows.take(np.array([3])), numbers[[23]])
    assert rows.digest() == HeldRows(numbers[20:60]).digest()
