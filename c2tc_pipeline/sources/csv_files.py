"""CSV files: dialect, text in blocks, types decided over whole columns, and the row at fault when a file is wrong.

A file larger than a few blocks is read twice, for the types and for the values, so that memory is bounded by a block.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import packed
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import FileSource, Part, TableHeader, refuse_duplicate_columns, sliced
from c2tc_pipeline.sources.values import MISSING_SPELLINGS, TextColumn

if TYPE_CHECKING:
    import pyarrow as pa

# A row must fit into two blocks; rows of megabytes are the sign of an unclosed quotation mark.
BLOCK_BYTES = 1 << 22
# Text of small files is kept between the two passes, so that they are read once.
KEPT_BYTES = 1 << 26
# The search for a fault never reads longer rows.
LONGEST_ROW = 2 * BLOCK_BYTES
DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_BYTES = 1 << 20
_SAMPLE_ROWS = 50
# Parts of a table that are kept open between the two passes.
_HELD_FILES = 64


class CsvSource(FileSource):
    """A CSV file, its fields separated by commas, semicolons, tabs or bars, or a folder of such files."""

    format = "CSV"
    endings = tuple(f"{kind}{packing}" for kind in (".csv", ".tsv") for packing in packed.ENDINGS)
    may_be_packed = True

    def described(self, parts: Sequence[Part]) -> TableHeader:
        dialects = [find_dialect(part.location) for part in parts]
        for part, dialect in zip(parts, dialects, strict=True):
            for name in sorted({*dialect.names} ^ {*dialects[0].names}):
                has = "only it has a column" if name in dialect.names else "it has no column"
                raise InputError(
                    f"The part {part.name} of {self.shown} differs from those before it: {has} {name!r}; write it "
                    "like the others."
                )
        return TableHeader(dialects[0].names, rows=None)

    def read(self, parts: Sequence[Part], columns: list[str], rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        import pyarrow as pa

        dialects = [find_dialect(part.location) for part in parts]
        decided = [TextColumn() for _ in columns]
        kept: list[tuple[int, pa.RecordBatch]] | None = []
        size = 0
        with ExitStack() as held:
            texts: list[Callable[[], Iterator[pa.RecordBatch]]] = []
            for part, dialect in zip(parts, dialects, strict=True):
                opened: Callable[[], AbstractContextManager[BinaryIO]] = partial(packed.opened, part.location)
                if len(parts) <= _HELD_FILES:
                    # Both passes read the same open file: one that is replaced in between stays what it was.
                    opened = partial(packed.unpacked, held.enter_context(part.location.open()), part.location)
                texts.append(partial(_text, opened, part.location, dialect, columns))
            for number, text in enumerate(texts):
                for batch in _checked(text(), parts[number].location, dialects[number]):
                    for column, cells in zip(decided, batch.columns, strict=False):
                        column.add(cells)
                    size += batch.nbytes
                    if kept is not None:
                        kept.append((number, batch))
                    if size > KEPT_BYTES:
                        kept = None
            schema = pa.schema([(name, column.type.arrow) for name, column in zip(columns, decided, strict=True)])
            again: Iterable[tuple[int, pa.RecordBatch]] = kept or (
                (number, batch) for number, text in enumerate(texts) for batch in text()
            )
            for number, whole in again:
                for batch in sliced([whole], rows):
                    try:
                        cells = [column.convert(text) for column, text in zip(decided, batch.columns, strict=False)]
                    except pa.ArrowInvalid:
                        # The first pass found all cells to be of these types.
                        raise ConnectionError(
                            f"The source {self.shown} changed while it was being read; read it again."
                        ) from None
                    yield number, pa.RecordBatch.from_arrays(cells, schema=schema)


def _checked(batches: Iterator[pa.RecordBatch], location: Location, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """Yield batches of text; InputError where Arrow took the rest of the file for text in quotation marks."""
    last_cell = None
    for batch in batches:
        if batch.num_rows:
            last_cell = batch.column(dialect.names[-1])[-1].as_py()
        yield batch
    if last_cell is not None and ("\n" in last_cell or "\r" in last_cell):
        with packed.opened(location) as anew:
            fault = _find_fault(anew, str(location), dialect.delimiter, dialect.names, only_unclosed=True)
        if fault is not None:
            raise InputError(fault)


def _text(
    opened: Callable[[], AbstractContextManager[BinaryIO]], location: Location, dialect: Dialect, wanted: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns as text, and the last one, which shows rows that an open quotation swallowed."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    if not dialect.has_rows:
        names = list(dict.fromkeys([*wanted, dialect.names[-1]]))
        yield pa.record_batch([pa.array([], pa.string()) for _ in names], names=names)
        return
    try:
        with opened() as stream:
            yield from arrow_csv.open_csv(
                stream,
                # With threads Arrow parses ahead as many blocks as the machine has cores, and a block of short cells
                # takes fifty times its size; most of the time is spent on the types, which is not done there.
                read_options=arrow_csv.ReadOptions(
                    column_names=list(dialect.names),
                    skip_rows=dialect.header_lines,
                    block_size=BLOCK_BYTES,
                    use_threads=False,
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(dialect.names, pa.string()),
                    include_columns=list(dict.fromkeys([*wanted, dialect.names[-1]])),
                    null_values=list(MISSING_SPELLINGS),
                    strings_can_be_null=True,
                ),
            )
    except pa.ArrowException:
        raise _fault(location, dialect.delimiter, dialect.names) from None


@dataclass(frozen=True)
class Dialect:
    """Delimiter and column names of a CSV file, lines up to the end of the header, and whether rows follow."""

    delimiter: str
    names: tuple[str, ...]
    header_lines: int
    has_rows: bool


def find_dialect(location: Location) -> Dialect:
    """Find delimiter and header from the first rows: the delimiter that gives most fields, if possible equally many."""
    with packed.opened(location) as stream:
        sample = stream.read(_SAMPLE_BYTES + 1)
        is_whole = len(sample) <= _SAMPLE_BYTES
        if not is_whole and b"\n" not in sample and b"\r" not in sample:
            # The header alone fills the sample.
            sample += stream.read(LONGEST_ROW - len(sample))
    text = sample.decode("utf-8-sig", errors="replace")
    if not text.strip():
        shown = location if location.shown else f"file {location}"
        raise InputError(f"The {shown} is empty; give a CSV file with a header and rows.")
    # With the wrong delimiter a header of thousands of columns is one field.
    with _fields_of_any_length():
        candidates = [(delimiter, *_first_rows(text, delimiter, is_whole, location)) for delimiter in DELIMITERS]
    delimiter, rows, header_lines = max(candidates, key=lambda found: _fit(found[1]))
    # A header cell is empty where a table was written together with its row numbers.
    names = tuple(name or f"column_{position}" for position, name in enumerate(rows[0], start=1))
    refuse_duplicate_columns(names, str(location))
    if any("\ufffd" in name for name in names):
        raise _fault(location, delimiter, names)
    return Dialect(delimiter, names, header_lines, has_rows=len(rows) > 1 or not is_whole)


def _first_rows(text: str, delimiter: str, is_whole: bool, location: Location) -> tuple[list[list[str]], int]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[list[str]] = []
    header_lines = 0
    try:
        for row in reader:
            if row:
                rows.append(row)
                header_lines = header_lines or reader.line_num
            if len(rows) > _SAMPLE_ROWS:
                return rows[:-1], header_lines
    except csv.Error:
        if not rows:
            raise InputError(f"The first line of {location} is not a CSV header; check that it is CSV.") from None
    # The sample may end in the middle of a row.
    return rows if is_whole or len(rows) == 1 else rows[:-1], header_lines


def _fit(rows: list[list[str]]) -> tuple[bool, int]:
    width = len(rows[0])
    return width > 1 and all(len(row) == width for row in rows), width


@contextmanager
def _fields_of_any_length() -> Iterator[None]:
    """Lift the csv module's limit on fields; rows have a limit of their own here."""
    before = csv.field_size_limit(2 * LONGEST_ROW)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _fault(location: Location, delimiter: str, names: Sequence[str]) -> InputError:
    """Return the error for a file that Arrow could not read: a second, slow pass finds the row."""
    with packed.opened(location) as stream:
        found = _find_fault(stream, str(location), delimiter, names)
    return InputError(found or f"The file {location} can't be read as CSV; check that its quotation marks are closed.")


class _RowTooLong(Exception):
    """A row is longer than any that is read."""


class _Rows:
    """Rows of a CSV file with their numbers, read as latin-1, so that rows of any bytes can be counted."""

    def __init__(self, stream: BinaryIO, delimiter: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding="latin-1", newline="")
        self._delimiter = delimiter
        self._starts_row = True
        # One string instead of a list of lines: a quotation may run over millions of short ones.
        self.content = io.StringIO(newline="")
        self.row, self.line, self.lines = -1, 1, 0

    def __iter__(self) -> Iterator[list[str]]:
        for fields in csv.reader(self._read(), delimiter=self._delimiter):
            if fields:
                self.row += 1
                yield fields
            self._starts_row = True

    def _read(self) -> Iterator[str]:
        while text := self._text.readline(LONGEST_ROW):
            if self._starts_row:
                self.content = io.StringIO(newline="")
                self.line, self.lines, self._starts_row = self.line + self.lines, 0, False
            self.content.write(text)
            self.lines += 1
            if self.content.tell() >= LONGEST_ROW:
                self.row += 1
                raise _RowTooLong
            yield text

    def place(self, shown: str) -> str:
        """Name the present row."""
        return f"{'The header' if self.row == 0 else f'Data row {self.row}'} (line {self.line}) of {shown}"

    def fields_of(self, *, strict: bool = False) -> list[str]:
        """Parse the present row anew."""
        self.content.seek(0)
        *_, fields = csv.reader(self.content, delimiter=self._delimiter, strict=strict)
        return fields


def _find_fault(
    stream: BinaryIO, shown: str, delimiter: str, names: Sequence[str], *, only_unclosed: bool = False
) -> str | None:
    """Return a sentence on the first fault of a CSV file, with its row and column, or None."""
    rows, width, long_row = _Rows(stream, delimiter), len(names), None
    with _fields_of_any_length():
        try:
            for fields in rows:
                if only_unclosed:
                    continue
                if (fault := _row_fault(fields, names, rows, shown)) is not None:
                    return fault
                if long_row is None and rows.content.tell() > BLOCK_BYTES:
                    longest = max(range(width), key=lambda position: len(fields[position]))
                    long_row = _too_long(rows.place(shown), names[longest], BLOCK_BYTES)
            if rows.row >= 0:
                rows.fields_of(strict=True)
        except _RowTooLong:
            if only_unclosed:
                return f"{rows.place(shown)} has a quotation mark that is never closed; close it."
            return _too_long(rows.place(shown), names[min(len(rows.fields_of()), width) - 1], LONGEST_ROW)
        except csv.Error as error:
            if "unexpected end" in str(error):
                return f"{rows.place(shown)} has a quotation mark that is never closed; close it."
    return long_row


def _row_fault(fields: list[str], names: Sequence[str], rows: _Rows, shown: str) -> str | None:
    for position, field in enumerate(fields):
        try:
            field.isascii() or field.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            column = f", column {names[position]!r}," if rows.row and position < len(names) else ""
            return f"{rows.place(shown)}{column} holds bytes that are not UTF-8; save the file as UTF-8."
    if len(fields) == len(names):
        return None
    counted = f"{len(fields)} field{'' if len(fields) == 1 else 's'} where the header has {len(names)}"
    if rows.lines > 1:
        return f"{rows.place(shown)} has {counted} and runs over {rows.lines} lines; close its quotation mark."
    return f"{rows.place(shown)} has {counted}; correct that row."


def _too_long(where: str, column: str, limit: int) -> str:
    return (
        f"{where} is longer than {limit >> 20} MiB, in column {column!r}; shorten that value, or close the quotation "
        "mark before it."
    )
