"""OpenML tables, by number or by the name of one of the paper's tables: downloaded once as Parquet and then cached."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.sources.columnar import ParquetSource
from c2tc_pipeline.sources.location import Location, without_secrets
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory
from c2tc_pipeline.storage.manifest import hash_json

if TYPE_CHECKING:
    import pyarrow as pa

PREFIX = "openml:"
SERVER_VARIABLE = "C2TC_OPENML_URL"
SERVER = "https://www.openml.org"
_TIMEOUT_SECONDS = 20.0
_MAX_DESCRIPTION_BYTES = 1 << 22


class OpenmlSource(Source):
    """A table of OpenML."""

    kind = "openml"
    hashes_values = False

    def __init__(self, wanted: str) -> None:
        known = _known()
        self.expected_rows: int | None = None
        if wanted in known:
            self.number, self.expected_rows = known[wanted]["id"], known[wanted]["rows"]
        elif wanted.isascii() and wanted.isdigit() and 0 < int(wanted) < 10**9:
            self.number = int(wanted)
        elif wanted.isidentifier():
            raise InputError(
                f"OpenML table {wanted!r} is not known by name; {closest(wanted, known)}, or give its number."
            )
        else:
            # Not repeated: it may be another address, password and all.
            raise InputError(f"After {PREFIX} comes a number or a name, as in {PREFIX}1590; check the source.")
        self._wanted = wanted
        self._kept: Path | None = None

    @classmethod
    def from_address(cls, address: str) -> Source | None:
        return cls(address.removeprefix(PREFIX)) if address.startswith(PREFIX) else None

    @classmethod
    def address_of(cls, fields: Any) -> str:
        if not isinstance(fields, int | str):
            raise ValueError("a source of openml is a number or a name")
        return f"{PREFIX}{fields}"

    @classmethod
    def resolve(cls, address: str, folder: Path) -> str | None:
        return address if address.startswith(PREFIX) else None

    @property
    def shown(self) -> str:
        return f"{PREFIX}{self.number}"

    @property
    def name(self) -> str:
        return self._wanted if not self._wanted.isdigit() else f"openml_{self.number}"

    def header(self) -> TableHeader:
        return self._file().header()

    def version(self) -> str:
        """Return a hash of the number and of OpenML's checksum; works offline once downloaded."""
        described = self._description()
        marks = [self.number, described.get("version"), described.get("md5_checksum")]
        return f"db-{hash_json(marks)[:32]}"

    def digest(self) -> str:
        return self._file().digest()

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        return self._file().batches(columns, rows)

    def _cached(self, kind: str, make: Callable[[Path], None]) -> Path:
        """Return a folder of the cache, which is made where it is missing or damaged."""
        return ContentCache(default_cache_directory()).keep(kind, hash_json(["openml", self.number]), make)

    def _description(self) -> dict[str, Any]:
        def download(folder: Path) -> None:
            server = os.environ.get(SERVER_VARIABLE, SERVER).rstrip("/")
            with self._answer(f"{server}/api/v1/json/data/{self.number}") as answer:
                content = answer.read(_MAX_DESCRIPTION_BYTES)
            try:
                described = json.loads(content)["data_set_description"]
            except (ValueError, KeyError, TypeError):
                raise ConnectionError(f"The server's description of {self.shown} can't be read.") from None
            (folder / "description.json").write_text(json.dumps(described), encoding="utf-8")

        content = (self._cached("openml-description", download) / "description.json").read_text(encoding="utf-8")
        described: dict[str, Any] = json.loads(content)
        return described

    def _file(self) -> ParquetSource:
        """Return the table as a file, downloaded if it is not in the cache or damaged."""
        if self._kept is None:
            self._kept = self._cached("openml-table", self._download) / "table.parquet"
        file = ParquetSource(Location.parse(self._kept))
        rows = file.header().rows
        if self.expected_rows is not None and rows != self.expected_rows:
            raise InputError(
                f"The table {self.shown} has {rows} rows where the paper's {self._wanted!r} has {self.expected_rows}; "
                "give its number if it is the one you want."
            )
        return file

    def _download(self, folder: Path) -> None:
        address, path = str(self._description().get("parquet_url") or ""), folder / "table.parquet"
        if not address.startswith(("http://", "https://")):
            raise InputError(f"OpenML has no Parquet file of {self.shown}; download the table and give its path.")

        def download() -> None:
            with self._answer(address) as answer, path.open("wb") as file:
                shutil.copyfileobj(answer, file, 1 << 20)
            try:
                ParquetSource(Location.parse(path)).header()
            except InputError:
                raise ConnectionError(f"The download of {self.shown} is not a whole Parquet file.") from None

        self.retried(download, tries=2)

    @contextmanager
    def _answer(self, address: str) -> Iterator[Any]:
        server = without_secrets(address).partition("://")[2].partition("/")[0]
        try:
            request = urllib.request.Request(address, headers={"User-Agent": "c2tc_pipeline"})
            with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
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


@cache
def _known() -> dict[str, dict[str, int]]:
    content = Path(__file__).with_name("openml_tables.yaml").read_text(encoding="utf-8")
    known: dict[str, dict[str, int]] = yaml.safe_load(content)
    return known
