"""Limits of time and memory: reached exactly when they are, and said in one sentence."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.rivals.limits import Deadline, OutOfMemory, OutOfTime, check_memory, within_memory
from c2tc_pipeline.common.errors import InputError


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_is_over_after_its_limit_and_not_before() -> None:
    clock = Clock()
    deadline = Deadline("GM", 2.5, clock)
    clock.now = 1002.5
    deadline.check("step 1 of 3")
    clock.now = 1002.6
    with pytest.raises(
        OutOfTime, match=r"^GM took longer than its limit of 2\.5 seconds and had come to step 2 of 3\.$"
    ):
        deadline.check("step 2 of 3")


def test_without_a_limit_there_is_no_end() -> None:
    clock = Clock()
    deadline = Deadline("GM", None, clock)
    clock.now = 1e300
    deadline.check("step 2 of 3")
    check_memory("GM", 1e300, None)


def test_an_estimate_may_reach_its_limit() -> None:
    check_memory("MTT", 1e9, 1e9)
    with pytest.raises(OutOfMemory, match=r"^MTT needs about 2,000 MB, more than its limit of 1,000 MB\.$"):
        check_memory("MTT", 2e9, 1e9)


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_limit_that_is_none(limit: float) -> None:
    with pytest.raises(InputError, match=r"Setting time_limit is .*; it must be above 0, or None for no limit\.$"):
        Deadline("GM", limit)
    with pytest.raises(InputError, match="Setting memory_limit is"):
        check_memory("GM", 1, limit)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 3 GiB"),
        torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate 20.00 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
    ],
)
def test_every_way_of_saying_that_memory_is_short(error: Exception) -> None:
    def work() -> None:
        raise error

    with pytest.raises(OutOfMemory, match=r"^DM ran out of memory \([^\n]+[^.]\)\.$") as caught:
        within_memory("DM", work)
    assert caught.value.code == "OOM"


def test_a_real_allocation_that_no_machine_has() -> None:
    with pytest.raises(OutOfMemory):
        within_memory("DM", lambda: torch.empty(2**58))
    with pytest.raises(OutOfMemory):
        within_memory("DM", lambda: np.empty(2**58))


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes differ"), OutOfTime("too long"), OutOfMemory("estimated"), KeyError()]
)
def test_other_errors_pass_through(error: Exception) -> None:
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        within_memory("DM", work)
    assert caught.value is error


def test_what_did_not_fit_is_let_go() -> None:
    kept: list[weakref.ref[torch.Tensor]] = []

    def work() -> None:
        tensor = torch.zeros(3)
        kept.append(weakref.ref(tensor))
        raise MemoryError

    with pytest.raises(OutOfMemory) as caught:
        within_memory("DM", work)
    gc.collect()
    assert caught.value.__context__ is None
    assert kept[0]() is None
