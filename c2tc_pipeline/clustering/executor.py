"""Who computes what blocks contribute: this process, or the workers of a cluster.

An executor applies functions to blocks and keeps what comes out where it was made, until it is asked for. It knows
nothing of k-means; the functions know nothing of where they run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from c2tc_pipeline.clustering.blocks import Block, OpenBlock
from c2tc_pipeline.clustering.row_numbers import PutAway, brought
from c2tc_pipeline.common.engines import LOCAL_ENGINE, check_engine
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.threads import side_by_side

if TYPE_CHECKING:
    from c2tc_pipeline.clustering.engine import Engine

Value = TypeVar("Value")


class LostBlocks(RuntimeError):
    """Blocks that only a worker had went away with it; whoever holds the rows can begin again."""


class Executor(ABC):
    """Applies functions to blocks."""

    @abstractmethod
    def engine(self, device: str) -> Engine:
        """Return the engine for a device setting, which means a device where this executor computes."""

    @abstractmethod
    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        """Return ``function(*arguments)``, computed where this executor computes."""

    @abstractmethod
    def place(self, blocks: Sequence[Block | OpenBlock]) -> list[Any]:
        """Bring blocks where they are worked on; what comes back is passed to :meth:`map`."""

    @abstractmethod
    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        """Apply a function to each position of some columns, with what all share after them; return handles."""

    @abstractmethod
    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        """Return what :meth:`map` made, in order; of tuples one item if only that is wanted."""

    @abstractmethod
    def together(
        self,
        calls: Sequence[Callable[[], Value]],
        progress: Callable[[int, int], None] | None = None,
        *,
        light: bool = False,
    ) -> list[Value]:
        """Do some independent things, each of which may use this executor; return their results in order.

        Parameters
        ----------
        calls : sequence of callable
            What to do.
        progress : callable, optional
            Called with (things done, things in all).
        light : bool
            Each of them keeps no more than one core busy, so that several may go on at once.
        """


class LocalExecutor(Executor):
    """This process, one block after the other: no more than one of those not in memory is there at a time.

    What comes out for each row of several blocks is put away until it is asked for.

    Examples
    --------
    >>> LocalExecutor().fetch(LocalExecutor().map(divmod, [7, 9], shared=(2,)), 1)
    [1, 1]
    """

    def engine(self, device: str) -> Engine:
        from c2tc_pipeline.clustering.engine import make_engine

        return make_engine(device)

    def call(self, function: Callable[..., Value], *arguments: Any, device: str = "cpu") -> Value:
        return function(*arguments)

    def place(self, blocks: Sequence[Block | OpenBlock]) -> list[Any]:
        return list(blocks)

    def map(
        self, function: Callable[..., Any], *columns: Sequence[Any], shared: Sequence[Any] = (), device: str = "cpu"
    ) -> list[Any]:
        positions = list(zip(*columns, strict=True))
        if len(positions) == 1:
            return [function(*positions[0], *shared)]
        away = PutAway()
        return [away.put(function(*brought(position), *shared)) for position in positions]

    def fetch(self, handles: Sequence[Any], index: int | None = None) -> list[Any]:
        return [brought(handle if index is None else handle[index]) for handle in handles]

    def together(
        self,
        calls: Sequence[Callable[[], Value]],
        progress: Callable[[int, int], None] | None = None,
        *,
        light: bool = False,
    ) -> list[Value]:
        results = []
        for value in side_by_side(calls) if light else (call() for call in calls):
            results.append(value)
            if progress is not None:
                progress(len(results), len(calls))
        return results


LOCAL = LocalExecutor()


@contextmanager
def open_executor(engine: str = LOCAL_ENGINE) -> Iterator[Executor]:
    """Give out who computes: this process, or a cluster to which it is connected until the end of the block.

    Parameters
    ----------
    engine : str
        ``"local"``, or the address of a Dask scheduler: ``dask://host:port``, ``tcp://host:port`` or
        ``tls://host:port``.

    Examples
    --------
    >>> with open_executor("local") as executor:
    ...     executor.call(abs, -3)
    3
    """
    check_engine(engine)
    if engine == LOCAL_ENGINE:
        yield LOCAL
        return
    try:
        from c2tc_pipeline.clustering.dask_executor import connected
    except ModuleNotFoundError as error:
        if error.name not in ("dask", "distributed"):
            raise
        raise InputError(
            f"The engine {engine!r} needs the package distributed; install c2tc_pipeline with the extra 'dask'."
        ) from None
    with connected(engine) as executor:
        yield executor
