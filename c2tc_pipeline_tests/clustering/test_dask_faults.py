"""A Dask cluster whose workers are too small for the data, or die in the middle of the work."""

from __future__ import annotations

from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client

from c2tc_pipeline.clustering import blocks, dask_engine
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.dask_engine import DaskEngine
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.lloyd import Clusters
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.dask_cluster import (
    Death,
    Murder,
    on_the_cluster,
    peak_memory,
    process_ids,
    running_cluster,
    separate_cluster,
)
from c2tc_pipeline_tests.clustering.mixtures import mixture
from c2tc_pipeline_tests.tools.command_line import run_process

pytestmark = pytest.mark.faults
CPU = make_kernel("cpu")
MB = 2**20


def as_bytes(result: Clusters) -> tuple[object, ...]:
    arrays = (result.centers, result.labels, result.counts, result.nearest)
    return (*(array.tobytes() for array in arrays), result.inertia, result.iterations)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "_ROWS_LEAST", 20_000)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("task", "at", "mapped"),
    [
        pytest.param("open", 2, True, id="reading"),
        pytest.param("assign", 5, True, id="at a step"),
        pytest.param("assign_around", 3, True, id="at a step among near centres"),
        pytest.param("measure", 1, True, id="at the end"),
        pytest.param("_as_here", 1, False, id="at the start"),
        pytest.param("assign", 5, False, id="with rows that it alone had"),
    ],
)
def test_a_killed_worker_leaves_no_trace_in_the_bytes(
    task: str, at: int, mapped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    k = 600 if task == "assign_around" else 30
    X = mixture(120_000, columns=12, groups=200)
    np.save(tmp_path / "rows.npy", X)
    here = ClassKMeans(X, CPU).cluster(k, tol=0, max_iter=6)
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r") if mapped else X
    monkeypatch.setattr("c2tc_pipeline.clustering.dask_engine._SENT_BYTES", 0)
    with running_cluster() as address, open_engine(address) as executor:
        before = process_ids(address)
        on_the_cluster(address, Death(task, at, tmp_path / "dead"))
        there = ClassKMeans(rows, CPU, executor).cluster(k, tol=0, max_iter=6)
        assert (tmp_path / "dead").exists()
        assert before - process_ids(address)
    assert as_bytes(there) == as_bytes(here)


def test_workers_smaller_than_the_data(tmp_path: Path) -> None:
    limit = 640 * MB
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (3_400_000, 60))
    for start in range(0, len(X), 200_000):
        X[start : start + 200_000] = mixture(200_000, columns=60, groups=40, seed=start)
    X.flush()
    assert X.nbytes > limit
    with running_cluster(memory_limit=limit) as address, open_engine(address) as executor:
        before = process_ids(address)
        there = ClassKMeans(X, CPU, executor).cluster(20, max_iter=4)
        assert process_ids(address) == before, "a worker was restarted, as is done when its memory runs out"
        assert max(peak_memory(address)) < limit
    here = ClassKMeans(X, CPU).cluster(20, max_iter=4)
    assert as_bytes(there) == as_bytes(here)
    exact = sum(
        float(((X[part] - there.centers[there.labels[part]].astype(np.float64)) ** 2).sum())
        for part in (slice(start, start + 200_000) for start in range(0, len(X), 200_000))
    )
    assert there.inertia == pytest.approx(exact, rel=1e-6)


@pytest.mark.usefixtures("small_blocks")
def test_workers_that_die_too_often(tmp_path: Path) -> None:
    X = mixture(60_000)
    np.save(tmp_path / "rows.npy", X)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        running_cluster() as address,
        open_engine(address) as executor,
    ):
        on_the_cluster(address, Death("measure", 1, tmp_path / "dead"))
        rows = ClassKMeans(np.load(tmp_path / "rows.npy", mmap_mode="r"), CPU, executor)
        with pytest.raises(InputError, match="died again and again"):
            rows.cluster(5)


def test_a_cluster_without_anyone_at_work_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_CHECK_SECONDS", 0.2)
    with (
        running_cluster(workers=0) as address,
        Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client,
        pytest.raises(ConnectionError, match="went away in the middle of the work"),
    ):
        DaskEngine(client, address).call(abs, -1)


def test_a_scheduler_killed_in_the_middle_is_one_sentence_and_a_later_run_succeeds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((4_000, 3)), columns=["a", "b", "c"]).assign(y=rng.integers(2, size=4_000))
    table.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "results" / "small"
    out.parent.mkdir()
    command = ["condense", tmp_path / "t.parquet", "--label", "y", "--rows", "20", "--no-cache", "--quiet", "--out"]
    with separate_cluster() as (address, scheduler):
        on_the_cluster(address, Murder("_as_here", scheduler))
        done = run_process(*command, out, "--engine", address)
    assert done.returncode != 0
    assert done.stderr.decode().strip().splitlines() == [
        f"Error: The Dask cluster {address!r} went away in the middle of the work; run again."
    ]
    assert list(out.parent.iterdir()) == []
    with separate_cluster() as (address, _):
        done = run_process(*command, out, "--engine", address)
    assert done.returncode == 0, done.stderr
    here = run_process(*command, tmp_path / "here")
    assert here.returncode == 0, here.stderr
    for name in ("condensed.parquet", "membership.parquet"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
