"""Fixtures of the clustering tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from c2tc_pipeline.clustering import rows
from c2tc_pipeline_tests.clustering.dask_cluster import running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a Dask cluster of two workers that no test stops."""
    with running_cluster() as address:
        yield address


@pytest.fixture
def cut_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Cut classes into blocks of so many rows."""

    def cut(block_rows: int) -> None:
        monkeypatch.setattr(rows, "BLOCK_BYTES", 1)
        monkeypatch.setattr(rows, "_MIN_BLOCK_ROWS", block_rows)

    return cut


@pytest.fixture
def spill_from(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Spill per-row arrays of so many entries to files."""

    def spill(entries: int) -> None:
        monkeypatch.setattr(rows, "_SPILL_ENTRIES", entries)
        monkeypatch.setattr(rows, "_SPILL_BYTES", 4 * entries)

    return spill
