"""Other processes: end with the one that started this, and ask whether one listens on a port."""

from __future__ import annotations

import ctypes
import signal
import socket
import sys

_PR_SET_PDEATHSIG = 1
_CONNECT_SECONDS = 2.0


def end_with_parent(number: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel signal this process when the thread that started it ends; only Linux can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))


def answers(host: str, port: int) -> bool:
    """Return whether a process accepts connections on a port."""
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_SECONDS):
            return True
    except OSError:
        return False
