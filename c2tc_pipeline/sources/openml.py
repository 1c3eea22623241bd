"""OpenML, by number or by the name of one of the paper's tables: fetched once as a Parquet file and then cached.

What OpenML publishes under a number does not change. ``C2TC_OPENML_URL`` names another server that speaks like it.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.location import Location, without_secrets
from c2tc_pipeline.sources.parquet_files import ParquetSource
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory
from c2tc_pipeline.storage.hashing import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "openml:"
SERVER_VARIABLE = "C2TC_OPENML_URL"
SERVER = "https://www.openml.org"
# Seconds without a word from the server.
PATIENCE = 20.0
LARGEST_DESCRIPTION = 1 << 22


class OpenmlSource(Source):
    """A table of OpenML.

    Parameters
    ----------
    wanted : str
        Its number, or the name of one of the paper's tables.

    Examples
    --------
    >>> OpenmlSource("adult").shown
    'openml:1590'
    >>> OpenmlSource("adlut")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: There is no table 'adlut' among those known by name; did you mean 'adult',
    or give the number that OpenML has for it, as in openml:1590.
    """

    def __init__(self, wanted: str) -> None:
        known = _known()
        self.expected_rows: int | None = None
        if wanted in known:
            self.number, self.expected_rows = known[wanted]["id"], known[wanted]["rows"]
        elif wanted.isascii() and wanted.isdigit() and 0 < int(wanted) < 10**9:
            self.number = int(wanted)
        elif not wanted.isidentifier():
            # Not repeated: an address that was mixed up may be in it, password and all.
            raise InputError(
                f"After {PREFIX} comes a number or a name, as in {PREFIX}1590 or {PREFIX}adult; check the source."
            )
        else:
            raise InputError(
                f"There is no table {wanted!r} among those known by name; {closest(wanted, known)}, or give the number "
                "that OpenML has for it, as in openml:1590."
            )
        self._wanted = wanted
        self._kept: Path | None = None

    @property
    def shown(self) -> str:
        return f"{PREFIX}{self.number}"

    @property
    def name(self) -> str:
        return self._wanted if not self._wanted.isdigit() else f"openml_{self.number}"

    def header(self) -> TableHeader:
        return self._file().header()

    def version(self) -> str:
        """Return a mark of the number and of what OpenML says of its bytes; offline too, once it was fetched."""
        described = self._description()
        marks = [self.number, described.get("version"), described.get("md5_checksum")]
        return f"db-{hash_json(marks)[:32]}"

    def digest(self) -> str:
        return self._file().digest()

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        return self._file().batches(columns, rows)

    @property
    def _cache(self) -> ContentCache:
        return ContentCache(default_cache_directory())

    @property
    def _key(self) -> str:
        return hash_json(["openml", self.number])

    def _description(self) -> dict[str, Any]:
        return self._cache.fetch(
            "openml-description", self._key, compute=self._ask, write=_write_description, read=_read_description
        ).value

    def _ask(self) -> dict[str, Any]:
        server = os.environ.get(SERVER_VARIABLE, SERVER).rstrip("/")
        with self._asked(f"{server}/api/v1/json/data/{self.number}") as answer:
            content = answer.read(LARGEST_DESCRIPTION)
        try:
            described: dict[str, Any] = json.loads(content)["data_set_description"]
        except (ValueError, KeyError, TypeError):
            raise ConnectionError(f"The server's description of {self.shown} can't be read.") from None
        return described

    def _file(self) -> ParquetSource:
        """Return the table as a file, which is fetched if it is not there yet, or is not what was fetched."""
        if self._kept is None:
            self._kept = self._cache.keep("openml-table", self._key, self._fetch) / "table.parquet"
        file = ParquetSource(Location.parse(self._kept))
        rows = file.header().rows
        if self.expected_rows is not None and rows != self.expected_rows:
            raise InputError(
                f"The table {self.shown} has {rows} rows where the paper's {self._wanted!r} has {self.expected_rows}; "
                "give it by its number if it is the one you want."
            )
        return file

    def _fetch(self, folder: Path) -> None:
        address = str(self._description().get("parquet_url") or "")
        if not address.startswith(("http://", "https://")):
            raise InputError(f"OpenML has no Parquet file of {self.shown}; download the table and give its path.")
        with_retries(lambda: self._download(address, folder / "table.parquet"), 2)

    def _download(self, address: str, path: Path) -> None:
        with self._asked(address) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
            promised = answer.headers.get("Content-Length")
        if promised is not None and path.stat().st_size != int(promised):
            raise ConnectionError(f"The download of {self.shown} ended early.")
        try:
            ParquetSource(Location.parse(path)).header()
        except InputError:
            raise ConnectionError(f"What was downloaded as {self.shown} is not a whole Parquet file.") from None

    @contextmanager
    def _asked(self, address: str) -> Iterator[Any]:
        server = without_secrets(address).partition("://")[2].partition("/")[0]
        try:
            request = urllib.request.Request(address, headers={"User-Agent": "c2tc_pipeline"})
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                yield answer
        except urllib.error.HTTPError as error:
            if error.code in (404, 412):
                raise InputError(f"OpenML has no table {self.shown}; check the number.") from None
            raise ConnectionError(f"{self.shown} could not be fetched: {server} answered {error.code}.") from None
        except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
            if type(error) is ConnectionError:
                raise
            raise ConnectionError(
                f"{self.shown} could not be fetched, since {server} can't be reached from here; connect, or give the "
                "table as a file."
            ) from None


def _write_description(described: dict[str, Any], folder: Path) -> None:
    (folder / "description.json").write_text(json.dumps(described), encoding="utf-8")


def _read_description(folder: Path) -> dict[str, Any]:
    described: dict[str, Any] = json.loads((folder / "description.json").read_text(encoding="utf-8"))
    return described


@cache
def _known() -> dict[str, dict[str, int]]:
    content = Path(__file__).with_name("openml_tables.yaml").read_text(encoding="utf-8")
    known: dict[str, dict[str, int]] = yaml.safe_load(content)
    return known
