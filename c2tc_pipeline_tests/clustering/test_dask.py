"""A Dask cluster gives the bytes of one process, and says in one sentence what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from c2tc_pipeline import Condenser
from c2tc_pipeline.clustering import blocks, dask_engine
from c2tc_pipeline.clustering.class_kmeans import ClassKMeans
from c2tc_pipeline.clustering.kernels import CpuKernel
from c2tc_pipeline.clustering.loss_curves import measure_curves
from c2tc_pipeline.clustering.kernels import make_kernel
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.clustering.lloyd import Clusters
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.clustering.dask_cluster import Seen, mixed_cluster, on_the_cluster, running_cluster
from c2tc_pipeline_tests.clustering.mixtures import mixture

CPU = make_kernel("cpu")
pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.SingletonWarning")


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with running_cluster() as address:
        yield address


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut classes into small blocks; workers get these, but would cut larger ones themselves."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1)
    monkeypatch.setattr(blocks, "_ROWS_LEAST", 3_000)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    np.save(path, np.vstack([mixture(10_000), np.round(mixture(8_000) * 3) / 3]))
    return path


def as_bytes(result: Clusters) -> tuple[object, ...]:
    arrays = (result.centers, result.labels, result.counts, result.nearest)
    return (*(array.tobytes() for array in arrays), result.inertia, result.iterations)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("mapped", [True, False], ids=["stored", "held"])
@pytest.mark.parametrize("sent_bytes", [0, 2**30], ids=["scattered", "sent"])
def test_the_bytes_are_those_of_one_process(
    cluster: str, file: Path, mapped: bool, sent_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "_SENT_BYTES", sent_bytes)
    X = np.load(file, mmap_mode="r" if mapped else None)
    # Several blocks, one block, merged rows, and more clusters than distinct rows.
    wanted = [(X[:10_000], 20), (X[:2_000], 7), (X[10_000:], 30), (X[10_000:], 400)]
    here = [ClassKMeans(rows, CPU).cluster(k, seed=1) for rows, k in wanted]
    ticks: list[tuple[int, int]] = []
    with open_engine(cluster) as executor:
        calls = [partial(ClassKMeans(rows, CPU, executor).cluster, k, seed=1) for rows, k in wanted]
        there = executor.together(calls, lambda done, total: ticks.append((done, total)))
    assert [as_bytes(result) for result in there] == [as_bytes(result) for result in here]
    assert ticks == [(done, 4) for done in range(1, 5)]


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_do_not_fit_are_read_again(cluster: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_HELD_SHARE", 0.0)
    X = np.load(file, mmap_mode="r")[:10_000]
    with open_engine(cluster) as executor:
        monkeypatch.setattr(executor, "_memory", lambda: 1.0)
        placed = executor.place(blocks.cut_blocks(ClassKMeans(X, CPU).source))
        assert all(isinstance(block, blocks.Block) for block in placed)
        there = ClassKMeans(X, CPU, executor).cluster(20)
    assert as_bytes(there) == as_bytes(ClassKMeans(X, CPU).cluster(20))


def test_curves_are_those_of_one_process(cluster: str) -> None:
    X = mixture(30_000)
    here = measure_curves([ClassKMeans(X, CPU), ClassKMeans(X[:5_000], CPU)], [40, 10]).value
    with open_engine(cluster) as executor:
        classes = [ClassKMeans(X, CPU, executor), ClassKMeans(X[:5_000], CPU, executor)]
        there = measure_curves(classes, [40, 10]).value
    for one, other in zip(here, there, strict=True):
        assert one.curve.to_dict() == other.curve.to_dict()
        assert one.seeds.tobytes() == other.seeds.tobytes()


def test_a_condenser_on_a_cluster(cluster: str) -> None:
    X, y = make_classification(12_000, weights=[0.8], random_state=0)
    condensed = [
        Condenser(0.005, gamma="auto", device="cpu", engine=engine).fit_resample(X, y) for engine in ("local", cluster)
    ]
    assert condensed[0][0].tobytes() == condensed[1][0].tobytes()


def test_no_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(InputError, match=r"No Dask scheduler answers at 'dask://127\.0\.0\.1:9'"),
        open_engine("dask://127.0.0.1:9"),
    ):
        pass


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "_CONNECT_SECONDS", 1)
    refused = pytest.raises(InputError, match="has no workers")
    with running_cluster(workers=0) as address, refused, open_engine(address):
        pass


@pytest.mark.parametrize(("device", "message"), [("cuda", "offers the resource GPU"), ("mps", "'mps' is none of")])
def test_devices_that_no_worker_has(cluster: str, device: str, message: str) -> None:
    with open_engine(cluster) as executor:
        assert executor.engine("auto").device == "cpu"
        with pytest.raises(InputError, match=message):
            executor.engine(device)


def test_workers_of_another_version(cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "__version__", "9.9")
    with pytest.raises(InputError, match=r"has c2tc_pipeline .*; install version 9\.9"), open_engine(cluster):
        pass


def test_an_error_of_a_task_comes_back_as_it_is(cluster: str) -> None:
    with open_engine(cluster) as executor, pytest.raises(ZeroDivisionError):
        executor.call(divmod, 1, 0)


class PretendedGpu(CpuKernel):
    """What says that it computes on CUDA and does it on the processor, as there may be no such device."""

    device = "cuda"

    def alone(self) -> CpuKernel:
        return PretendedGpu(1)


@pytest.mark.usefixtures("small_blocks")
def test_steps_for_a_gpu_go_to_the_worker_that_has_one(file: Path, tmp_path: Path) -> None:
    X = np.load(file, mmap_mode="r")[:10_000]
    with mixed_cluster({}, {"GPU": 1}) as address, open_engine(address) as executor:
        on_the_cluster(address, Seen(tmp_path))
        assert executor.engine("auto").device == "cuda"
        several = ClassKMeans(X, PretendedGpu(1), executor).cluster(20, seed=1)
        one = ClassKMeans(X[:2_000], PretendedGpu(1), executor).cluster(7, seed=1)
        seen = {path.name for path in tmp_path.iterdir()}
        # The same without the mark, so that the other worker is there, and would have taken its part.
        ClassKMeans(X, CpuKernel(1), executor).cluster(20, seed=1)
        unmarked = {path.name for path in tmp_path.iterdir()}
    for task in ("assign", "measure", "_as_here"):
        assert f"{task}@1" in seen
        assert f"{task}@0" not in seen
    assert "assign@0" in unmarked
    assert as_bytes(several) == as_bytes(ClassKMeans(X, CpuKernel(1)).cluster(20, seed=1))
    assert as_bytes(one) == as_bytes(ClassKMeans(X[:2_000], CpuKernel(1)).cluster(7, seed=1))


@pytest.mark.usefixtures("small_blocks")
def test_the_bytes_are_those_of_one_process_on_two_threads(cluster: str) -> None:
    # Large enough for a second thread; workers have one thread each unless they are told.
    X = mixture(30_000, columns=16)
    two = CpuKernel(2)
    wanted = [(X, 60), (X[:2_900], 500)]
    with threadpool_limits(2), open_engine(cluster) as executor:
        here = [ClassKMeans(rows, two).cluster(k, seed=1) for rows, k in wanted]
        there = [ClassKMeans(rows, two, executor).cluster(k, seed=1) for rows, k in wanted]
    assert [as_bytes(result) for result in there] == [as_bytes(result) for result in here]


def test_a_blas_whose_threads_nobody_can_count_is_taken_for_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    # As on macOS, where numpy uses a library that threadpoolctl does not know.
    monkeypatch.setattr(dask_engine, "threadpool_info", lambda: [])
    assert dask_engine.DaskEngine(MagicMock(), "dask://nowhere:1")._blas_threads == 1
