"""The interface of sources: columns, version, digest and Arrow batches of one table.

A new kind of source is a subclass in a file of its own and one line of the registry in
:mod:`c2tc_pipeline.sources.addresses`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import unquote

from c2tc_pipeline.common.errors import InputError, Notice, closest, with_retries
from c2tc_pipeline.sources.location import Location, is_file_address
from c2tc_pipeline.sources.values import TextColumn, ValuesHash
from c2tc_pipeline.storage.manifest import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

Value = TypeVar("Value")

# Some 10 MB at twenty columns: large enough for vectorised work, small enough to hold several at once.
BATCH_ROWS = 65_536
# How Hive names the folder of rows without a value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class TableHeader:
    """Column names of a table, and its number of rows if that is known without reading it."""

    columns: tuple[str, ...]
    rows: int | None


class Source(ABC):
    """One table in a file, a database or on a server.

    A subclass needs :meth:`from_address`, :attr:`shown`, :attr:`name`, :meth:`header` and :meth:`batches`.

    Attributes
    ----------
    kind : str
        Under this key a catalogue may describe the source field by field; empty where it may not.
    format : str
        What files of this kind are called.
    endings : tuple of str
        How names of files of this kind end.
    signature : bytes
        A regular expression for how the content of such a file begins; empty if there is none.
    may_be_packed : bool
        Whether files of this kind are also read compressed.
    extra : str
        The extra that installs what this kind needs beyond the package's own dependencies.
    hashes_values : bool
        Whether :meth:`digest` hashes the values, so that it can be computed while they are read; else it hashes the
        file's bytes.
    notices : sequence of Notice
        Notices about the source itself.
    tries : int
        Maximum number of attempts to read the table when the connection fails. File systems retry by themselves.
    """

    kind: ClassVar[str] = ""
    format: ClassVar[str] = ""
    endings: ClassVar[tuple[str, ...]] = ()
    signature: ClassVar[bytes] = b""
    may_be_packed: ClassVar[bool] = False
    extra: ClassVar[str] = "sources"
    hashes_values: bool = True
    tries: int = 1
    notices: Sequence[Notice] = ()

    @classmethod
    @abstractmethod
    def from_address(cls, address: str) -> Source | None:
        """Return the source at an address, or None when the address is of another kind; nothing is read."""

    @classmethod
    def of_file(cls, location: Location) -> Source | None:
        """Return the source of a file whose content has the signature, whatever its name; None by default."""
        return None

    @classmethod
    def of_folder(cls, location: Location, files: Sequence[str]) -> Source | None:
        """Return the source of a folder, given the names of files and of folders (with a ``/``) in it at any depth."""
        return None

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
        """Return the columns, and the number of rows if it is known without reading them."""

    @abstractmethod
    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the source's order; at least one batch, which is empty when the table is.

        All batches have one schema, whose types are those of the whole column. Memory is bounded by the batch, not by
        the table. ``columns`` are read in the given order. InputError means that the source can't be read as it is;
        ConnectionError that a server went away or the source changed, and another try may succeed.
        """

    def version(self) -> str:
        """Return a fingerprint of the source's present state, as cheap as the source allows; by default of its content.

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
                f"The source {self.shown} needs the package {package}; install c2tc_pipeline with the extra "
                f"{self.extra!r}."
            ) from None


class FileSource(Source):
    """Base of sources that are a file, known by the ending of its name, or a folder of such files, its parts.

    Parts are read in the order of their names. Folders in the folder are named after a value that all parts in them
    share, such as ``year=2024`` (as Hive does it); these become columns. A subclass reads parts.
    """

    hashes_values = False

    def __init__(self, location: Location) -> None:
        self.location = location

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        if not is_file_address(address):
            return None
        location = Location.parse(address)
        return cls(location) if location.name.lower().endswith(cls.endings) else None

    @classmethod
    def of_file(cls, location: Location) -> Source:
        return cls(location)

    @classmethod
    def of_folder(cls, location: Location, files: Sequence[str]) -> Source | None:
        return cls(location) if any(name.lower().endswith(cls.endings) for name in files) else None

    @property
    def shown(self) -> str:
        return str(self.location)

    @property
    def name(self) -> str:
        return self.location.stem(self.endings)

    @cached_property
    def is_folder(self) -> bool:
        """Whether the table is in several files."""
        return self.location.is_folder()

    @abstractmethod
    def described(self, parts: Sequence[Part]) -> TableHeader:
        """Return the columns that all parts share, and their number of rows if the files state it."""

    @abstractmethod
    def read(self, parts: Sequence[Part], columns: list[str], rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of all parts as in :meth:`batches`, each batch with the number of its part."""

    def header(self) -> TableHeader:
        parts = self.parts()
        header = self.described(parts)
        names = (*header.columns, *parts[0].keys)
        refuse_duplicate_columns(names, self.shown)
        return TableHeader(names, header.rows)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        parts = self.parts()
        own = self.described(parts).columns
        refuse_duplicate_columns((*own, *parts[0].keys), self.shown)
        wanted = self.chosen(columns, (*own, *parts[0].keys))
        keys = {name: key_column([part.keys[name] for part in parts]) for name in wanted if name not in own}
        inner = [name for name in wanted if name not in keys]
        # Without a column Arrow forgets how many rows there are.
        for number, batch in self.read(parts, inner or list(own[:1]), rows):
            for name, values in keys.items():
                batch = batch.append_column(name, constant(values[number], batch.num_rows))
            yield batch.select(wanted) if keys else batch

    def parts(self) -> list[Part]:
        """Return the files of the table."""
        if not self.is_folder:
            return [Part(self.location, self.location.name)]
        parts = list(folder_parts(self.location, self.endings))
        for part in parts:
            if part.keys.keys() != parts[0].keys.keys():
                raise InputError(
                    f"The part {part.name} of {self.shown} lies in other folders than {parts[0].name}; give all parts "
                    "folders of the same names."
                )
        if not parts:
            raise InputError(f"The folder {self.shown} holds no file that ends in one of: {', '.join(self.endings)}.")
        return parts

    def version(self) -> str:
        if not self.is_folder:
            return self.location.version()
        states = [(part.name, part.location.version()) for part in self.parts()]
        size = sum(version_size(state) or 0 for _, state in states)
        return f"{size}-{hash_json(states)[:32]}"

    def digest(self) -> str:
        if not self.is_folder:
            return self.location.digest()
        return hash_json([(part.name, part.location.digest()) for part in self.parts()])


@dataclass(frozen=True)
class Part:
    """One file of a table, its name in the table's folder, and the values that its folders' names give to columns."""

    location: Location
    name: str
    keys: Mapping[str, str | None] = field(default_factory=dict)


def folder_parts(
    folder: Location, endings: tuple[str, ...], prefix: str = "", keys: Mapping[str, str | None] | None = None
) -> Iterator[Part]:
    """Yield the files under a folder that have one of some endings; names that begin with _ or . are left out."""
    listed = folder.entries()
    shown = [(entry, inner) for entry, inner in listed if not entry.name.startswith(("_", "."))]
    files = [entry for entry, inner in shown if not inner and entry.name.lower().endswith(endings)]
    if any(entry.name == "_delta_log" for entry, _ in listed):
        raise InputError(f"The folder {folder} is a Delta Lake table; end its address with a slash to read it as one.")
    for entry, inner in shown:
        key, equals, value = entry.name.partition("=")
        if inner and not (key and equals):
            raise InputError(
                f"The folder {folder} holds the folder {entry.name!r}; put all parts of the table into one, or into "
                "folders named as in year=2024."
            )
        if inner:
            found = {unquote(key): None if value == NO_VALUE else unquote(value)}
            yield from folder_parts(entry, endings, f"{prefix}{entry.name}/", {**(keys or {}), **found})
        elif entry in files:
            yield Part(entry, prefix + entry.name, keys or {})


def key_column(values: Sequence[str | None]) -> pa.Array:
    """Return the values of a column that folders are named after, in the type that all of them have."""
    import pyarrow as pa

    column, text = TextColumn(), pa.array(values, pa.string())
    column.add(text)
    return column.convert(text)


def constant(value: pa.Scalar, rows: int) -> pa.Array:
    """Return a column of one value."""
    import pyarrow as pa

    return pa.repeat(value, rows)


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
