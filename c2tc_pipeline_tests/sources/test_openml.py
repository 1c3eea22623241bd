"""OpenML, played by a local server: fetched once and whole, and what is said when it can't be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from c2tc_pipeline.tables.delivery import read_delivery

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import openml
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.catalogue import load_catalogue


class Library(ThreadingHTTPServer):
    """The two things that are asked of OpenML, and who asked for them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.tables: dict[int, bytes] = {}
        self.asked: list[str] = []
        self.cut = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Answer(BaseHTTPRequestHandler):
    server: Library

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        number = int(self.path.rpartition("/")[2].removesuffix(".pq"))
        if number not in self.server.tables:
            self.send_error(412)
            return
        content = self.server.tables[number]
        if "/api/" in self.path:
            url = None if number == 9 else f"{self.server.url}/files/{number}.pq"
            described = {"id": str(number), "version": "2", "md5_checksum": "0f", "parquet_url": url}
            content = json.dumps({"data_set_description": described}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        cut = self.server.cut if self.path.endswith(".pq") else 0
        self.wfile.write(content[: len(content) - cut])

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "cache"))
    with Library() as library:
        monkeypatch.setenv(openml.SERVER_VARIABLE, library.url)
        path = tmp_path / "t.parquet"
        pd.DataFrame({"a": [1, 2], "class": ["x", "y"]}).to_parquet(path)
        library.tables = dict.fromkeys((7, 9, 1590), path.read_bytes())
        thread = threading.Thread(target=library.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield library
        library.shutdown()
        thread.join()


def test_a_table_is_fetched_once_and_read_offline_then(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = read_delivery("openml:7")
    assert delivery.frame["class"].tolist() == ["x", "y"]
    assert delivery.shown_address == "openml:7"
    assert library.asked == ["/api/v1/json/data/7", "/files/7.pq"]
    monkeypatch.setenv(openml.SERVER_VARIABLE, "http://127.0.0.1:9")
    again = read_delivery("openml:7")
    assert (again.digest, again.fingerprint) == (delivery.digest, delivery.fingerprint)


def test_a_damaged_copy_is_fetched_again(library: Library, tmp_path: Path) -> None:
    whole = read_delivery("openml:7").digest
    (kept,) = (tmp_path / "cache").rglob("*.parquet")
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    assert read_delivery("openml:7").digest == whole
    assert library.asked == ["/api/v1/json/data/7", "/files/7.pq", "/files/7.pq"]


def test_what_ends_early_is_not_kept(library: Library) -> None:
    library.cut = 40
    with pytest.raises(ConnectionError):
        read_table("openml:7")
    library.cut = 0
    assert len(read_table("openml:7")) == 2


def test_a_number_that_openml_does_not_know(library: Library) -> None:
    with pytest.raises(InputError, match=r"^OpenML has no table openml:8; check the number\.$"):
        read_table("openml:8")
    with pytest.raises(InputError, match="has no Parquet file of openml:9"):
        read_table("openml:9")


def test_offline_is_one_sentence(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(openml.SERVER_VARIABLE, "http://me:hidden@127.0.0.1:9")
    with pytest.raises(ConnectionError) as caught:
        read_table("openml:7")
    assert str(caught.value) == (
        "openml:7 could not be fetched, since 127.0.0.1:9 can't be reached from here; connect, or give the table as a "
        "file."
    )


def test_the_papers_tables_are_known_by_name_and_their_rows_are_counted(library: Library) -> None:
    catalogue = load_catalogue("paper")
    assert len(catalogue) == 10
    for name, spec in catalogue.items():
        assert catalogue.resolve_source(spec) == f"openml:{name}"
        source = open_source(spec.source)
        assert source.name == name
    with pytest.raises(InputError, match=r"openml:1590 has 2 rows where the paper's 'adult' has 48842"):
        read_table("openml:adult")
    assert len(read_table("openml:1590")) == 2
