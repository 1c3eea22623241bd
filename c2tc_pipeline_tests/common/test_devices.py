"""Device selection, and fallback to smaller batches and the CPU when memory runs out."""

from __future__ import annotations

import contextlib
import contextvars
import weakref

import pytest
import torch

from c2tc_pipeline.common.devices import Fallback, Place, on_device, resolve_device, watch_fallbacks
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.tools.faults import LADDERS, MESSAGE, Always, Memory, expected_fallbacks


def have(monkeypatch: pytest.MonkeyPatch, *devices: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in devices)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in devices)


def run_out(place: Place) -> str:
    raise torch.OutOfMemoryError(MESSAGE)


@pytest.mark.parametrize(
    ("present", "chosen"), [((), "cpu"), (("mps",), "mps"), (("cuda",), "cuda"), (("mps", "cuda"), "cuda")]
)
def test_device_selection(monkeypatch: pytest.MonkeyPatch, present: tuple[str, ...], chosen: str) -> None:
    have(monkeypatch, *present)
    assert resolve_device("auto") == chosen
    assert resolve_device("cpu") == "cpu"
    for device in present:
        assert resolve_device(device) == device
    for device in {"cuda", "mps", "tpu"} - {*present}:
        with pytest.raises(InputError, match=f"'{device}'"):
            resolve_device(device)


@pytest.mark.parametrize("device", LADDERS)
@pytest.mark.parametrize("times", range(9))
def test_fallbacks(device: str, times: int) -> None:
    memory = Memory(at=range(1, times + 1))

    def work(place: Place) -> str:
        memory.take(1)
        return str(place)

    ladder = LADDERS[device]
    with watch_fallbacks() as fallbacks:
        if times < len(ladder):
            assert on_device("sorting", device, work) == ladder[times]
        else:
            with pytest.raises(torch.OutOfMemoryError):
                on_device("sorting", device, work)
    assert fallbacks == expected_fallbacks("sorting", device, min(times, len(ladder) - 1))
    assert memory.uses == min(times + 1, len(ladder))


def test_start_with_smaller_batches() -> None:
    with watch_fallbacks() as fallbacks, pytest.raises(torch.OutOfMemoryError):
        on_device("sorting", Place("cuda", 8), run_out)
    assert fallbacks == expected_fallbacks("sorting", "cuda", 7)[3:]


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("MPS backend out of memory (MPS allocated: 5.56 GB, max allowed: 6.80 GB)."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        torch.OutOfMemoryError(),
    ],
    ids=["mps", "cublas", "without a word"],
)
def test_what_counts_as_out_of_memory(error: Exception) -> None:
    memory = Memory(at={1}, error=error)
    with watch_fallbacks() as fallbacks:
        on_device("sorting", "cpu", lambda place: memory.take(1))
    assert [fallback.to for fallback in fallbacks] == ["cpu, 1/2 batch"]


def test_failed_allocation_on_the_cpu_counts() -> None:
    with watch_fallbacks() as fallbacks:
        made = on_device("sorting", "cpu", lambda place: torch.empty(10**15 if place.parts == 1 else 1))
    assert len(made) == 1
    assert len(fallbacks) == 1
    assert "allocate" in fallbacks[0].reason


@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("cuda", RuntimeError("shapes do not match")),
        ("cuda", ValueError("out of memory")),
        ("cuda", InputError("no")),
        ("cpu", NotImplementedError("write me")),
    ],
)
def test_other_errors_are_raised_at_once(device: str, error: Exception) -> None:
    memory = Memory(at=Always(), error=error)
    with watch_fallbacks() as fallbacks, pytest.raises(type(error), match=str(error)):
        on_device("sorting", device, lambda place: memory.take(1))
    assert (memory.uses, fallbacks) == (1, [])


def test_missing_operation_falls_back_to_the_cpu() -> None:
    def work(place: Place) -> str:
        if place.device != "cpu":
            raise NotImplementedError("The operator 'aten::linalg_qr' is not currently implemented.\nVote for it.")
        return str(place)

    with watch_fallbacks() as fallbacks:
        assert on_device("sorting", "cuda", work) == "cpu"
    reason = "The operator 'aten::linalg_qr' is not currently implemented."
    assert fallbacks == [Fallback("sorting", "cuda", "cpu", reason)]


def test_tensors_are_freed_before_the_next_try() -> None:
    left: list[weakref.ref[torch.Tensor]] = []

    def work(place: Place) -> list[bool]:
        still_there = [reference() is not None for reference in left]
        tensor = torch.zeros(3)
        left.append(weakref.ref(tensor))
        if place.parts < 8:
            run_out(place)
        return still_there

    assert on_device("sorting", "cpu", work) == [False, False, False]


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_device_cache_is_emptied_between_tries(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    emptied: list[str] = []
    for name in ("cuda", "mps"):
        monkeypatch.setattr(getattr(torch, name), "empty_cache", lambda name=name: emptied.append(name))
    with pytest.raises(torch.OutOfMemoryError):
        on_device("sorting", device, run_out)
    assert emptied == [device] * 4


def test_nested_watches() -> None:
    def fall(step: str) -> None:
        memory = Memory(at={1})
        on_device(step, "cpu", lambda place: memory.take(1))

    with watch_fallbacks() as outer:
        fall("first")
        with watch_fallbacks() as inner:
            fall("second")
        with contextlib.suppress(KeyError), watch_fallbacks():
            fall("third")
            raise KeyError
        fall("fourth")
    fall("unseen")
    assert [fallback.step for fallback in outer] == ["first", "second", "third", "fourth"]
    assert [fallback.step for fallback in inner] == ["second"]


def test_watches_are_per_context() -> None:
    def fall() -> None:
        memory = Memory(at={1})
        on_device("sorting", "cpu", lambda place: memory.take(1))

    apart = contextvars.copy_context()
    with watch_fallbacks() as here:
        apart.run(fall)
    assert here == []
