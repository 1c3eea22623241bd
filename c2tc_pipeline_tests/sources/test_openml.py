"""OpenML, played by a local server: fetched once and whole, and what is said when it can't be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import openml
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline_tests.tools.serving import serving


class Library(ThreadingHTTPServer):
    """A folder with OpenML's descriptions and tables, and the paths that were requested."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Answer, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.asked: list[str] = []
        self.cut = 0


class _Answer(SimpleHTTPRequestHandler):
    server: Library

    def copyfile(self, source: Any, outputfile: Any) -> None:
        content = source.read()
        cut = self.server.cut if self.path.endswith(".pq") else 0
        outputfile.write(content[: len(content) - cut])

    def log_message(self, *arguments: object) -> None:
        self.server.asked.append(self.path)


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "cache"))
    descriptions = tmp_path / "served" / "api" / "v1" / "json" / "data"
    descriptions.mkdir(parents=True)
    library = Library(tmp_path / "served")
    with serving(library):
        monkeypatch.setenv(openml.SERVER_VARIABLE, library.url)
        for number in (7, 9, 1590):
            pd.DataFrame({"a": [1, 2], "class": ["x", "y"]}).to_parquet(tmp_path / "served" / f"{number}.pq")
            url = None if number == 9 else f"{library.url}/{number}.pq"
            described = {"id": str(number), "version": "2", "md5_checksum": "0f", "parquet_url": url}
            (descriptions / str(number)).write_text(json.dumps({"data_set_description": described}))
        yield library


def test_a_table_is_fetched_once_and_read_offline_then(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = Blocks.of_source("openml:7")
    assert next(delivery.frames())["class"].tolist() == ["x", "y"]
    assert delivery.shown == "openml:7"
    assert library.asked == ["/api/v1/json/data/7", "/7.pq"]
    monkeypatch.setenv(openml.SERVER_VARIABLE, "http://127.0.0.1:9")
    again = Blocks.of_source("openml:7")
    assert (again.digest, again.version) == (delivery.digest, delivery.version)


def test_a_damaged_copy_is_fetched_again(library: Library, tmp_path: Path) -> None:
    whole = Blocks.of_source("openml:7").digest
    (kept,) = (tmp_path / "cache").rglob("*.parquet")
    content = bytearray(kept.read_bytes())
    content[len(content) // 2] ^= 1
    kept.write_bytes(content)
    assert Blocks.of_source("openml:7").digest == whole
    assert library.asked == ["/api/v1/json/data/7", "/7.pq", "/7.pq"]


def test_what_ends_early_is_not_kept(library: Library) -> None:
    library.cut = 40
    with pytest.raises(ConnectionError):
        read_table("openml:7")
    library.cut = 0
    assert len(read_table("openml:7")) == 2


def test_a_number_that_openml_does_not_know(library: Library) -> None:
    for number in (8, 9):
        with pytest.raises(InputError, match=f"openml:{number}"):
            read_table(f"openml:{number}")


def test_offline_is_one_sentence(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(openml.SERVER_VARIABLE, "http://me:hidden@127.0.0.1:9")
    with pytest.raises(ConnectionError, match=r"openml:7 .* 127\.0\.0\.1:9") as caught:
        read_table("openml:7")
    assert "hidden" not in str(caught.value)


def test_the_papers_tables_are_known_by_name_and_their_rows_are_counted(library: Library) -> None:
    catalogue = load_catalogue("paper")
    assert len(catalogue) == 10
    for name, spec in catalogue.items():
        assert catalogue.resolve_source(spec) == f"openml:{name}"
        assert open_source(spec.source).name == name
    with pytest.raises(InputError, match="48842"):
        read_table("openml:adult")
    assert len(read_table("openml:1590")) == 2


@pytest.mark.parametrize("wanted", ["adlut", "0", "12345678901", "postgresql://me:hidden@host/db"])
def test_wrong_names_and_numbers_are_refused(wanted: str) -> None:
    with pytest.raises(InputError) as caught:
        open_source(f"openml:{wanted}")
    assert "hidden" not in str(caught.value)
    assert (wanted == "adlut") == ("'adult'" in str(caught.value))
