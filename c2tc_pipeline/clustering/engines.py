"""Execution engines for block tasks: the local process, or a Dask cluster.

An engine applies functions to blocks and keeps the results where they were computed until they are fetched.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from c2tc_pipeline.clustering.kernels import Kernel, make_kernel
from c2tc_pipeline.clustering.rows import RowBlock, SpillFile, unspill
from c2tc_pipeline.common.devices import LOCAL_ENGINE, check_engine
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import side_by_side

Value = TypeVar("Value")
Progress = Callable[[int, int], None]


class LostBlocks(RuntimeError):
    """Blocks that only a dead worker held; the caller, which has the rows, can begin again."""


def retry_lost_blocks(attempt: Callable[[], Value]) -> Value:
    """Call a function up to three times, as long as blocks are lost with their workers."""
    for left in (2, 1, 0):
        try:
            return attempt()
        except LostBlocks:
            if not left:
                raise
    raise AssertionError("unreachable")


class Engine(ABC):
    """Applies functions to blocks."""

    @abstractmethod
    def kernel(self, device: str) -> Kernel:
        """Return the kernel for a device setting, which refers to the machines of this engine."""

    @abstractmethod
    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        """Compute ``function(*arguments)``."""

    @abstractmethod
    def place(self, blocks: Sequence[RowBlock]) -> list[Any]:
        """Bring blocks to where they are processed; return handles for :meth:`map`."""

    @abstractmethod
    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        """Apply a function to each position of some columns, followed by the shared arguments; return handles."""

    @abstractmethod
    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        """Return the results of :meth:`map` in order, or one item of each."""

    @abstractmethod
    def together(
        self, calls: Sequence[Callable[[], Value]], progress: Progress | None = None, *, light: bool = False
    ) -> list[Value]:
        """Make independent calls that may use this engine; ``light`` ones use one core each and run side by side."""


class LocalEngine(Engine):
    """This process. One block at a time is in memory, and large per-row results are spilled to a file."""

    def kernel(self, device: str) -> Kernel:
        return make_kernel(device)

    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        return function(*arguments)

    def place(self, blocks: Sequence[RowBlock]) -> list[Any]:
        return list(blocks)

    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        positions = list(zip(*columns, strict=True))
        if len(positions) == 1:
            return [function(*positions[0], *shared)]
        file = SpillFile()
        return [file.spill(function(*unspill(position), *shared)) for position in positions]

    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        return [unspill(handle if index is None else handle[index]) for handle in handles]

    def together(
        self, calls: Sequence[Callable[[], Value]], progress: Progress | None = None, *, light: bool = False
    ) -> list[Value]:
        results = []
        for value in side_by_side(calls) if light else (call() for call in calls):
            results.append(value)
            if progress is not None:
                progress(len(results), len(calls))
        return results


LOCAL = LocalEngine()


@contextmanager
def open_engine(engine: str = LOCAL_ENGINE) -> Iterator[Engine]:
    """Open the engine of a setting: ``"local"`` or the address of a Dask scheduler."""
    check_engine(engine)
    if engine == LOCAL_ENGINE:
        yield LOCAL
        return
    try:
        from c2tc_pipeline.clustering.dask_engine import connect
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise InputError(
            f"The engine {engine!r} needs the package distributed; install c2tc_pipeline with the extra 'dask'."
        ) from None
    with connect(engine) as connected:
        yield connected
