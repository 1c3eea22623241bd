"""The search for canary secrets finds every form."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pytest

from c2tc_pipeline_tests.tools.canaries import Canaries


@pytest.mark.parametrize("before", range(5))
def test_every_form_is_found(before: int) -> None:
    canaries = Canaries()
    word = canaries.make("place")
    around = b"x" * before + word.encode() + b"yz"
    for content in (
        around,
        base64.b64encode(around),
        base64.urlsafe_b64encode(around),
        quote(word, safe="").encode(),
        json.dumps({"a": word}).encode(),
        around.hex().encode(),
        word.encode("utf-16-le"),
        word[:-2].encode(),
    ):
        assert canaries.found_in(b"... " + content + b" ...") == ["place"], content
    assert canaries.found_in(base64.b64encode(b"nothing of the kind, however long it is")) == []


def test_files_are_looked_into(tmp_path: Path) -> None:
    canaries = Canaries()
    word = canaries.make("place")
    pd.DataFrame({"a": [word] * 3}).to_parquet(tmp_path / "a.parquet", compression="zstd")
    (tmp_path / "b.gz").write_bytes(gzip.compress(word.encode()))
    with closing(sqlite3.connect(tmp_path / "c.db")) as database, database:
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (?)", (word,))
    (tmp_path / "d.txt").write_text("nothing")
    found = canaries.found_below(tmp_path)
    assert {Path(name).name for name in found} == {"a.parquet", "b.gz", "c.db"}
    assert canaries.found_below(tmp_path, without=[tmp_path / "c.db"]).keys() == found.keys() - {str(tmp_path / "c.db")}
    assert canaries.found_among({"x": word.encode(), "y": b""}) == {"x": ["place"]}
