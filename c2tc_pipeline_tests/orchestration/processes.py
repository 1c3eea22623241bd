"""Processes that a test can lose: forked from one that has imported everything and computed nothing."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from typing import Any

# A process that has computed must not be forked: the threads of its numeric libraries would be missing in the copy.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "c2tc_pipeline_tests.orchestration.faulty_definitions",
        *("c2tc_pipeline.job", "pandera.pandas", "sklearn.ensemble", "sklearn.decomposition"),
        *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg"),
    ]
)


def start(work: Callable[..., object], *arguments: Any, **options: Any) -> ForkServerProcess:
    """Do some work in a process of its own."""
    process = CONTEXT.Process(target=work, args=arguments, kwargs=options)
    process.start()
    return process


def ended(process: ForkServerProcess) -> int | None:
    """Wait for the end of a process; return its exit code, which is that of the signal, negative, if one ended it."""
    process.join(120)
    code = process.exitcode
    if code is None:
        process.kill()
        process.join()
    return code


KILLED_RUN = """
import os, signal, sys
import dagster as dg
from c2tc_pipeline.orchestration.instance import open_instance

@dg.asset(pool="gpu")
def encoder():
    os.kill(os.getpid(), signal.SIGKILL)

with open_instance(sys.argv[1]) as instance:
    dg.materialize([encoder], instance=instance)
"""
"""A program: a run on the instance in a folder, which dies while it holds the device."""
