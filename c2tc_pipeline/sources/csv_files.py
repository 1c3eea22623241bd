"""CSV files: the values are read as text, types are decided over whole columns, then the text is cast.

Where a file is larger than a few blocks it is read twice, so that memory is bounded by a block. Its dialect is found in
:mod:`c2tc_pipeline.sources.csv_dialect`, the row at fault in :mod:`c2tc_pipeline.sources.csv_faults`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.csv_dialect import Dialect, find_dialect, opened
from c2tc_pipeline.sources.csv_faults import explain, unclosed_quotation
from c2tc_pipeline.sources.csv_types import MISSING_SPELLINGS, CellType, ColumnGuess, arrow_type, cast_column
from c2tc_pipeline.sources.file_state import file_digest, file_version
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader, sliced

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = (".csv", ".csv.gz")

# A row must fit into two blocks; rows of megabytes are the sign of an unclosed quotation mark.
BLOCK_BYTES = 1 << 22
# Text of small files is kept between the two looks at it, so that they are read once.
KEPT_BYTES = 1 << 26


class CsvSource(Source):
    """One CSV file, packed by gzip when its name ends in ``.gz``.

    Parameters
    ----------
    location : Location
        The file.

    Examples
    --------
    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("a;b\\n1;x\\n2;y\\n")
    >>> [batch.to_pydict() for batch in CsvSource(Location.parse(path)).batches(["b"])]
    [{'b': ['x', 'y']}]
    """

    def __init__(self, location: Location) -> None:
        self.location = location

    @property
    def shown(self) -> str:
        return str(self.location)

    @property
    def name(self) -> str:
        return self.location.stem(ENDINGS)

    def header(self) -> TableHeader:
        return TableHeader(find_dialect(self.location).names, rows=None)

    def version(self) -> str:
        return file_version(self.location)

    def digest(self) -> str:
        return file_digest(self.location)

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        dialect = find_dialect(self.location)
        wanted = self.chosen(columns, dialect.names)
        if not dialect.has_rows:
            yield pa.record_batch([pa.array([], pa.string()) for _ in wanted], names=wanted)
            return
        # Both looks are at the same open file: one that is replaced in between stays what it was.
        with opened(self.location) as stream:
            types, kept = self._look(stream, dialect, wanted)
            schema = pa.schema([(name, arrow_type(types[name])) for name in wanted])
            text = _given_away(kept) if kept is not None else self._again(stream, dialect, wanted)
            for batch in sliced(text, rows):
                yield self._cast(batch, types, schema)

    def _look(
        self, stream: BinaryIO, dialect: Dialect, wanted: list[str]
    ) -> tuple[dict[str, CellType], list[pa.RecordBatch] | None]:
        """Decide the columns' types, and return the text too where it is small."""
        guesses = {name: ColumnGuess(dialect.delimiter) for name in wanted}
        kept: list[pa.RecordBatch] | None = []
        size = 0
        last_cell = None
        for batch in self._text(stream, dialect, wanted):
            for name, guess in guesses.items():
                guess.look_at(batch.column(name))
            if batch.num_rows:
                last_cell = batch.column(dialect.names[-1])[-1].as_py()
            size += batch.nbytes
            if kept is not None:
                kept.append(batch)
            if size > KEPT_BYTES:
                kept = None
        self._refuse_swallowed_rows(dialect, last_cell)
        return {name: guess.decided for name, guess in guesses.items()}, kept

    def _again(self, stream: BinaryIO, dialect: Dialect, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        stream.seek(0)
        return self._text(stream, dialect, wanted)

    def _text(self, stream: BinaryIO, dialect: Dialect, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the wanted columns as text, and the last one, which shows rows that a quotation swallowed."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        fails = False
        try:
            reader = arrow_csv.open_csv(
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
            yield from reader
        except pa.ArrowException:
            fails = True
        if fails:
            with opened(self.location) as anew:
                raise InputError(explain(anew, self.shown, dialect.delimiter, dialect.names))

    def _cast(self, batch: pa.RecordBatch, types: dict[str, CellType], schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        try:
            columns = [cast_column(batch.column(name), types[name]) for name in schema.names]
        except pa.ArrowInvalid:
            # The first look found all cells to be of these types.
            raise ConnectionError(f"The source {self.shown} changed while it was being read; read it again.") from None
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _refuse_swallowed_rows(self, dialect: Dialect, last_cell: str | None) -> None:
        """Refuse a quotation that never ends: the fast reader takes the rest of the file for its text."""
        if last_cell is None or not ("\n" in last_cell or "\r" in last_cell):
            return
        with opened(self.location) as stream:
            fault = unclosed_quotation(stream, self.shown, dialect.delimiter)
        if fault is not None:
            raise InputError(fault)


def _given_away(kept: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of which none stays in the list, so that text does not lie beside what it was cast to."""
    kept.reverse()
    while kept:
        yield kept.pop()
