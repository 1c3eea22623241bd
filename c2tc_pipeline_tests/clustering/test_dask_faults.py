"""A Dask cluster whose workers are too small for the data, or die during the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from c2tc_pipeline.cli.main import main
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


# Tasks at which a worker is killed, the how manieth of them, and the number of clusters.
KILLS = {
    "stored": [("open", 1, 30), ("assign", 3, 30), ("assign_among", 2, 600), ("measure", 1, 30)],
    "sent": [("call_with_blas_threads", 1, 30), ("assign", 3, 30)],
}


@pytest.mark.parametrize("rows", KILLS)
def test_a_killed_worker_changes_no_byte(
    rows: str, tmp_path: Path, cut_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(10_000)
    X = mixture(60_000, columns=8, groups=200)
    here = {k: as_bytes(ClassKMeans(X, CPU).cluster(k, tol=0, max_iter=6)) for _, _, k in KILLS[rows]}
    monkeypatch.setattr(dask_engine, "_SENT_BYTES", 0)
    given = stored(X, tmp_path) if rows == "stored" else X
    with running_cluster(workers=[""] * (len(KILLS[rows]) + 1)) as address, open_engine(address) as engine:
        for number, (task, at, k) in enumerate(KILLS[rows]):
            before, mark = worker_pids(address), tmp_path / f"{number}"
            register(address, Kill(task, at, mark))
            there = ClassKMeans(given, CPU, engine).cluster(k, tol=0, max_iter=6)
            assert mark.exists()
            assert before - worker_pids(address)
            assert as_bytes(there) == here[k]


def test_workers_smaller_than_the_data(tmp_path: Path) -> None:
    limit = 640 * 2**20
    X = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.float32, (2_900_000, 60))
    part = mixture(100_000, columns=60, groups=40)
    for start in range(0, len(X), len(part)):
        # No part equals another.
        X[start : start + len(part)] = part * np.float32(1 - start / 1e8)
    X.flush()
    assert X.nbytes > limit
    with running_cluster(memory_limit=limit) as address, open_engine(address) as engine:
        before = worker_pids(address)
        there = ClassKMeans(X, CPU, engine).cluster(8, max_iter=2)
        assert worker_pids(address) == before, "a worker was restarted, as is done when its memory runs out"
        assert max(peak_memory(address)) < limit
    assert as_bytes(there) == as_bytes(ClassKMeans(X, CPU).cluster(8, max_iter=2))


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


def test_a_killed_scheduler_is_one_sentence_and_a_later_run_succeeds(cluster: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((4_000, 3)), columns=["a", "b", "c"]).assign(y=rng.integers(2, size=4_000))
    table.to_parquet(tmp_path / "t.parquet")
    out = tmp_path / "results" / "small"
    out.parent.mkdir()
    command = ["condense", tmp_path / "t.parquet", "--label", "y", "--rows", "20", "--no-cache", "--quiet", "--out"]
    with start_cluster(workers=[""]) as short:
        register(short.address, Kill("call_with_blas_threads", 1, tmp_path / "killed", short.scheduler_pid))
        done = run_process(*command, out, "--engine", short.address)
    assert done.returncode != 0
    (line,) = done.stderr.decode().strip().splitlines()
    assert line.startswith("Error: ")
    assert short.address in line
    assert list(out.parent.iterdir()) == []
    for target, engine in ((out, cluster), (tmp_path / "here", "local")):
        later = CliRunner().invoke(main, [*map(str, command), str(target), "--engine", engine])
        assert later.exit_code == 0, later.output
    for name in ("condensed.parquet", "membership.parquet"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
