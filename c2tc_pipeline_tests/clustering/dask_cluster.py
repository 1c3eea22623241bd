"""A Dask cluster for tests: a scheduler here, and workers that are processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster, Worker, WorkerPlugin

from c2tc_pipeline.common import memory
from c2tc_pipeline_tests.storage.s3_server import free_ports


@contextmanager
def running_cluster(
    *, workers: int = 2, memory_limit: str | int = 0, environment: Mapping[str, str] | None = None, **options: Any
) -> Iterator[str]:
    """Start a cluster and give out its address, in the spelling of the setting; 0 stands for no limit of memory."""
    with LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        memory_limit=memory_limit,
        dashboard_address="127.0.0.1:0",
        env=dict(environment or {}),
        **options,
    ) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://", 1)


class Death(WorkerPlugin):
    """Kills the worker that is the first to begin its so manyth task of a kind; only one worker dies.

    Parameters
    ----------
    task : str
        The name of the function.
    at : int
        Which of its calls in a worker is not survived.
    grave : path
        A file that is made by the worker that dies.
    """

    def __init__(self, task: str, at: int, grave: Path) -> None:
        self.task, self.at, self.grave = task, at, grave
        self.seen = 0

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish != "executing" or not str(key).startswith(self.task):
            return
        self.seen += 1
        if self.seen < self.at:
            return
        try:
            self.grave.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)


def on_the_cluster(address: str, plugin: WorkerPlugin) -> None:
    """Give a plugin to all workers, those that start later too."""
    with Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client:
        client.register_plugin(plugin)


def peak_memory(address: str) -> list[int]:
    """Return the most memory, in bytes, that each of the workers had at a time."""
    with Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client:
        return list(client.run(memory.peak_memory).values())


def process_ids(address: str) -> set[int]:
    """Return the ids of the workers' processes."""
    with Client(address.replace("dask://", "tcp://", 1), set_as_default=False) as client:
        return set(client.run(os.getpid).values())


@contextmanager
def mixed_cluster(*resources: Mapping[str, float]) -> Iterator[str]:
    """Start a cluster whose workers, processes of their own named by their place, offer different resources."""
    workers = {
        place: {"cls": Nanny, "options": {"nthreads": 1, "memory_limit": 0, "name": place, "resources": dict(offered)}}
        for place, offered in enumerate(resources)
    }
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "port": 0, "dashboard": False}}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://", 1)


class Seen(WorkerPlugin):
    """Leaves a file for each kind of task and each worker that began one: the task and the worker's name.

    Parameters
    ----------
    folder : path
        Where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.worker_name: Any = None

    def setup(self, worker: Worker) -> None:
        self.worker_name = worker.name

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish == "executing":
            (self.folder / f"{str(key).partition('-')[0]}@{self.worker_name}").touch()


class Murder(WorkerPlugin):
    """Kills another process when a worker begins a task of a kind.

    Parameters
    ----------
    task : str
        The beginning of the task's name.
    process : int
        The id of the other process.
    """

    def __init__(self, task: str, process: int) -> None:
        self.task, self.process = task, process

    def transition(self, key: Any, start: str, finish: str, **kwargs: Any) -> None:
        if finish == "executing" and str(key).startswith(self.task):
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)


@contextmanager
def separate_cluster() -> Iterator[tuple[str, int]]:
    """Start a scheduler and a worker as processes of their own; give out the address and the scheduler's process."""
    port = free_ports(1)[0]
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    scheduler = _started(*command, "--no-dashboard")
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    worker = _started(*command, "--no-nanny", "--death-timeout", "60")
    try:
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
        yield address.replace("tcp://", "dask://", 1), scheduler.pid
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def _started(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
