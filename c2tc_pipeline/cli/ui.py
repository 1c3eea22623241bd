"""``c2tc ui``: Dagster's dashboard and daemon on this machine, restarted when they end."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from c2tc_pipeline.cli.supervisor import Service, ServiceFailedError, Supervisor
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import answers

if TYPE_CHECKING:
    from c2tc_pipeline.pipeline.instance import Workplace


def serve_dashboard(place: Workplace, *, host: str, port: int, report: Callable[[str], object]) -> int:
    """Serve the dashboard until Ctrl-C or SIGTERM; return the exit code.

    An InputError is raised when it can't start: a package is missing, the port is taken, the catalogue is wrong.
    ``report`` gets sentences for the user.
    """
    from c2tc_pipeline.pipeline.instance import end_dead_runs, open_instance, runs_are_local

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
    with open_instance(place.home) as instance:
        if runs_are_local(place.home):
            end_dead_runs(instance)
    report("Starting the dashboard; this takes about half a minute.")
    supervisor = Supervisor(Path.cwd(), report, progress=lambda _: None)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for service in _services(place, host, port):
            supervisor.start(service)
        report(f"The dashboard is at http://{host}:{port} (Ctrl-C ends it).")
        supervisor.watch()
    except KeyboardInterrupt:
        report("Stopping.")
        return 0
    except ServiceFailedError as error:
        report(str(error))
        return 1
    finally:
        # A second Ctrl-C ends the waiting, not the stopping.
        with suppress(KeyboardInterrupt):
            supervisor.stop()
        supervisor.stop()
        signal.signal(signal.SIGTERM, before)


def _services(place: Workplace, host: str, port: int) -> list[Service]:
    """Return the dashboard and the daemon; each starts a code server of its own, which the daemon renews each minute.

    A code server whose daemon was killed ends once its runs have ended.
    """
    common = ["-m", "c2tc_pipeline.definitions", "--code-server-log-level", "error"]
    environment = {"C2TC_UI_URL": f"http://{host}:{port}", **os.environ, **place.environment()}
    webserver = ["-m", "dagster_webserver", "-h", host, "-p", str(port), "--dagster-log-level", "error"]
    daemon = str(Path(sys.executable).with_name("dagster-daemon"))
    return [
        Service(
            "dashboard",
            [sys.executable, *webserver, *common],
            environment,
            lambda: answers(host, port),
            stop=signal.SIGINT,
            keeps_children=True,
        ),
        Service(
            "daemon",
            [daemon, "run", "--log-level", "error", *common],
            environment,
            lambda: True,
            stop=signal.SIGINT,
            keeps_children=True,
        ),
    ]


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise InputError(
            f"The address {host}:{port} can't be used ({error.strerror}); choose another with --port or --host."
        ) from None
