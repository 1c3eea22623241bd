"""The workers of a Dask cluster as those who compute: one task for each block of each class.

What a task needs is either small enough to go with it, or a block that workers read from storage, or, where they
cannot, a block that was sent to them. In the first two cases the scheduler can have anything computed again that a lost
worker had, so that the loss shows in the time only; in the last one the class is begun again. Nothing is stored in
Dask's own format: it is only what processes of one run say to each other.
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
from c2tc_pipeline.clustering.blocks import Block, OpenBlock
from c2tc_pipeline.clustering.engine import Engine
from c2tc_pipeline.clustering.executor import Executor, LostBlocks, Value
from c2tc_pipeline.clustering.row_source import RowSource, StoredRows
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.threads import cores

_CONNECT_SECONDS = 10
# How often a task that raised an error is tried again, and one whose rows got lost.
_RETRIES = 2
# How long workers may all be gone before the work is given up.
_CHECK_SECONDS = 10
_CHECKS = 6
_TRIES = 3
# Arrays from this size on are sent once for all tasks of a step instead of with each.
_SHARED_BYTES = 32 * 2**10
# Up to this size a block goes with its task and so is never lost; larger ones would fill the scheduler's memory.
_SENT_BYTES = 4 * 2**20
# Stored rows stay in the workers' memory between steps if they take no more than this share of it.
_HELD_SHARE = 0.4
# Classes in work at the same time; each may have many tasks.
_CLASSES_AT_ONCE = 8
_CHECKED_BYTES = 4_096

_blas_threads: ContextVar[int | None] = ContextVar("blas_threads", default=None)


@contextmanager
def connected(engine: str) -> Iterator[DaskExecutor]:
    """Connect to a scheduler, or say in one sentence why not; part with it at the end of the block.

    Parameters
    ----------
    engine : str
        The address, ``dask://host:port`` or as Dask spells it.
    """
    address = engine.replace("dask://", "tcp://", 1)
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name="c2tc")
    except (OSError, ValueError):
        raise InputError(
            f"No Dask scheduler answers at {engine!r}; start one with 'dask scheduler', check host and port, or choose "
            "the engine 'local'."
        ) from None
    with _quiet_client():
        try:
            _check_workers(client, engine)
            yield DaskExecutor(client, engine)
        finally:
            client.close(timeout=_CONNECT_SECONDS)


@contextmanager
def _quiet_client() -> Iterator[None]:
    """Keep Dask's client from writing a trace where the scheduler went away; a sentence says so."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class DaskExecutor(Executor):
    """The workers that a client is connected to.

    Parameters
    ----------
    client : distributed.Client
        The connection.
    shown : str
        What the cluster is called in messages.
    """

    def __init__(self, client: Client, shown: str) -> None:
        self.client = client
        self.shown = shown
        pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        # Some libraries tell nobody, and none of them listens to a limit either.
        self._blas_threads = max(pools, default=1)

    def engine(self, device: str) -> Engine:
        offered = any(worker["resources"].get("GPU") for worker in self._workers())
        if device == "cpu" or (device == "auto" and not offered):
            from c2tc_pipeline.clustering.cpu import CpuEngine

            return CpuEngine()
        if device not in ("auto", "cuda"):
            raise InputError(f"Device {device!r} is none of a Dask cluster; choose 'auto', 'cpu' or 'cuda'.")
        if not offered:
            raise InputError(
                f"No worker of the Dask cluster {self.shown!r} offers the resource GPU; start workers with "
                "--resources GPU=1, or choose the device 'cpu'."
            )
        from c2tc_pipeline.clustering.torch_engine import TorchEngine

        return TorchEngine("cuda")

    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        for further in reversed(range(_TRIES)):
            placed = [self._sent(argument) for argument in arguments]
            task = self._submit(device, _as_here, _blas_threads.get() or self._blas_threads, function, *placed)
            try:
                return self._results([task])[0]
            except LostBlocks:
                if not further:
                    raise
        raise AssertionError("There is one try at least.")

    def place(self, blocks: Sequence[Block | OpenBlock]) -> list[Any]:
        stored = [block.shared() for block in blocks if isinstance(block, Block)]
        if len(stored) == len(blocks) and self._all_can_read(blocks, stored):
            if sum(len(block) * block.rows.row_bytes for block in stored) > _HELD_SHARE * self._memory():
                return list(stored)
            return [self._submit("cpu", Block.open, block) for block in stored]
        opened = (block.open() for block in blocks)
        return [
            self._submit("cpu", _same, block) if block.X.nbytes <= _SENT_BYTES else self._scatter(block)
            for block in opened
        ]

    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        common = [self._share(value) for value in shared]
        return [self._submit(device, function, *position, *common) for position in zip(*columns, strict=True)]

    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        if index is None:
            return self._results(handles)
        return self._results([self._submit("cpu", itemgetter(index), handle) for handle in handles])

    def together(
        self,
        calls: Sequence[Callable[[], Value]],
        progress: Callable[[int, int], None] | None = None,
        *,
        light: bool = False,
    ) -> list[Value]:
        context = copy_context()
        if light and min(len(calls), cores()) > 1:
            # As in this process, where such calls share the cores; the last bits depend on it.
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

    def _sent(self, argument: Any) -> Any:
        if isinstance(argument, list):
            return [self._sent(part) for part in argument]
        return self.place([argument])[0] if isinstance(argument, Block | OpenBlock) else self._share(argument)

    def _share(self, value: Any) -> Any:
        """Send an array once; as a task of its own, because what a task made can be made again."""
        if isinstance(value, np.ndarray) and value.nbytes >= _SHARED_BYTES:
            return self._submit("cpu", _same, value)
        return value

    def _scatter(self, block: OpenBlock) -> Future:
        try:
            return self.client.scatter(block, hash=False)
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _results(self, tasks: Sequence[Future]) -> list[Any]:
        """Wait for tasks and bring their results, in order."""
        try:
            self._wait(tasks)
            return list(self.client.gather(list(tasks)))
        except KilledWorker:
            raise InputError(
                f"Workers of the Dask cluster {self.shown!r} died again and again at the same rows; give them more "
                "memory (--memory-limit), and see their logs."
            ) from None
        except CancelledError:
            if self.client.status != "running" or not self._workers():
                raise self._gone() from None
            raise LostBlocks(f"A worker of the Dask cluster {self.shown!r} went away with rows it alone had.") from None

    def _wait(self, tasks: Sequence[Future]) -> None:
        """Wait as long as there is anyone at work; workers that died may come back, but not for ever."""
        deserted = 0
        while deserted < _CHECKS:
            try:
                with self.client.as_current():
                    wait(list(tasks), timeout=_CHECK_SECONDS)
                return
            except TimeoutError:
                deserted = 0 if self._workers() else deserted + 1
        raise self._gone()

    def _gone(self) -> ConnectionError:
        return ConnectionError(f"The Dask cluster {self.shown!r} went away in the middle of the work; run again.")

    def _workers(self) -> list[dict[str, Any]]:
        try:
            return list(self.client.scheduler_info(n_workers=-1)["workers"].values())
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _memory(self) -> float:
        """Return the workers' memory in bytes; infinite where one has no limit."""
        return float(sum(worker["memory_limit"] or np.inf for worker in self._workers()))

    def _all_can_read(self, blocks: Sequence[Block | OpenBlock], stored: Sequence[Block]) -> bool:
        """Tell whether all workers find under their name the rows that are here."""
        here, there = blocks[0], stored[0].rows
        if not isinstance(here, Block) or not isinstance(there, StoredRows):
            return False
        few = min(len(here), max(1, _CHECKED_BYTES // there.row_bytes))
        expected = _seen(here.rows.part(0, few))
        return all(found == expected for found in self.client.run(_seen, there.part(0, few)).values())


def _check_workers(client: Client, shown: str) -> None:
    """Refuse a cluster without workers, or with other versions of this package."""
    try:
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
    except TimeoutError:
        raise InputError(
            f"The Dask scheduler {shown!r} has no workers; start some with 'dask worker' and its address."
        ) from None

    def version() -> str | None:
        # Sent as it is, since the worker may know nothing of this package.
        try:
            import c2tc_pipeline
        except ImportError:
            return None
        return c2tc_pipeline.__version__

    for worker, found in client.run(version).items():
        if found != __version__:
            has = "lacks the package c2tc_pipeline" if found is None else f"has c2tc_pipeline {found}"
            raise InputError(f"The Dask worker {worker} {has}; install version {__version__}, which is used here.")


def _seen(rows: RowSource) -> str:
    """Return what a process finds where rows should be."""
    try:
        return hashlib.sha256(rows.read().tobytes()).hexdigest()
    except (OSError, InputError) as error:
        return type(error).__name__


def _same(value: Value) -> Value:
    return value


def _as_here(threads: int, function: Callable[..., Value], *arguments: Any) -> Value:
    """Call a function with as many threads as it would have where it was asked for, which decides its last bits."""
    with threadpool_limits(limits=threads, user_api="blas"):
        return function(*arguments)
