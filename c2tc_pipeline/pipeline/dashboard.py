"""Dagster's dashboard with its daemon, as a child process."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.instance import Workplace, prepare_home

_POLL_SECONDS = 0.5
_PATIENCE_SECONDS = 60.0


def serve_dashboard(place: Workplace, *, host: str, port: int, report: Callable[[str], object]) -> int:
    """Serve the dashboard until Ctrl-C or until it ends; return 0 or its exit code.

    An InputError is raised when it can't start: a package is missing, the port is taken, the catalogue is wrong.
    ``report`` gets sentences for the user.
    """
    if importlib.util.find_spec("dagster_webserver") is None:
        raise InputError(
            "The dashboard needs the package dagster-webserver; install it with: pip install 'c2tc_pipeline[ui]'."
        )
    _check_port(host, port)
    place.tables()
    if place.storage.startswith("memory://"):
        raise InputError(
            "The storage root memory:// ends with the process of a single step; give the dashboard a path or an "
            "s3:// address."
        )
    prepare_home(place.home)
    report("Starting the dashboard; this takes about half a minute.")
    # In a process group of its own, so that Ctrl-C reaches it and its children once, from here.
    process = subprocess.Popen(_command(host, port), env=_environment(place), start_new_session=True)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while process.poll() is None and not _answers(host, port):
            time.sleep(_POLL_SECONDS)
        if process.poll() is None:
            report(f"The dashboard is at http://{host}:{port} (Ctrl-C ends it).")
        return process.wait()
    except KeyboardInterrupt:
        report("Stopping.")
        return 0
    finally:
        _stop(process)
        signal.signal(signal.SIGTERM, before)


def _command(host: str, port: int) -> list[str]:
    # "dagster dev" is superseded by "dg dev", which is another package and wants a project laid out its way; the older
    # one is the one that takes a module.
    module = ("-m", "c2tc_pipeline.definitions")
    return [sys.executable, "-m", "dagster", "dev", *module, "-h", host, "-p", str(port), "--log-level", "error"]


def _environment(place: Workplace) -> dict[str, str]:
    # Only the warning that "dagster dev" is superseded; by its words, because naming its category in a variable would
    # import Dagster into every process.
    warnings = filter(None, [os.environ.get("PYTHONWARNINGS"), "ignore:Function `dev_command`"])
    return {**os.environ, **place.environment(), "PYTHONWARNINGS": ",".join(warnings)}


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise InputError(
            f"The address {host}:{port} can't be used ({error.strerror}); choose another with --port or --host."
        ) from None


def _answers(host: str, port: int) -> bool:
    with socket.socket() as trial:
        trial.settimeout(_POLL_SECONDS)
        return trial.connect_ex((host, port)) == 0


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the process and its children, as Ctrl-C in a terminal does, and kill those that don't end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_SECONDS)
        os.killpg(process.pid, signal.SIGKILL)
