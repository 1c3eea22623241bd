"""A Dask cluster whose workers are too small for the data, or die during the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.clustering import dask_engine
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.dask_engine import DaskEngine
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.dask_cluster import (
    Kill,
    client_of,
    peak_memory,
    register,
    running_cluster,
    start_cluster,
    worker_pids,
)
from c2tc_pipeline_tests.clustering.mixtures import CPU, as_bytes, mixture
from c2tc_pipeline_tests.tools.command_line import run_process

pytestmark = pytest.mark.faults


def stored(X: np.ndarray, folder: Path) -> np.ndarray:
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


@pytest.mark.parametrize(
    ("task", "at", "mapped"),
    [
        pytest.param("open", 2, True, id="reading"),
        pytest.param("assign", 5, True, id="at a step"),
        pytest.param("assign_among", 3, True, id="at a step among neighbours"),
        pytest.param("measure", 1, True, id="at the end"),
        pytest.param("call_with_blas_threads", 1, False, id="at the start"),
        pytest.param("assign", 5, False, id="with blocks that were sent"),
    ],
)
def test_a_killed_worker_changes_no_byte(
    task: str, at: int, mapped: bool, tmp_path: Path, cut_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(20_000)
    k = 600 if task == "assign_among" else 30
    X = mixture(120_000, columns=12, groups=200)
    here = ClassKMeans(X, CPU).cluster(k, tol=0, max_iter=6)
    monkeypatch.setattr(dask_engine, "_SENT_BYTES", 0)
    with running_cluster() as address, open_engine(address) as engine:
        before = worker_pids(address)
        register(address, Kill(task, at, tmp_path / "killed"))
        there = ClassKMeans(stored(X, tmp_path) if mapped else X, CPU, engine).cluster(k, tol=0, max_iter=6)
        assert (tmp_path / "killed").exists()
        assert before - worker_pids(address)
    assert as_bytes(there) == as_bytes(here)


def test_workers_smaller_than_the_data(tmp_path: Path) -> None:
    limit = 640 * 2**20
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (3_400_000, 60))
    for start in range(0, len(X), 200_000):
        X[start : start + 200_000] = mixture(200_000, columns=60, groups=40, seed=start)
    X.flush()
    assert X.nbytes > limit
    with running_cluster(memory_limit=limit) as address, open_engine(address) as engine:
        before = worker_pids(address)
        there = ClassKMeans(X, CPU, engine).cluster(20, max_iter=4)
        assert worker_pids(address) == before, "a worker was restarted, as is done when its memory runs out"
        assert max(peak_memory(address)) < limit
    assert as_bytes(there) == as_bytes(ClassKMeans(X, CPU).cluster(20, max_iter=4))


def test_workers_that_die_too_often(tmp_path: Path, cut_at: Callable[[int], None]) -> None:
    cut_at(20_000)
    no_failures = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
    with running_cluster(environment=no_failures) as address, open_engine(address) as engine:
        register(address, Kill("measure", 1, tmp_path / "killed"))
        with pytest.raises(InputError, match="memory"):
            ClassKMeans(stored(mixture(60_000), tmp_path), CPU, engine).cluster(5)


def test_a_cluster_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_CHECK_SECONDS", 0.2)
    with running_cluster(workers=[]) as address, client_of(address) as client, pytest.raises(ConnectionError):
        DaskEngine(client, address).call(abs, -1)


def test_a_killed_scheduler_is_one_sentence_and_a_later_run_succeeds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((4_000, 3)), columns=["a", "b", "c"]).assign(y=rng.integers(2, size=4_000))
    table.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "results" / "small"
    out.parent.mkdir()
    command = ["condense", tmp_path / "t.parquet", "--label", "y", "--rows", "20", "--no-cache", "--quiet", "--out"]
    with start_cluster(workers=[""]) as cluster:
        register(cluster.address, Kill("call_with_blas_threads", 1, tmp_path / "killed", cluster.scheduler_pid))
        done = run_process(*command, out, "--engine", cluster.address)
    assert done.returncode != 0
    (line,) = done.stderr.decode().strip().splitlines()
    assert line.startswith("Error: ")
    assert cluster.address in line
    assert list(out.parent.iterdir()) == []
    with running_cluster(workers=[""]) as address:
        done = run_process(*command, out, "--engine", address)
    assert done.returncode == 0, done.stderr
    here = run_process(*command, tmp_path / "here")
    assert here.returncode == 0, here.stderr
    for name in ("condensed.parquet", "membership.parquet"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
