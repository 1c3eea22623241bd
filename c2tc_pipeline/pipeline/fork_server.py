"""A process that has imported what every run imports, and becomes a run by a fork whenever it is asked for one.

A run of a small table works for a second and would import for three. Here that is paid once: a copy of this process
begins at once, and shares the memory of what was imported. Nothing is computed or opened before the fork, since
threads and connections do not survive it.

What belongs here: waiting for requests and forking. Who asks is in :mod:`c2tc_pipeline.pipeline.fork_client`.
Requests and answers are lines of JSON on the socket whose number is the only argument: a list of arguments for the
command ``dagster`` comes, the number of the process that executes it goes back. The process ends when the other side
of the socket is gone; runs go on without it.
"""

from __future__ import annotations

import gc
import importlib
import json
import multiprocessing.util
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from c2tc_pipeline.pipeline.executors import steps_are_apart
from c2tc_pipeline.pipeline.preloading import PRELOADED
from c2tc_pipeline.pipeline.step_forks import fork_steps_from_here


def main() -> None:
    """Import, then fork for each request."""
    # Ctrl-C is for the runs; this process ends when nobody is there to ask.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Runs that ended must not stay behind as zombies, which look alive.
    signal.signal(signal.SIGCHLD, _forget_ended)
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    # Nothing of this is garbage: without it copies would look through all of it, and so copy its pages.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel, channel.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            arguments = json.loads(line)
            process = os.fork()
            if process == 0:
                channel.detach()
                os.close(int(sys.argv[1]))
                _become(arguments)
            lines.write(f"{process}\n")
            lines.flush()


def _forget_ended(_number: int, _frame: FrameType | None) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become(arguments: list[str]) -> NoReturn:
    """Execute a command of Dagster in place of what this copy was made to do."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if steps_are_apart():
            fork_steps_from_here()
        from dagster._cli import cli

        cli.main(args=arguments, prog_name="dagster", standalone_mode=False)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        # As multiprocessing ends its processes: what the copied one would do at its end is not for its copies to do.
        multiprocessing.util._exit_function()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
