"""Processes that a test can lose: forked from one that has imported everything and computed nothing."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any

# A process that has computed must not be forked: the threads of its numeric libraries would be missing in the copy.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["c2tc_pipeline_tests.pipeline.warm"])


def start(work: Callable[..., object], *arguments: Any, **options: Any) -> ForkServerProcess:
    """Do some work in a process of its own."""
    process = CONTEXT.Process(target=_traceable, args=(work, *arguments), kwargs=options)
    process.start()
    return process


def _traceable(work: Callable[..., object], *arguments: Any, **options: Any) -> None:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    work(*arguments, **options)


def ended(process: ForkServerProcess, seconds: float = 120) -> int | None:
    """Wait for the end of a process; return its exit code, which is that of the signal, negative, if one ended it.

    One that does not end is ended, and prints before where each of its threads is.
    """
    process.join(seconds)
    code = process.exitcode
    if code is None:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGUSR1)
        process.join(2)
        process.kill()
        process.join()
    return code


KILLED_RUN = """
import os, signal, sys
import dagster as dg
from c2tc_pipeline.pipeline.instance import open_instance

@dg.asset(pool="gpu")
def encoder():
    os.kill(os.getpid(), signal.SIGKILL)

with open_instance(sys.argv[1]) as instance:
    dg.materialize([encoder], instance=instance)
"""
"""A program: a run on the instance in a folder, which dies while it holds the device."""
