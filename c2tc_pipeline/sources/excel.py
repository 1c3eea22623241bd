"""Excel workbooks and what else calamine reads: .xlsx, .xlsm, .xlsb, .xls and .ods."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.database_files import DatabaseFile
from c2tc_pipeline.sources.source import BATCH_ROWS, TableHeader, refuse_duplicate_columns
from c2tc_pipeline.sources.values import typed_batches

if TYPE_CHECKING:
    import pyarrow as pa

# A sheet is held in memory; a small file may unpack to more than fits.
_MAX_UNPACKED = 1 << 31


class ExcelSource(DatabaseFile):
    """One sheet of a workbook, whose first row names the columns; the type of a column is decided by all its cells."""

    kind = "excel"
    format = "Excel"
    endings = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
    signature = rb"PK\x03\x04(?s:.)*(\[Content_Types\]\.xml|docProps/|xl/|opendocument\.spreadsheet)|\xd0\xcf\x11\xe0"
    extra = "excel"

    def header(self) -> TableHeader:
        with self._sheet() as sheet:
            return TableHeader(self._names(sheet), max(sheet.height - 1, 0))

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        with self._sheet() as sheet:
            names = self._names(sheet)
            wanted = self.chosen(columns, names)
            places = [names.index(name) for name in wanted]
            yield from typed_batches(wanted, _chunks(sheet, places, rows), shown=self.shown)

    def _names(self, sheet: Any) -> tuple[str, ...]:
        first = next(sheet.iter_rows(), None)
        if first is None:
            raise InputError(f"The sheet {self.shown} is empty; give one with a header and rows.")
        cells = [_cell(cell) for cell in first]
        names = tuple(f"column_{place}" if cell is None else str(cell) for place, cell in enumerate(cells, start=1))
        refuse_duplicate_columns(names, self.shown)
        return names

    @contextmanager
    def _sheet(self) -> Iterator[Any]:
        calamine = self.needed("python_calamine")
        if self._selection.query is not None:
            raise InputError(f"The source {self.shown} can't be queried; name a sheet with ?table=.")
        with self.local_file() as path:
            try:
                _refuse_bomb(path, self.shown)
                with calamine.CalamineWorkbook.from_path(str(path)) as book:
                    filled = [name for name in book.sheet_names if book.get_sheet_by_name(name).height]
                    yield book.get_sheet_by_name(self.checked_selection(filled).table)
            except calamine.WorksheetNotFound:
                raise InputError(f"There is no sheet as in {self.shown}; check its name.") from None
            except calamine.PasswordError:
                raise InputError(f"The file {self.shown} is encrypted; save it without a password.") from None
            except (calamine.CalamineError, zipfile.BadZipFile, OSError) as error:
                if isinstance(error, ConnectionError) or (isinstance(error, OSError) and error.errno is not None):
                    raise
                raise InputError(f"The file {self.shown} is not a whole Excel file; save it anew.") from None


def _refuse_bomb(path: Path, shown: str) -> None:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_UNPACKED:
                raise InputError(f"The file {shown} unpacks to more than 2 GiB; save the sheet as CSV.")


def _chunks(sheet: Any, places: list[int], rows: int) -> Iterator[list[tuple[Any, ...]]]:
    found = sheet.iter_rows()
    next(found)
    chunk: list[tuple[Any, ...]] = []
    for row in found:
        chunk.append(tuple(_cell(row[place]) for place in places))
        if len(chunk) == rows:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _cell(value: Any) -> Any:
    """Return a cell's value: Excel has no integers, and empty cells are empty text."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if value == "" else value
