"""Asking a process that has everything imported to become a run, and keeping such a process at hand.

The process itself is :mod:`c2tc_pipeline.pipeline.fork_server`.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import c2tc_pipeline

_SERVER = "c2tc_pipeline.pipeline.fork_server"
# The first answer waits for the imports, on a machine that may be busy with other runs.
_PATIENCE_SECONDS = 300.0
_PACKAGE = Path(c2tc_pipeline.__file__).parent


class ForkClient:
    """Starts commands of Dagster as copies of a process that has imported what they need.

    The process is started with the first command, and again when it is gone or when a file of this package has
    changed since: a run is executed by the code as it is when the run begins.

    Examples
    --------
    >>> client = ForkClient()
    >>> client.close()
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._server: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._sources: tuple[int, int] | None = None

    def start(self, arguments: Sequence[str]) -> int:
        """Start a command.

        Parameters
        ----------
        arguments : sequence of str
            What would follow ``dagster`` at a prompt.

        Returns
        -------
        int
            The number of its process, which is no child of this one.

        Raises
        ------
        ConnectionError
            When no process can be had.
        """
        with self._lock:
            sources = _state_of_sources()
            if self._channel is not None and sources == self._sources:
                # It may have been killed since the last time.
                with suppress(ConnectionError):
                    return _ask(self._channel, arguments)
            self._close()
            self._server, self._channel = _start_server()
            self._sources = sources
            return _ask(self._channel, arguments)

    def close(self) -> None:
        """End the process; what it has started goes on."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _ask(channel: socket.socket, arguments: Sequence[str]) -> int:
    try:
        with channel.makefile("rw", encoding="utf-8") as lines:
            lines.write(json.dumps(list(arguments)) + "\n")
            lines.flush()
            return int(lines.readline())
    except (OSError, ValueError) as error:
        raise ConnectionError("The process that runs are forked from ended or hangs instead of answering.") from error


def _start_server() -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", _SERVER, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    ours.settimeout(_PATIENCE_SECONDS)
    return server, ours


def _state_of_sources() -> tuple[int, int]:
    """Return what changes when a file of this package does."""
    stamps = [path.stat().st_mtime_ns for path in _PACKAGE.rglob("*.py")]
    return len(stamps), max(stamps)
