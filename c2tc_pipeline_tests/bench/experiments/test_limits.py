"""Work that needs more time or memory than it is given ends in a word, not in a crash."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from c2tc_pipeline.bench.experiments.limits import Outcome, run_limited
from c2tc_pipeline.bench.rivals.limits import OutOfMemory, OutOfTime

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux only")


def limited(work: object, *, seconds: float = 60, gigabytes: float = 4) -> Outcome[object]:
    return run_limited(work, seconds=seconds, gigabytes=gigabytes)  # type: ignore[arg-type]


def test_what_the_work_returns_comes_back() -> None:
    rows = np.arange(12.0).reshape(3, 4)
    outcome = limited(lambda: rows * 2)
    assert outcome.status == "ok"
    np.testing.assert_array_equal(outcome.value, rows * 2)


def test_work_that_never_ends_is_out_of_time() -> None:
    outcome = limited(threading.Event().wait, seconds=0.2)
    assert (outcome.status, outcome.value) == ("OOT", None)
    assert "0.2 seconds" in outcome.reason


@linux
def test_more_memory_than_allowed_is_out_of_memory() -> None:
    outcome = limited(lambda: np.ones(100_000_000).sum(), gigabytes=0.2)
    assert outcome.status == "OOM"


@linux
def test_the_limit_is_beyond_what_there_was_before() -> None:
    held = np.ones(50_000_000)
    assert limited(lambda: float(np.ones(10_000_000).sum() + held[0]), gigabytes=0.2).status == "ok"


@linux
def test_torch_runs_out_of_memory_too() -> None:
    import torch

    assert limited(lambda: torch.ones(200_000_000), gigabytes=0.2).status == "OOM"


def test_a_process_that_the_system_kills_is_out_of_memory() -> None:
    assert limited(lambda: os.kill(os.getpid(), signal.SIGKILL)).status == "OOM"


def test_a_process_that_dies_otherwise_has_failed() -> None:
    outcome = limited(lambda: os._exit(3))
    assert (outcome.status, outcome.reason) == ("failed", "its process ended with exit code 3")


@pytest.mark.parametrize(
    ("error", "status"),
    [(OutOfTime("long"), "OOT"), (OutOfMemory("large"), "OOM"), (MemoryError(), "OOM"), (KeyError("x"), "failed")],
)
def test_what_a_method_says_itself_counts(error: Exception, status: str) -> None:
    def work() -> None:
        raise error

    assert limited(work).status == status


def test_no_process_is_left_behind() -> None:
    import multiprocessing

    limited(threading.Event().wait, seconds=0.1)
    assert not multiprocessing.active_children()


HANGING_WORK = """
import os, threading
from c2tc_pipeline.bench.experiments.limits import run_limited
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
