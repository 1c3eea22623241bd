"""Servers that go away in the middle of reading: a few tries, one sentence, and a later run succeeds."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, PostgresServer
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, running_process

pytestmark = pytest.mark.faults

# Rows that do not fit into the buffers between server and client.
ROWS = 400_000
QUERY = f"SELECT n AS a, repeat(md5(n::text), 4) AS b FROM generate_series(1, {ROWS}) AS n"


@pytest.fixture
def fallible(server: PostgresServer) -> Iterator[PostgresServer]:
    """A server that runs again after the test."""
    yield server
    try:
        server.execute("SELECT 1")
    except Exception:
        server.start()


def test_postgresql_stopped_in_the_middle_of_reading(fallible: PostgresServer) -> None:
    source = open_source(fallible.query(QUERY))
    batches = source.batches()
    assert next(batches).num_rows < ROWS
    fallible.stop()
    with pytest.raises(ConnectionError) as caught:
        list(batches)
    assert PASSWORD not in str(caught.value)
    # Down altogether, after a few tries.
    with pytest.raises(ConnectionError):
        read_table(fallible.query("SELECT 1 AS a"))
    fallible.start()
    assert len(read_table(fallible.query(QUERY), columns=["a"])) == ROWS


def test_s3_killed_in_the_middle_of_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Fewer seconds than by default: what is tested is that they end.
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    table = pa.table({"a": range(80_000), "b": [uuid.uuid4().hex for _ in range(80_000)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=8_000)
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    address = f"s3://{BUCKET}/{uuid.uuid4().hex}/t.parquet"
    options = {"key": KEY, "secret": SECRET, "skip_instance_cache": True, "default_block_size": 1 << 18}
    with running_process(folder) as process:
        options["endpoint_url"] = process.server.endpoint_url
        fsspec.filesystem("s3", **options).put_file(str(tmp_path / "t.parquet"), address)
        options |= {"default_cache_type": "none", "config_kwargs": {"retries": {"max_attempts": 1}, "read_timeout": 5}}
        monkeypatch.setitem(fsspec.config.conf, "s3", options)
        batches = open_source(address).batches(rows=8_000)
        assert next(batches).num_rows == 8_000
        process.kill()
        with pytest.raises(ConnectionError) as caught:
            list(batches)
        process.start()
        again = pa.Table.from_batches(open_source(address).batches(rows=8_000))
    message = str(caught.value)
    assert address in message
    assert KEY not in message
    assert SECRET not in message
    assert again.to_pydict() == table.to_pydict()
