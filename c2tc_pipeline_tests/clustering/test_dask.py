"""A Dask cluster gives the same bytes as the local engine, and clear errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from c2tc_pipeline.clustering import dask_engine, rows
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.dask_cluster import Seen, register, running_cluster
from c2tc_pipeline_tests.clustering.mixtures import CPU, as_bytes, mixture

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, np.vstack([mixture(10_000), np.round(mixture(8_000) * 3) / 3]))
    return path


@pytest.mark.parametrize("mapped", [True, False], ids=["stored", "in memory"])
@pytest.mark.parametrize("sent_bytes", [0, 2**30], ids=["scattered", "sent"])
def test_the_same_bytes_as_the_local_engine(
    cluster: str,
    file: Path,
    mapped: bool,
    sent_bytes: int,
    cut_at: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Workers get these blocks, but would cut larger ones themselves.
    cut_at(3_000)
    monkeypatch.setattr(dask_engine, "_SENT_BYTES", sent_bytes)
    X = np.load(file, mmap_mode="r" if mapped else None)
    # Several blocks, one block, merged rows, and more clusters than distinct rows.
    wanted = [(X[:10_000], 20), (X[:2_000], 7), (X[10_000:], 30), (X[10_000:], 400)]
    here = [ClassKMeans(some, CPU).cluster(k, seed=1) for some, k in wanted]
    ticks: list[tuple[int, int]] = []
    with open_engine(cluster) as engine:
        calls = [partial(ClassKMeans(some, CPU, engine).cluster, k, seed=1) for some, k in wanted]
        there = engine.together(calls, lambda done, total: ticks.append((done, total)))
    assert [as_bytes(result) for result in there] == [as_bytes(result) for result in here]
    assert ticks == [(done, 4) for done in range(1, 5)]


def test_rows_that_do_not_fit_are_read_again(
    cluster: str, file: Path, cut_at: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_at(3_000)
    X = np.load(file, mmap_mode="r")[:10_000]
    with open_engine(cluster) as engine:
        monkeypatch.setattr(engine, "_memory", lambda: 1.0)
        placed = engine.place(rows.cut_blocks(rows.RowSource.of(X)))
        assert all(isinstance(block, rows.RowBlock) for block in placed)
        there = ClassKMeans(X, CPU, engine).cluster(20)
    assert as_bytes(there) == as_bytes(ClassKMeans(X, CPU).cluster(20))


def test_clusters_that_are_refused(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "__version__", "9.9")
    with pytest.raises(InputError, match=r"9\.9"), open_engine(cluster):
        pass
    monkeypatch.setattr(dask_engine, "_CONNECT_SECONDS", 2)
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9"), open_engine("dask://127.0.0.1:9"):
        pass
    with running_cluster(workers=[]) as empty, pytest.raises(InputError, match="no workers"), open_engine(empty):
        pass


def test_devices_and_errors_of_tasks(cluster: str) -> None:
    with open_engine(cluster) as engine:
        assert engine.kernel("auto").device == "cpu"
        for device in ("cuda", "mps"):
            with pytest.raises(InputError, match="GPU" if device == "cuda" else device):
                engine.kernel(device)
        with pytest.raises(ZeroDivisionError):
            engine.call(divmod, 1, 0)


class PretendedGpu(CpuKernel):
    """A CPU kernel that claims to compute on CUDA."""

    device = "cuda"

    def single_threaded(self) -> CpuKernel:
        return PretendedGpu(1)


def test_steps_for_a_gpu_go_to_the_worker_that_has_one(
    file: Path, tmp_path: Path, cut_at: Callable[[int], None]
) -> None:
    cut_at(3_000)
    X = np.load(file, mmap_mode="r")[:10_000]
    with running_cluster(workers=["", "GPU=1"]) as address, open_engine(address) as engine:
        register(address, Seen(tmp_path))
        assert engine.kernel("auto").device == "cuda"
        several = ClassKMeans(X, PretendedGpu(1), engine).cluster(20, seed=1)
        one = ClassKMeans(X[:2_000], PretendedGpu(1), engine).cluster(7, seed=1)
        seen = {path.name for path in tmp_path.iterdir()}
        # The same on the CPU shows that the other worker would have taken its part.
        ClassKMeans(X, CpuKernel(1), engine).cluster(20, seed=1)
        on_cpu = {path.name for path in tmp_path.iterdir()}
    for task in ("assign", "measure", "call_with_blas_threads"):
        assert f"{task}@1" in seen
        assert f"{task}@0" not in seen
    assert "assign@0" in on_cpu
    assert as_bytes(several) == as_bytes(ClassKMeans(X, CpuKernel(1)).cluster(20, seed=1))
    assert as_bytes(one) == as_bytes(ClassKMeans(X[:2_000], CpuKernel(1)).cluster(7, seed=1))


def test_the_same_bytes_on_two_threads(cluster: str, cut_at: Callable[[int], None]) -> None:
    # Large enough for a second thread; workers have one thread each by default.
    cut_at(3_000)
    X = mixture(24_000, columns=16)
    wanted = [(X, 60), (X[:2_900], 450)]
    with threadpool_limits(2), open_engine(cluster) as engine:
        here, there = (
            [as_bytes(ClassKMeans(some, CpuKernel(2), *on).cluster(k, seed=1)) for some, k in wanted]
            for on in ((), (engine,))
        )
    assert there == here
