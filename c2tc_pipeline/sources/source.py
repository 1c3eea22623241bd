"""The interface of sources: columns, version, digest and Arrow batches of one table.

A new kind of source is a subclass in a file of its own and one line of the registry in
:mod:`c2tc_pipeline.sources.addresses`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.location import Location, is_file_address
from c2tc_pipeline.sources.values import ValuesHash

if TYPE_CHECKING:
    import pyarrow as pa

Value = TypeVar("Value")

# Some 10 MB at twenty columns: large enough for vectorised work, small enough to hold several at once.
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class TableHeader:
    """Column names of a table, and its number of rows where the source knows it without being read."""

    columns: tuple[str, ...]
    rows: int | None


class Source(ABC):
    """One table in a file, a database or on a server.

    A subclass needs :meth:`from_address`, :attr:`shown`, :attr:`name`, :meth:`header` and :meth:`batches`.

    Attributes
    ----------
    kind : str
        Under this key a catalogue may describe the source field by field; empty where it may not.
    endings : tuple of str
        How names of files of this kind end.
    hashes_values : bool
        Whether :meth:`digest` hashes the values, so that it can be computed while they are read; else it hashes the
        file's bytes.
    tries : int
        How often reading the table may be begun when the server goes away. File systems retry by themselves.
    """

    kind: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    hashes_values: bool = True
    tries: int = 1

    @classmethod
    @abstractmethod
    def from_address(cls, address: str, storage_options: Mapping[str, Any] | None = None) -> Source | None:
        """Return the source at an address, or None when the address is of another kind; nothing is read."""

    @classmethod
    def address_of(cls, fields: Any) -> str:
        """Return the address of a source that a catalogue describes by fields; ValueError when a field is wrong."""
        raise NotImplementedError

    @classmethod
    def resolve(cls, address: str, folder: Path) -> str | None:
        """Return an address of this kind with its path relative to a folder; None for paths and other kinds."""
        return None

    @property
    @abstractmethod
    def shown(self) -> str:
        """The address for messages: without passwords, keys and signatures."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Default name of the table."""

    @abstractmethod
    def header(self) -> TableHeader:
        """Return the columns, and the rows where the source knows them without being read."""

    @abstractmethod
    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the source's order; at least one batch, which is empty when the table is.

        All batches have one schema, whose types are those of the whole column. Memory is bounded by the batch, not by
        the table. ``columns`` are read in the given order. InputError means that the source can't be read as it is;
        ConnectionError that a server went away or the source changed, and another try may succeed.
        """

    def version(self) -> str:
        """Return a mark of the source's present state, as cheap as the source allows; by default of its content.

        It holds at most 63 letters, digits and ``-``, so that it can be a tag, and begins with the size in bytes where
        another size means other content.
        """
        return f"db-{self.digest()[:32]}"

    def digest(self) -> str:
        """Return the hash of the content; reads all of it."""

        def read() -> str:
            values = ValuesHash()
            for batch in self.batches():
                values.update(batch)
            return values.hexdigest()

        return self.retried(read)

    def retried(self, action: Callable[[], Value], tries: int | None = None) -> Value:
        """Return the result of an action; repeat it when the connection failed."""
        return with_retries(action, tries or self.tries)

    def chosen(self, columns: Sequence[str] | None, known: Sequence[str]) -> list[str]:
        """Return the columns to read, all of the known ones by default; refuse unknown ones."""
        have = set(known)
        unknown = [name for name in columns or () if name not in have]
        if unknown:
            raise InputError(f"There is no column {unknown[0]!r} in {self.shown}; {closest(unknown[0], known)}.")
        return list(known) if columns is None else list(dict.fromkeys(columns))

    def needed(self, module: str) -> Any:
        """Import a module that only some sources need; the extra ``sources`` installs it."""
        try:
            return importlib.import_module(module)
        except ImportError:
            package = module.partition(".")[0]
            raise InputError(
                f"The source {self.shown} needs the package {package}; install c2tc_pipeline with the extra 'sources'."
            ) from None


class FileSource(Source):
    """Base of sources that are a file, known by the ending of its name."""

    hashes_values = False

    def __init__(self, location: Location) -> None:
        self.location = location

    @classmethod
    def from_address(cls, address: str, storage_options: Mapping[str, Any] | None = None) -> Source | None:
        if not is_file_address(address):
            return None
        location = Location.parse(address, storage_options)
        return cls(location) if location.name.lower().endswith(cls.endings) else None

    @property
    def shown(self) -> str:
        return str(self.location)

    @property
    def name(self) -> str:
        return self.location.stem(self.endings)

    def version(self) -> str:
        return self.location.version()

    def digest(self) -> str:
        return self.location.digest()


def sliced(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Cut batches so that none has more than ``rows`` rows; nothing is copied."""
    for batch in batches:
        for start in range(0, max(batch.num_rows, 1), rows):
            yield batch.slice(start, rows)


def version_size(version: str) -> int | None:
    """Return the size in bytes that a source's version begins with; that of a database has none."""
    size = version.partition("-")[0]
    return int(size) if size.isdigit() else None


def refuse_duplicate_columns(names: Sequence[str], shown: str) -> None:
    """Refuse two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"Two columns of {shown} are called {name!r}; rename one of them.")
