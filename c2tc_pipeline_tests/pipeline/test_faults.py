"""Memory that runs out, connections that break and mistakes, inside the steps of the real pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c2tc_pipeline.clustering import torch_kernel
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation import steps
from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.evaluation.models import network
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.steps import CacheResource, DeviceResource
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, tries_of, without_pictures
from c2tc_pipeline_tests.tools.faults import Always, Memory, pretended_devices
from c2tc_pipeline_tests.tools.made_tables import mixed_table

CELL = "people|0.1"


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """A table with words and an MLP, everything made on the CPU without disturbance."""
    with pytest.MonkeyPatch.context() as patch, Rig(tmp_path_factory.mktemp("made")) as rig:
        without_pictures(patch)
        rig.add(
            "people",
            mixed_table(300, words=True),
            settings={"strings": "similarity"},
            evaluation={"seeds": 1, "models": ["mlp"]},
        )
        assert rig.run("ingest", "people").success
        assert rig.run("condense", CELL).success
        yield rig


@pytest.fixture
def rig(made: Rig, tmp_path: Path) -> Iterator[Rig]:
    """A copy of it, with nothing in the cache that would make a step short."""
    with made.copy_to(tmp_path / "rig") as rig:
        rig.overrides |= cached_in(rig.folder / "cold")
        yield rig


def cached_in(folder: Path) -> dict[str, Any]:
    return {"cache": CacheResource(directory=str(folder))}


def on(device: str) -> dict[str, Any]:
    return {"device": DeviceResource(device=device)}


def out_of_memory_in(monkeypatch: pytest.MonkeyPatch, asset: str, memory: Memory) -> None:
    """Let memory run out inside the work of an asset."""
    if asset == "encoder":
        limited = memory.under(FactorisedAutoencoder.summed_loss, lambda model, rows: len(rows.weight))
        monkeypatch.setattr(FactorisedAutoencoder, "summed_loss", limited)
        return
    if asset == "evaluation_scores":
        build = network.train

        def train(made: Callable[[], Any], *arguments: Any, **options: Any) -> Any:
            def limited() -> Any:
                built = made()
                built.forward = memory.under(built.forward, len)
                return built

            trained = build(limited, *arguments, **options)
            # Predictions are not what memory is short for.
            del trained.forward
            return trained

        monkeypatch.setattr(network, "train", train)
        return
    limited = memory.under(torch_kernel._nearest, lambda X, centers: len(X))
    monkeypatch.setattr(torch_kernel, "_nearest", limited)


@pytest.mark.parametrize(("asset", "partition", "batch"), [("encoder", "people", 2), ("evaluation_scores", CELL, 3)])
def test_out_of_memory_on_the_device_ends_on_the_cpu_with_the_same_bytes(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, asset: str, partition: str, batch: int
) -> None:
    before = rig.versions(asset)
    out_of_memory_in(monkeypatch, asset, Memory(at=[batch * (attempt + 1) for attempt in range(4)]))
    rig.overrides |= on("cuda")
    with pretended_devices(monkeypatch):
        result = rig.make(asset, partition)
    assert result.success
    assert tries_of(result, asset) == 1, "the ladder is climbed down inside the step"
    told = rig.told(asset, partition)
    assert told["device"] == "cuda"
    assert told["fallbacks"] == len(told["fallback_steps"]) == 4
    assert not told["cache_hit"]
    assert rig.versions(asset) == before


def test_k_means_falls_back_to_smaller_blocks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asset = "condensed_table"
    rig.overrides |= on("cuda")
    with pretended_devices(monkeypatch):
        assert rig.make(asset, CELL).success
        undisturbed = StoreIOManager(root=rig.storage).read(asset, CELL)
        rig.overrides |= cached_in(rig.folder / "colder")
        out_of_memory_in(monkeypatch, asset, Memory(at={3}))
        result = rig.make(asset, CELL)
    assert result.success
    told = rig.told(asset, CELL)
    assert len(told["fallback_steps"]) == 1
    found = StoreIOManager(root=rig.storage).read(asset, CELL)
    np.testing.assert_array_equal(found.allocation.counts, undisturbed.allocation.counts)
    assert found.allocation.objective == pytest.approx(undisturbed.allocation.objective, rel=1e-6)


def test_when_nothing_helps_the_step_fails_after_all_its_tries(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    before = rig.versions()
    out_of_memory_in(monkeypatch, "encoder", Memory(at=Always()))
    result = rig.make("encoder", "people")
    assert not result.success
    assert tries_of(result, "encoder") == 3, "another process may have filled the device, so it is tried again"
    assert rig.versions() == before


def broken(monkeypatch: pytest.MonkeyPatch, error: Exception, times: int) -> None:
    """Let the fit of the encoder raise an error some times, then work."""
    fit, errors = steps.fit_encoder, [error] * times

    def break_then_fit(*arguments: Any, **options: Any) -> Any:
        if errors:
            raise errors.pop()
        return fit(*arguments, **options)

    monkeypatch.setattr(steps, "fit_encoder", break_then_fit)


@pytest.mark.parametrize(
    ("error", "times", "tries"),
    [
        (ConnectionError("the line is dead"), 1, 2),
        (InputError("No."), 1, 1),
    ],
    ids=["transient", "mistake"],
)
def test_only_transient_errors_are_retried(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, times: int, tries: int
) -> None:
    before = rig.versions("encoder")
    broken(monkeypatch, error, times)
    result = rig.make("encoder", "people")
    assert result.success == (times < tries)
    assert tries_of(result, "encoder") == tries
    assert rig.versions("encoder") == before
    assert rig.told("encoder", "people")["version"] == 1 + result.success


def test_a_device_that_is_not_there_is_refused_at_once(rig: Rig) -> None:
    rig.overrides |= on("cuda")
    result = rig.make("encoder", "people")
    assert "'cuda' was asked for but is not available" in failure_of(result, "encoder")
    assert tries_of(result, "encoder") == 1


def test_damaged_cache_entries_are_made_again(made: Rig, tmp_path: Path) -> None:
    kinds = {"autoencoder": "encoder", "loss-curves": "cluster_allocation", "scores": "evaluation_scores"}
    with made.copy_to(tmp_path / "rig") as rig:
        before = rig.versions()
        for kind, asset in kinds.items():
            entries = [path for path in (rig.folder / "cache" / kind).rglob("*") if path.is_file()]
            assert entries
            for path in entries:
                path.write_bytes(path.read_bytes()[:-1])
            key = "people" if asset == "encoder" else CELL
            assert rig.make(asset, key).success
            assert not rig.told(asset, key)["cache_hit"]
        assert rig.versions() == before
