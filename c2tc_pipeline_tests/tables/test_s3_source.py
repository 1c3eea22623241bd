"""Tables on a real S3 server: read like local ones, and refused in one sentence that keeps secrets."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import fsspec
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.blocks import peek_table, read_table
from c2tc_pipeline.tables.fingerprint import source_fingerprint
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server

FRAME = pd.DataFrame({"age": [31, 47], "job": ["cook", None]})
Upload = Callable[..., str]


@pytest.fixture
def upload(s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Upload:
    """Writes a table under a name locally and to a folder of the bucket, and returns its address there."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    # fsspec keeps a file system for each set of arguments, and the environment is none of them.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    settings = {"endpoint_url": s3_server.endpoint_url, "key": KEY, "secret": SECRET, "skip_instance_cache": True}
    files = fsspec.filesystem("s3", **settings)
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def write(name: str, frame: pd.DataFrame = FRAME, *, part: float = 1.0) -> str:
        path = tmp_path / name
        if name.endswith("parquet"):
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * part)])
        files.put_file(str(path), f"{folder}/{name}")
        return f"{folder}/{name}"

    return write


def refusal(address: str) -> str:
    with pytest.raises(InputError) as caught:
        read_table(address)
    message = str(caught.value)
    assert address in message
    for secret in ("\n", KEY, SECRET):
        assert secret not in message
    return message


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_reads_like_a_local_one_and_is_refused_where_it_is_truncated(
    upload: Upload, tmp_path: Path, name: str
) -> None:
    address = upload(name)
    pd.testing.assert_frame_equal(read_table(address), read_table(tmp_path / name))
    assert peek_table(address) == peek_table(tmp_path / name)
    if name != "t.csv":
        refusal(upload(name, part=0.5))


def test_a_replaced_object_is_read_anew(upload: Upload) -> None:
    for rows in (1, 2):
        assert len(read_table(upload("t.csv", FRAME.head(rows)))) == rows


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(("variable", "value"), [("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ACCESS_KEY_ID", KEY)])
def test_wrong_credentials_are_refused(
    upload: Upload, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, value: str
) -> None:
    address = upload(name)
    monkeypatch.setenv(variable, f"{value}-wrong")
    assert "credentials" in refusal(address)
    with pytest.raises(InputError, match="credentials"):
        source_fingerprint(address)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_missing_objects_and_buckets_are_named(upload: Upload, name: str) -> None:
    refusal(upload(name) + "-none" + Path(name).suffix)
    refusal(f"s3://no-such-bucket/{name}")
