"""A Dask cluster for tests: scheduler and workers are processes of their own, started by Dask's commands.

Nothing of the cluster but a client runs in the test process, and processes are stopped by the handle that started them.
The scheduler chooses its port and tells it by a file, so that no other process can take the port meanwhile.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client, Worker, WorkerPlugin

from c2tc_pipeline.common import stages

ROOT = Path(__file__).parents[2]
_START_SECONDS = 60


@dataclass(frozen=True)
class RunningCluster:
    """The address of a cluster as the setting ``engine`` spells it, and the pid of its scheduler."""

    address: str
    scheduler_pid: int


@contextmanager
def start_cluster(
    *, workers: Sequence[str] = ("", ""), memory_limit: int = 0, environment: Mapping[str, str] | None = None
) -> Iterator[RunningCluster]:
    """Start a scheduler and a worker for each of ``workers``, the resources that it offers, such as ``"GPU=1"``.

    Workers are restarted only under a limit of memory, in bytes; 0 is no limit.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    variables = {**os.environ, "PYTHONPATH": path, **threads, **(environment or {})}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="c2tc-dask-", ignore_cleanup_errors=True))
        file = ["--scheduler-file", f"{folder}/scheduler.json"]

        def start(command: str, *options: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{command}", *file, "--no-dashboard", *options],
                env=variables,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(_stop, process)
            return process

        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
        for name, resources in enumerate(workers):
            options = ["--nthreads", "1", "--name", str(name), "--memory-limit", str(memory_limit)]
            options += ["--local-directory", folder, "--death-timeout", str(_START_SECONDS)]
            options += ["--nanny" if memory_limit else "--no-nanny"]
            options += ["--resources", resources] if resources else []
            start("worker", *options)
        with Client(scheduler_file=file[1], timeout=_START_SECONDS, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(len(workers), timeout=_START_SECONDS)
            address = str(client.scheduler_info()["address"])
        yield RunningCluster(address.replace("tcp://", "dask://", 1), scheduler.pid)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Kill a process; the worker of a killed nanny ends by itself."""
    process.kill()
    process.wait()


@contextmanager
def running_cluster(**options: Any) -> Iterator[str]:
    """Start a cluster as :func:`start_cluster` does and yield its address."""
    with start_cluster(**options) as cluster:
        yield cluster.address


@contextmanager
def client_of(address: str) -> Iterator[Client]:
    with Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client:
        yield client


def register(address: str, plugin: WorkerPlugin) -> None:
    """Give a plugin to all workers."""
    with client_of(address) as client:
        client.register_plugin(plugin)


def peak_memory(address: str) -> list[int]:
    """Return the peak memory of each worker in bytes."""
    with client_of(address) as client:
        return list(client.run(stages.peak_memory).values())


def worker_pids(address: str) -> set[int]:
    with client_of(address) as client:
        return set(client.run(os.getpid).values())


class Kill(WorkerPlugin):
    """Kill a process once, when a worker begins its ``at``-th task of a name: that worker, or the process ``pid``."""

    def __init__(self, task: str, at: int, mark: Path, pid: int | None = None) -> None:
        self.task, self.at, self.mark, self.pid = task, at, mark, pid
        self.seen = 0

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish != "executing" or not str(key).startswith(f"{self.task}-"):
            return
        self.seen += 1
        if self.seen < self.at:
            return
        # Only the first worker that gets here makes the file, so that no later process of the same pid is hit.
        with suppress(FileExistsError):
            self.mark.touch(exist_ok=False)
            os.kill(os.getpid() if self.pid is None else self.pid, signal.SIGKILL)


class Seen(WorkerPlugin):
    """Make a file ``task@worker`` for each task name and worker that began one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worker_name: Any = None

    def setup(self, worker: Worker) -> None:
        self.worker_name = worker.name

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish == "executing":
            (self.folder / f"{str(key).partition('-')[0]}@{self.worker_name}").touch()
