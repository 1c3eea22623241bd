"""Run block tasks on the workers of a Dask cluster: one task for each block of each class.

Task arguments are small values sent with the task, blocks that workers read from storage, or blocks sent to workers.
After the loss of a worker the scheduler repeats tasks of the first two kinds; with blocks that were sent, the class is
begun again. Nothing is stored in Dask's own format.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from operator import itemgetter
from typing import Any

import numpy as np
from distributed import Client, Future, KilledWorker, wait
from threadpoolctl import threadpool_info, threadpool_limits

from c2tc_pipeline import __version__
from c2tc_pipeline.clustering.engines import Engine, LostBlocks, Progress, Value, retry_lost_blocks
from c2tc_pipeline.clustering.kernels import CpuKernel, Kernel
from c2tc_pipeline.clustering.rows import RowBlock, RowSource
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import cores

_CONNECT_SECONDS = 10
# Retries of a task that raised an error.
_RETRIES = 2
# Waiting ends after this many checks without any worker.
_CHECK_SECONDS = 10
_CHECKS = 6
# Arrays from this size on are sent once for all tasks of a step.
_SHARED_BYTES = 32 * 2**10
# Blocks up to this size are sent with their task and cannot be lost; larger ones would fill the scheduler's memory.
_SENT_BYTES = 4 * 2**20
# Stored rows stay in the workers' memory between steps if they take at most this share of it.
_MEMORY_SHARE = 0.4
_CLASSES_AT_ONCE = 8
_PROBE_BYTES = 4_096

_blas_threads: ContextVar[int | None] = ContextVar("blas_threads", default=None)


@contextmanager
def connect(engine: str) -> Iterator[DaskEngine]:
    """Connect to a scheduler at ``dask://host:port``, ``tcp://`` or ``tls://`` until the end of the block."""
    address = engine.replace("dask://", "tcp://", 1)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="c2tc")
    except (OSError, ValueError):
        raise InputError(
            f"No Dask scheduler answers at {engine!r}; start one with 'dask scheduler', check host and port, or choose "
            "the engine 'local'."
        ) from None
    # The client logs a traceback when the scheduler disappears, beside the error that is raised here.
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        _check_workers(client, engine)
        yield DaskEngine(client, engine)
    finally:
        client.close(timeout=_CONNECT_SECONDS)
        logger.setLevel(level)


class DaskEngine(Engine):
    """The workers that a client is connected to; ``shown`` names the cluster in messages."""

    def __init__(self, client: Client, shown: str) -> None:
        self.client = client
        self.shown = shown
        pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        # threadpoolctl does not know every BLAS (macOS Accelerate).
        self._blas_threads = max(pools, default=1)

    def kernel(self, device: str) -> Kernel:
        offered = any(worker["resources"].get("GPU") for worker in self._workers())
        if device == "cpu" or (device == "auto" and not offered):
            return CpuKernel()
        if device not in ("auto", "cuda"):
            raise InputError(f"Device {device!r} is not supported on a Dask cluster; choose 'auto', 'cpu' or 'cuda'.")
        if not offered:
            raise InputError(
                f"No worker of the Dask cluster {self.shown!r} offers the resource GPU; start workers with "
                "--resources GPU=1, or choose the device 'cpu'."
            )
        from c2tc_pipeline.clustering.torch_kernel import TorchKernel

        return TorchKernel("cuda")

    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        threads = _blas_threads.get() or self._blas_threads

        def attempt() -> Any:
            sent = [self._send(argument) for argument in arguments]
            return self._results([self._submit(device, call_with_blas_threads, threads, function, *sent)])[0]

        return retry_lost_blocks(attempt)

    def place(self, blocks: Sequence[RowBlock]) -> list[Any]:
        stored = self._stored(blocks)
        if stored is not None:
            if sum(len(block) * block.rows.row_bytes for block in stored) > _MEMORY_SHARE * self._memory():
                return list(stored)
            return [self._submit("cpu", RowBlock.open, block) for block in stored]
        return [self._send_block(block.open()) for block in blocks]

    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        common = [self._send_once(value) for value in shared]
        return [self._submit(device, function, *position, *common) for position in zip(*columns, strict=True)]

    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        if index is None:
            return self._results(handles)
        return self._results([self._submit("cpu", itemgetter(index), handle) for handle in handles])

    def together(
        self, calls: Sequence[Callable[[], Value]], progress: Progress | None = None, *, light: bool = False
    ) -> list[Value]:
        context = copy_context()
        if light and min(len(calls), cores()) > 1:
            # One BLAS thread as in the local engine, because the last bits depend on it.
            context.run(_blas_threads.set, 1)
        pool = ThreadPoolExecutor(_CLASSES_AT_ONCE, thread_name_prefix="c2tc-class")
        try:
            tasks = [pool.submit(context.copy().run, call) for call in calls]
            for done, task in enumerate(as_completed(tasks), start=1):
                task.result()
                if progress is not None:
                    progress(done, len(calls))
            return [task.result() for task in tasks]
        finally:
            pool.shutdown(cancel_futures=True)

    def _submit(self, device: str, function: Callable[..., Any], *arguments: Any) -> Future:
        resources = {"GPU": 1} if device.startswith("cuda") else None
        return self.client.submit(function, *arguments, pure=False, retries=_RETRIES, resources=resources)

    def _send(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self._send(part) for part in argument]
        return self.place([argument])[0] if isinstance(argument, RowBlock) else self._send_once(argument)

    def _send_once(self, value: Any) -> Any:
        """Send a large array as the result of a task, which can be repeated."""
        large = isinstance(value, np.ndarray) and value.nbytes >= _SHARED_BYTES
        return self._submit("cpu", _same, value) if large else value

    def _send_block(self, block: RowBlock) -> Future:
        if len(block) * block.rows.row_bytes <= _SENT_BYTES:
            return self._submit("cpu", _same, block)
        try:
            return self.client.scatter(block, hash=False)
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _results(self, tasks: Sequence[Future]) -> list[Any]:
        """Wait for tasks and return their results in order."""
        try:
            self._wait(tasks)
            return list(self.client.gather(list(tasks)))
        except KilledWorker:
            raise InputError(
                f"Workers of the Dask cluster {self.shown!r} died repeatedly at the same task; give them more memory "
                "(--memory-limit), and see their logs."
            ) from None
        except CancelledError:
            if self.client.status != "running" or not self._workers():
                raise self._gone() from None
            raise LostBlocks(f"A worker of the Dask cluster {self.shown!r} died with blocks sent to it.") from None

    def _wait(self, tasks: Sequence[Future]) -> None:
        """Wait while there are workers; dead ones may be restarted."""
        failed = 0
        while failed < _CHECKS:
            try:
                with self.client.as_current():
                    wait(list(tasks), timeout=_CHECK_SECONDS)
                return
            except TimeoutError:
                failed = 0 if self._workers() else failed + 1
        raise self._gone()

    def _gone(self) -> ConnectionError:
        return ConnectionError(f"The connection to the Dask cluster {self.shown!r} was lost; run again.")

    def _workers(self) -> list[dict[str, Any]]:
        try:
            return list(self.client.scheduler_info(n_workers=-1)["workers"].values())
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _memory(self) -> float:
        """Return the workers' memory in bytes; infinite if one has no limit."""
        return float(sum(worker["memory_limit"] or np.inf for worker in self._workers()))

    def _stored(self, blocks: Sequence[RowBlock]) -> list[RowBlock] | None:
        """Return the blocks as files if every worker reads the same first rows there as this process."""
        stored = [
            RowBlock(there, block.first, block.weight, block.positions)
            for block in blocks
            if (there := block.rows.stored) is not None
        ]
        if len(stored) < len(blocks):
            return None
        few = min(len(blocks[0]), max(1, _PROBE_BYTES // blocks[0].rows.row_bytes))
        expected = _probe(blocks[0].rows.part(0, few))
        found = self.client.run(_probe, stored[0].rows.part(0, few))
        return stored if all(digest == expected for digest in found.values()) else None


def _check_workers(client: Client, shown: str) -> None:
    """Refuse a cluster without workers, or with another version of this package."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except TimeoutError:
        raise InputError(
            f"The Dask scheduler {shown!r} has no workers; start some with 'dask worker' and its address."
        ) from None

    def version() -> str | None:
        # A nested function is sent by value: the worker may lack this package.
        try:
            import c2tc_pipeline
        except ImportError:
            return None
        return c2tc_pipeline.__version__

    for worker, found in client.run(version).items():
        if found != __version__:
            has = "lacks the package c2tc_pipeline" if found is None else f"has c2tc_pipeline {found}"
            raise InputError(f"The Dask worker {worker} {has}; install version {__version__}, which is used here.")


def _probe(rows: RowSource) -> str:
    """Return the digest of rows, or the name of the error that reading them raises."""
    try:
        return hashlib.sha256(rows.read().tobytes()).hexdigest()
    except (OSError, InputError) as error:
        return type(error).__name__


def _same(value: Value) -> Value:
    return value


def call_with_blas_threads(threads: int, function: Callable[..., Value], *arguments: Any) -> Value:
    """Call a function with the BLAS threads of the client, because the last bits depend on their number."""
    with threadpool_limits(limits=threads, user_api="blas"):
        return function(*arguments)
