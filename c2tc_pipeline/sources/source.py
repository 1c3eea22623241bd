"""What every source of a table can do: say what it holds and in which state it is, and hand out its rows in batches.

One file a kind stands beside this one; which of them an address asks for is decided in
:mod:`c2tc_pipeline.sources.addresses`. What the columns mean is decided later, in :mod:`c2tc_pipeline.tables`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from c2tc_pipeline.common.errors import InputError, closest

if TYPE_CHECKING:
    import pyarrow as pa

# Some 10 MB at twenty columns: large enough for vectors to pay, small enough to hold several at once.
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class TableHeader:
    """What can be known of a table without reading it.

    Parameters
    ----------
    columns : tuple of str
        Column names in order.
    rows : int or None
        Number of rows, or None where the source doesn't say.

    Examples
    --------
    >>> TableHeader(("age", "income"), rows=None).columns
    ('age', 'income')
    """

    columns: tuple[str, ...]
    rows: int | None


class Source(ABC):
    """Where a table comes from.

    Attributes
    ----------
    hashes_values : bool
        Whether :meth:`digest` is made of the values, so that it can be taken while they are read, and is bound to what
        was read; else it is that of the file's bytes.
    tries : int
        How often reading the table as a whole may be begun when the server goes away. File systems try again by
        themselves, piece by piece.
    """

    hashes_values: bool = False
    tries: int = 1

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address as it may be shown: without passwords, keys and signatures."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the table is called where nobody names it."""

    @abstractmethod
    def header(self) -> TableHeader:
        """Return the columns, and the rows where the source tells them without being read."""

    @abstractmethod
    def version(self) -> str:
        """Return a mark of the source's present state, as cheap as the source allows.

        Another state may have the same content, and then the digest is the same. It holds letters, digits and ``-``, at
        most 63 of them, so that it can be a tag. It begins with the size in bytes where content of another size is
        other content for sure.
        """

    @abstractmethod
    def digest(self) -> str:
        """Return the hash of the content; reads all of it."""

    @abstractmethod
    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the source's order; at least one batch, which is empty when the table is.

        All batches have one schema, whose types are those of the whole column. Memory is bounded by the batch, not by
        the table.

        Parameters
        ----------
        columns : sequence of str, optional
            Only these, in this order.
        rows : int
            At most so many rows a batch.

        Raises
        ------
        InputError
            When the source can't be read as it is; the message says why and where.
        ConnectionError
            When a server went away or the source changed; another try may succeed.
        """

    def chosen(self, columns: Sequence[str] | None, known: Sequence[str]) -> list[str]:
        """Return the columns to read, or say which of them there is not."""
        if columns is None:
            return list(known)
        have = set(known)
        for name in columns:
            if name not in have:
                raise InputError(f"There is no column {name!r} in {self.shown}; {closest(name, known)}.")
        return list(columns)


def sliced(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Cut batches so that none has more than so many rows; nothing is copied.

    Examples
    --------
    >>> import pyarrow as pa
    >>> [batch.num_rows for batch in sliced([pa.record_batch({"a": [1, 2, 3]}), pa.record_batch({"a": [4]})], 2)]
    [2, 1, 1]
    """
    for batch in batches:
        if batch.num_rows <= rows:
            yield batch
            continue
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def refuse_twins(names: Sequence[str], shown: str) -> None:
    """Refuse two columns of one name.

    Examples
    --------
    >>> refuse_twins(["a", "b", "a"], "t.csv")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Two columns of t.csv are called 'a'; rename one of them.
    """
    seen = set()
    for name in names:
        if name in seen:
            raise InputError(f"Two columns of {shown} are called {name!r}; rename one of them.")
        seen.add(name)
