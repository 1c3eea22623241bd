"""K-means on torch when memory is short: the same clusters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from c2tc_pipeline.clustering import torch_kernel
from c2tc_pipeline.clustering.lloyd import ClassClusters
from c2tc_pipeline.clustering.torch_kernel import TorchKernel
from c2tc_pipeline.common.devices import watch_fallbacks
from c2tc_pipeline_tests.clustering.mixtures import fit, mixture
from c2tc_pipeline_tests.tools.faults import ENDINGS, LADDERS, Memory, expected_fallbacks, pretended_devices

ROWS = 160


def clustered(device: str = "cpu") -> ClassClusters:
    X = mixture(ROWS, dtype=np.float64)
    return fit(TorchKernel(device), X, 7, seed=3, weight=np.arange(1.0, ROWS + 1))


def give(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> None:
    monkeypatch.setattr(torch_kernel, "_nearest", memory.under(torch_kernel._nearest, lambda X, centers: len(X)))


def assert_same(ours: ClassClusters, theirs: ClassClusters) -> None:
    np.testing.assert_array_equal(ours.labels, theirs.labels)
    np.testing.assert_allclose(ours.centers, theirs.centers, rtol=1e-12)
    assert ours.inertia == pytest.approx(theirs.inertia, rel=1e-12)
    assert ours.iterations == theirs.iterations


@pytest.mark.parametrize(("device", "times", "whole_batches"), ENDINGS)
def test_running_out_at_a_block_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, device: str, times: int, whole_batches: bool
) -> None:
    undisturbed = clustered()
    give(monkeypatch, Memory(at=range(3, 3 + times)))
    with watch_fallbacks() as fallbacks, pretended_devices(monkeypatch):
        ours = clustered(device)
    assert fallbacks == expected_fallbacks("k-means", device, times)
    assert_same(ours, undisturbed)
    if whole_batches:
        assert ours.centers.tobytes() == undisturbed.centers.tobytes()


@pytest.mark.parametrize(("most_rows", "times"), [(80, 1), (20, 3)])
def test_blocks_shrink_and_stay_small(monkeypatch: pytest.MonkeyPatch, most_rows: int, times: int) -> None:
    """Each step of the loop begins where the one before fitted: one record for each place, not for each step."""
    undisturbed = clustered()
    give(monkeypatch, Memory(most_rows=most_rows))
    with watch_fallbacks() as fallbacks:
        ours = clustered()
    assert ours.iterations > 1
    assert fallbacks == expected_fallbacks("k-means", "cpu", times)
    assert_same(ours, undisturbed)


def test_rows_that_do_not_fit_are_clustered_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = clustered()
    bring = torch_kernel._Rows._at
    monkeypatch.setattr(
        torch_kernel._Rows, "_at", Memory(at=range(1, 5)).under(bring, lambda rows, device: len(rows.X))
    )
    with watch_fallbacks() as fallbacks, pretended_devices(monkeypatch):
        ours = clustered("cuda")
    assert [fallback.to for fallback in fallbacks] == LADDERS["cuda"][1:5]
    assert ours.centers.tobytes() == undisturbed.centers.tobytes()


def test_assigning_alone_falls_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixture(ROWS)
    kernel = TorchKernel("cpu")
    expected = kernel.assign(kernel.load(X, None), X[:5])
    give(monkeypatch, Memory(most_rows=40))
    with watch_fallbacks() as fallbacks:
        labels = kernel.assign(kernel.load(X, None), X[:5])
    np.testing.assert_array_equal(labels, expected)
    assert fallbacks == expected_fallbacks("k-means", "cpu", 2)


def test_mps_gets_no_doubles_and_the_result_is_in_the_precision_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended_devices(monkeypatch):
        ours = clustered("mps")
        tensors = TorchKernel("mps").load(mixture(ROWS, dtype=np.float64), np.ones(ROWS))._at("mps")
    assert [tensor.dtype for tensor in tensors] == [torch.float32] * 2
    assert ours.centers.dtype == np.float64
    np.testing.assert_array_equal(ours.labels, clustered().labels)
