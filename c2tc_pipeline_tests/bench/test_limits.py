"""Limits of time and memory end in a status, not in a crash."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.limits import (
    Deadline,
    Outcome,
    OutOfMemory,
    OutOfTime,
    check_memory,
    run_limited,
    within_memory,
)
from c2tc_pipeline.common.errors import InputError


def test_a_deadline_is_over_after_its_limit_and_not_before() -> None:
    now = 1000.0
    limited, free = (Deadline("GM", limit, lambda: now) for limit in (2.5, None))
    now = 1002.5
    limited.check("step 1")
    now = 1002.6
    free.check("step 2")
    with pytest.raises(OutOfTime, match="step 2"):
        limited.check("step 2")


def test_an_estimate_may_reach_its_limit_and_a_limit_must_be_one() -> None:
    check_memory("GM", 1e300, None)
    check_memory("MTT", 1e9, 1e9)
    with pytest.raises(OutOfMemory):
        check_memory("MTT", 2e9, 1e9)
    for limit in (0, -1, float("nan")):
        with pytest.raises(InputError, match="time_limit"):
            Deadline("GM", limit)
        with pytest.raises(InputError, match="memory_limit"):
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
    with pytest.raises(OutOfMemory) as caught:
        within_memory("DM", raising(error))
    assert "\n" not in str(caught.value)


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


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux only")


def limited(work: object, *, seconds: float = 60, gigabytes: float = 4) -> Outcome[object]:
    return run_limited(work, seconds=seconds, gigabytes=gigabytes)  # type: ignore[arg-type]


def test_what_the_work_returns_comes_back() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    outcome = limited(lambda: rows * 2)
    assert outcome.status == "ok"
    np.testing.assert_array_equal(outcome.value, rows * 2)


def test_work_that_never_ends_is_out_of_time_and_leaves_no_process() -> None:
    outcome = limited(threading.Event().wait, seconds=0.2)
    assert (outcome.status, outcome.value) == ("OOT", None)
    assert "0.2 seconds" in outcome.reason
    assert not multiprocessing.active_children()


@linux
def test_more_memory_than_allowed_is_out_of_memory() -> None:
    outcome = limited(lambda: np.ones(100_000_000).sum(), gigabytes=0.2)
    assert outcome.status == "OOM"


def raising(error: Exception) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


@pytest.mark.parametrize(
    ("work", "status"),
    [
        (raising(OutOfTime("long")), "OOT"),
        (raising(OutOfMemory("large")), "OOM"),
        (raising(MemoryError()), "OOM"),
        (raising(KeyError("x")), "failed"),
        # The system kills what takes too much memory.
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "OOM"),
        (lambda: os._exit(3), "failed"),
    ],
)
def test_what_a_method_says_or_how_it_dies_counts(work: Callable[[], None], status: str) -> None:
    outcome = limited(work)
    assert outcome.status == status
    assert outcome.reason


HANGING_WORK = """
import os, threading
from c2tc_pipeline.bench.limits import run_limited
def work():
    print(os.getpid(), flush=True)
    threading.Event().wait()
run_limited(work, seconds=600, gigabytes=1)
"""

HANGING_WORKER = """
import multiprocessing, os, signal, threading
from concurrent.futures import ProcessPoolExecutor
from c2tc_pipeline.bench.experiments.runner import _start
context = multiprocessing.get_context("spawn")
pool = ProcessPoolExecutor(1, mp_context=context, initializer=_start, initargs=(None,))
print(pool.submit(os.getpid).result(), flush=True)
pool.submit(signal.pause)
threading.Event().wait()
"""


@linux
@pytest.mark.parametrize("script", [HANGING_WORK, HANGING_WORKER], ids=["condensation", "worker of an experiment"])
def test_the_work_ends_with_the_process_that_waits_for_it(script: str) -> None:
    """An experiment that is killed takes its workers along, and a worker the method that it runs."""
    waiting = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None
    assert int(waiting.stdout.readline())
    waiting.kill()
    waiting.wait()
    # The pipe ends when the last process that holds it is gone: were the work to go on, this would wait for ever.
    assert waiting.stdout.read() == ""
