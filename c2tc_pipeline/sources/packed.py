"""Compressed text files: gzip, bzip2, zstandard, and zip with one file in it, recognised by their first bytes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import Location

ENDINGS = ("", ".gz", ".bz2", ".zst", ".zip")
SIGNATURE = rb"\x1f\x8b|BZh[1-9]1AY&SY|\x28\xb5\x2f\xfd|PK\x03\x04|PK\x05\x06"
_CODECS = ((b"\x1f\x8b", "gzip"), (b"BZh", "bz2"), (b"\x28\xb5\x2f\xfd", "zstd"))
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# Arrow's messages about damaged content; other errors come from a disk or a server.
_DAMAGE = ("decompress failed", "inflate failed", "Truncated compressed")
# Folder that macOS adds to an archive.
_NO_CONTENT = "__MACOSX/"


@contextmanager
def opened(location: Location) -> Iterator[BinaryIO]:
    """Open a file of text for reading, decompressed if it is compressed."""
    with location.open() as stream, unpacked(stream, location) as content:
        yield content


@contextmanager
def unpacked(stream: BinaryIO, location: Location) -> Iterator[BinaryIO]:
    """Yield the content of an open file from its beginning."""
    import pyarrow as pa

    stream.seek(0)
    start = stream.read(10)
    stream.seek(0)
    codec = next((codec for mark, codec in _CODECS if start.startswith(mark)), None)
    if codec == "bz2" and start[4:] != b"1AY&SY":
        codec = None
    try:
        if start.startswith(_ZIP):
            with zipfile.ZipFile(stream) as archive, archive.open(_only_file(archive, location)) as content:
                yield cast("BinaryIO", content)
        elif codec is None:
            yield stream
        else:
            source = pa.PythonFile(_Unclosable(stream), mode="r")
            yield cast("BinaryIO", io.BufferedReader(pa.CompressedInputStream(source, codec), 1 << 17))
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        if isinstance(error, OSError) and not any(words in str(error) for words in _DAMAGE):
            raise
        raise InputError(
            f"The file {location} is not a whole {codec or 'zip'} file (truncated or damaged); compress it anew."
        ) from None


class _Unclosable:
    """File wrapper whose ``close()`` does nothing."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self.read = stream.read

    def close(self) -> None:
        """Do nothing."""


def _only_file(archive: zipfile.ZipFile, location: Location) -> zipfile.ZipInfo:
    held = [entry for entry in archive.infolist() if not entry.is_dir() and not entry.filename.startswith(_NO_CONTENT)]
    if len(held) != 1:
        raise InputError(f"The archive {location} holds {len(held)} files; give one with one file in it.")
    if held[0].flag_bits & 1:
        raise InputError(f"The archive {location} is encrypted; decrypt it first.")
    return held[0]
