"""``c2tc ui``: Dagster's dashboard and daemon on this machine, restarted when they end."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from c2tc_pipeline.cli.supervisor import Service, ServiceFailedError, Supervisor
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import answers, children

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from c2tc_pipeline.pipeline.instance import Workplace

# How often the dashboard's children are looked at, and for how long it may have no code server.
CHILD_LOOK_SECONDS = 2.0
CHILD_PATIENCE_SECONDS = 10.0
# The daemon renews its code server each minute.
RENEWAL_SECONDS = 75.0
_CODE_SERVER = " api grpc "


def serve_dashboard(place: Workplace, *, host: str, port: int, report: Callable[[str], object]) -> int:
    """Serve the dashboard until Ctrl-C or SIGTERM; return the exit code.

    An InputError is raised when it can't start: a package is missing, the port is taken, the catalogue is wrong and
    none was accepted before.
    ``report`` gets sentences for the user.
    """
    from c2tc_pipeline.pipeline.acceptance import startable
    from c2tc_pipeline.pipeline.instance import end_dead_runs, open_instance, runs_are_local

    if importlib.util.find_spec("dagster_webserver") is None:
        raise InputError(
            "The dashboard needs the package dagster-webserver; install it with: pip install 'c2tc_pipeline[ui]'."
        )
    _check_port(host, port)
    if place.storage.startswith("memory://"):
        raise InputError(
            "The storage root memory:// ends with the process of a single step; give the dashboard a path or an "
            "s3:// address."
        )
    if problem := startable(place.catalogue.absolute(), place.environment()["C2TC_STORAGE"]):
        report(problem)
    with open_instance(place.home) as instance:
        are_local = runs_are_local(place.home)
        if are_local:
            end_dead_runs(instance)
        look = _looks_for_lost_runs(instance, report) if are_local else lambda: None
        return _supervise(dashboard_services(place, host, port), f"http://{host}:{port}", report, look)


def _supervise(services: list[Service], url: str, report: Callable[[str], object], look: Callable[[], None]) -> int:
    """Run services until Ctrl-C or SIGTERM; return the exit code."""
    report("Starting the dashboard; this takes about half a minute.")
    supervisor = Supervisor(Path.cwd(), report, progress=lambda _: None)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for service in services:
            supervisor.start(service)
        report(f"The dashboard is at {url} (Ctrl-C ends it).")
        supervisor.watch(look)
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


def _looks_for_lost_runs(instance: DagsterInstance, report: Callable[[str], object]) -> Callable[[], None]:
    """Return a function that ends runs killed with their code server, which Dagster does not notice.

    Dagster retries them, which it tries once and only with a code server, so the daemon gets time to renew its own.
    """
    from c2tc_pipeline.pipeline.instance import end_dead_runs

    seen: dict[str, float] = {}

    def is_due(run_id: str) -> bool:
        now = time.monotonic()
        return now - seen.setdefault(run_id, now) >= RENEWAL_SECONDS

    def look() -> None:
        try:
            for run_id in end_dead_runs(instance, is_due):
                report(f"Ended run {run_id}, whose process was killed.")
        except Exception as error:  # of a locked or full database: the services go on, and the next look tries again
            report(f"Runs could not be looked at ({type(error).__name__}); this is tried again.")

    return look


def dashboard_services(place: Workplace, host: str, port: int) -> list[Service]:
    """Return the dashboard and the daemon; each starts a code server of its own.

    The daemon renews its code server each minute; the dashboard does not, so it is restarted when it has none. A code
    server whose daemon was killed ends once its runs have ended.
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
            is_stale=lost_code_server(),
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


def lost_code_server() -> Callable[[int], bool]:
    """Return whether a service has been without its code server for some seconds, after it had one.

    A reload replaces the code server, so that a child that ended is no sign by itself.
    """
    had: set[int] = set()
    looked = lost_since = 0.0

    def is_stale(process: int) -> bool:
        nonlocal looked, lost_since
        now = time.monotonic()
        if now - looked < CHILD_LOOK_SECONDS:
            return False
        looked = now
        if any(_CODE_SERVER in command for _, command in children(process)):
            had.add(process)
            lost_since = 0.0
            return False
        lost_since = lost_since or now
        return process in had and now - lost_since >= CHILD_PATIENCE_SECONDS

    return is_stale


def _check_port(host: str, port: int) -> None:
    try:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((host, port))
    except OSError as error:
        raise InputError(
            f"The address {host}:{port} can't be used ({error.strerror}); choose another with --port or --host."
        ) from None
