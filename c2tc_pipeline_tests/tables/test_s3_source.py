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
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server

FRAME = pd.DataFrame({"age": [31, 47], "job": ["cook", None]})


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    frame.to_csv(path, index=False)


def to_parquet(frame: pd.DataFrame, path: Path) -> None:
    frame.to_parquet(path)


@pytest.fixture
def folder(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty folder of the bucket, with the environment to read it."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    # fsspec keeps a file system for each set of arguments, and the environment is none of them.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def upload(path: Path, address: str, server: S3Server) -> None:
    files = fsspec.filesystem("s3", endpoint_url=server.endpoint_url, key=KEY, secret=SECRET, skip_instance_cache=True)
    files.put_file(str(path), address)


def refusal(address: str) -> str:
    with pytest.raises(InputError) as caught:
        read_table(address)
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize(
    ("name", "write"),
    [("t.csv", to_csv), ("t.csv.gz", to_csv), ("t.parquet", to_parquet)],
    ids=["csv", "gz", "parquet"],
)
def test_a_table_reads_like_a_local_one(
    folder: str, s3_server: S3Server, tmp_path: Path, name: str, write: Callable[[pd.DataFrame, Path], None]
) -> None:
    write(FRAME, tmp_path / name)
    upload(tmp_path / name, f"{folder}/{name}", s3_server)
    pd.testing.assert_frame_equal(read_table(f"{folder}/{name}"), read_table(tmp_path / name))
    assert peek_table(f"{folder}/{name}") == peek_table(tmp_path / name)


def test_a_replaced_object_is_read_anew(folder: str, s3_server: S3Server, tmp_path: Path) -> None:
    for rows in (1, 2):
        to_csv(FRAME.head(rows), tmp_path / "t.csv")
        upload(tmp_path / "t.csv", f"{folder}/t.csv", s3_server)
        assert len(read_table(f"{folder}/t.csv")) == rows


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(("variable", "value"), [("AWS_SECRET_ACCESS_KEY", SECRET), ("AWS_ACCESS_KEY_ID", KEY)])
def test_wrong_credentials_are_refused(
    folder: str,
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    variable: str,
    value: str,
) -> None:
    (to_csv if name.endswith("csv") else to_parquet)(FRAME, tmp_path / name)
    upload(tmp_path / name, f"{folder}/{name}", s3_server)
    monkeypatch.setenv(variable, f"{value}-wrong")
    assert refusal(f"{folder}/{name}") == (
        f"Access to {folder}/{name} was refused; check the credentials and their rights."
    )


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_missing_object_is_named(folder: str, name: str) -> None:
    assert refusal(f"{folder}/{name}") == f"There is no file {folder}/{name}; check the address."


def test_a_missing_bucket_is_named(folder: str) -> None:
    assert refusal("s3://no-such-bucket/t.csv") == "There is no file s3://no-such-bucket/t.csv; check the address."


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet"])
def test_a_truncated_object_is_refused(folder: str, s3_server: S3Server, tmp_path: Path, name: str) -> None:
    (to_csv if name.endswith("gz") else to_parquet)(FRAME, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    upload(tmp_path / name, f"{folder}/{name}", s3_server)
    assert f"{folder}/{name}" in refusal(f"{folder}/{name}")
