"""Letting the steps of a run be copies of the process that the run is a copy of.

Steps in processes of their own are forked by multiprocessing, from a server that it starts as a new interpreter: the
imports that :mod:`c2tc_pipeline.pipeline.fork_server` spares a run would be paid for after all. A run that was
forked from a prepared process can be that server itself, before it opens anything.
"""

from __future__ import annotations

import os
import socket
import sys
from multiprocessing import connection, forkserver, resource_tracker
from typing import Any


def fork_steps_from_here() -> bool:
    """Give multiprocessing a copy of this process, as it is now, to fork processes from.

    Only in a process that has no threads, and no connections that a copy could disturb.

    Returns
    -------
    bool
        Whether it was possible; without it multiprocessing starts a server of its own when it needs one.
    """
    server: Any = vars(forkserver)["_forkserver"]
    # From 3.14 on clients have to know a key, which is handed over in another way.
    if sys.version_info >= (3, 14) or server._forkserver_pid is not None:
        return False
    resource_tracker.ensure_running()
    with socket.socket(socket.AF_UNIX) as listener:
        address: str = vars(connection)["arbitrary_address"]("AF_UNIX")
        listener.bind(address)
        listener.listen()
        # The server ends when nobody is left who holds the other end: this process and those forked for it.
        alive, held = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(held)
            try:
                forkserver.main(listener.fileno(), alive, [])
            finally:
                os._exit(0)
        os.close(alive)
    server._forkserver_address, server._forkserver_alive_fd, server._forkserver_pid = address, held, process
    return True
