"""JSON lines: one object per line, its keys the columns.

Python's parser reads them, since Arrow's decides the types by the first block alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import packed
from c2tc_pipeline.sources.csv_files import LONGEST_ROW
from c2tc_pipeline.sources.source import FileSource, Part, TableHeader
from c2tc_pipeline.sources.values import typed_batches

if TYPE_CHECKING:
    import pyarrow as pa


_BLOCK_BYTES = 1 << 20


class JsonLinesSource(FileSource):
    """A file of JSON lines, or a folder of such files; a key that a line lacks is a missing value."""

    format = "JSON lines"
    endings = tuple(f"{kind}{packing}" for kind in (".jsonl", ".ndjson") for packing in packed.ENDINGS)
    signature = rb"(\xef\xbb\xbf)?\s*\{\s*\""
    may_be_packed = True

    def described(self, parts: Sequence[Part]) -> TableHeader:
        names: dict[str, None] = {}
        rows = 0
        for part in parts:
            for line in _lines(part):
                names.update(dict.fromkeys(line))
                rows += 1
        if not names:
            raise InputError(f"The file {self.shown} is empty; give JSON lines with an object in each.")
        return TableHeader(tuple(names), rows)

    def read(self, parts: Sequence[Part], columns: list[str], rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
        counts: list[int] = []

        def chunks() -> Iterator[list[tuple[Any, ...]]]:
            for part in parts:
                chunk: list[tuple[Any, ...]] = []
                for line in _lines(part):
                    chunk.append(tuple(line.get(name) for name in columns))
                    if len(chunk) == rows:
                        counts.append(part_number[part.name])
                        yield chunk
                        chunk = []
                if chunk:
                    counts.append(part_number[part.name])
                    yield chunk

        part_number = {part.name: number for number, part in enumerate(parts)}
        batches = typed_batches(columns, chunks(), shown=self.shown)
        for position, batch in enumerate(batches):
            yield counts[position] if counts else 0, batch


def _lines(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file; raise InputError for nested values and lines without an object."""
    location = part.location
    with packed.opened(location) as stream:
        for number, line in enumerate(_split(stream), start=1):
            where = f"Line {number} of {location}"
            if len(line) > LONGEST_ROW:
                raise InputError(f"{where} is longer than {LONGEST_ROW >> 20} MiB; write one object per line.")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise InputError(f"{where} is not valid JSON; write one object per line, in UTF-8.") from None
            if not isinstance(row, dict):
                raise InputError(f"{where} is not a JSON object; write one per line, with a key for each column.")
            for name, value in row.items():
                if isinstance(value, dict | list):
                    raise InputError(
                        f"Column {name!r} of {location} holds nested JSON in line {number}; write its values "
                        "as columns of their own, or as text."
                    )
            yield row


def _split(stream: BinaryIO) -> Iterator[bytes]:
    """Yield lines; an overlong line is truncated and ends the file."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > LONGEST_ROW:
            break
    yield rest
