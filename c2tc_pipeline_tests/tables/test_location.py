"""Where tables lie: files, memory and a real S3 server, versions and digests, and messages that keep secrets."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server, free_ports

FRAME = pd.DataFrame({"age": [31, 47], "job": ["cook", None]})
Upload = Callable[..., str]


def write_frame(frame: pd.DataFrame, path: Path) -> bytes:
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path.read_bytes()


@pytest.fixture
def s3_files(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system of the server, whose address and credentials are in the environment."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    # fsspec keeps a file system for each set of arguments, and the environment is none of them.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    settings = {"endpoint_url": s3_server.endpoint_url, "key": KEY, "secret": SECRET, "skip_instance_cache": True}
    return fsspec.filesystem("s3", **settings)


@pytest.fixture
def upload(s3_files: Any, tmp_path: Path) -> Upload:
    """Writes a table under a name locally and to a folder of the bucket, and returns its address there."""
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"

    def write(name: str, frame: pd.DataFrame = FRAME, *, part: float = 1.0) -> str:
        content = write_frame(frame, tmp_path / name)
        s3_files.pipe_file(f"{folder}/{name}", content[: int(len(content) * part)])
        return f"{folder}/{name}"

    return write


class Source(NamedTuple):
    """A file somewhere, and how to write it."""

    address: str
    write: Callable[[bytes], Any]


@pytest.fixture(params=["directory", "memory", "s3"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """A file in every kind of place in turn."""
    if request.param == "directory":
        return Source(str(tmp_path / "t.csv"), (tmp_path / "t.csv").write_bytes)
    is_s3 = request.param == "s3"
    files = request.getfixturevalue("s3_files") if is_s3 else fsspec.filesystem("memory")
    address = f"{f's3://{BUCKET}' if is_s3 else 'memory:/'}/{uuid.uuid4().hex}/t.csv"
    return Source(address, lambda content: files.pipe_file(address, content))


def refusal(source: str | Path) -> str:
    with pytest.raises(InputError) as caught:
        read_table(source)
    message = str(caught.value)
    assert not any(secret in message for secret in ("\n", "hidden", KEY, SECRET))
    return message


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("a\n1\n")
    (tmp_path / "parts.parquet").mkdir()
    for path, named in (
        (tmp_path / "adlut.csv", "'adult.csv'"),
        (tmp_path / "none" / "adult.csv", f"{tmp_path}/none"),
        (tmp_path / "parts.parquet", "parts.parquet"),
        (tmp_path, str(tmp_path)),
    ):
        assert named in refusal(path)


@pytest.mark.parametrize("name", ["t.xyz", "t", "t.csv.rar"])
def test_unknown_kind_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\n1\n")
    assert all(ending in refusal(tmp_path / name) for ending in (".csv.gz", ".parquet", ".sqlite", ".duckdb"))


@pytest.mark.parametrize("source", ["", "a\0b.csv", "x" * 5000 + ".csv"])
def test_paths_that_cannot_be(source: str) -> None:
    assert len(refusal(source)) < 6000


def test_file_address(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert read_table(f"file://{tmp_path}/t.csv")["b"].tolist() == [2]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_a_table_reads_like_a_local_one_and_is_refused_where_it_is_truncated(
    upload: Upload, tmp_path: Path, name: str
) -> None:
    address = upload(name)
    pd.testing.assert_frame_equal(read_table(address), read_table(tmp_path / name))
    assert open_source(address).header() == open_source(tmp_path / name).header()
    if name != "t.csv":
        assert address in refusal(upload(name, part=0.5))


def test_a_replaced_object_is_read_anew(upload: Upload) -> None:
    for rows in (1, 2):
        assert len(read_table(upload("t.csv", FRAME.head(rows)))) == rows


@pytest.mark.parametrize(
    ("name", "variable", "value"),
    [("t.csv", "AWS_SECRET_ACCESS_KEY", SECRET), ("t.parquet", "AWS_ACCESS_KEY_ID", KEY)],
)
def test_wrong_credentials_are_refused(
    upload: Upload, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, value: str
) -> None:
    address = upload(name)
    monkeypatch.setenv(variable, f"{value}-wrong")
    assert address in refusal(address)
    with pytest.raises(InputError, match=address):
        open_source(address).version()


def test_a_server_that_is_not_there_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    access = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in {**access, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{free_ports(1)[0]}"}.items():
        monkeypatch.setenv(name, value)
    # Both libraries try again for some time, which here only takes time.
    monkeypatch.setattr(fsspec.get_filesystem_class("s3"), "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(ConnectionError, match=r"s3://bucket/t.csv") as caught:
        read_table("s3://bucket/t.csv")
    assert SECRET not in f"{caught.value}{Location.parse('s3://bucket/t.csv')!r}"


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_missing_objects_and_buckets_are_named(upload: Upload, name: str) -> None:
    for address in (upload(name) + "-none" + Path(name).suffix, f"s3://no-such-bucket/{name}"):
        assert address in refusal(address)


def state_of(source: str | Path) -> tuple[str, str]:
    return open_source(source).version(), open_source(source).digest()


@pytest.mark.parametrize("content", [b"a,b\n1,3\n", b"a,b\n1,2\n1,3\n", b""], ids=["same size", "longer", "empty"])
def test_only_other_bytes_have_another_fingerprint_and_digest(source: Source, content: bytes) -> None:
    source.write(b"a,b\n1,2\n")
    before = state_of(source.address)
    assert state_of(source.address) == before
    assert version_size(before[0]) == 8
    assert re.fullmatch(r"[0-9a-f-]{1,63}", before[0])
    source.write(content)
    assert not set(state_of(source.address)) & set(before)


def test_the_digest_is_that_of_all_bytes(source: Source) -> None:
    content = os.urandom(3 * 2**20 + 17)
    source.write(content)
    assert open_source(source.address).digest() == hashlib.sha256(content).hexdigest()


def test_touched_and_replaced_files_look_new(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "new.csv"
    path.write_bytes(b"a\n1\n")
    other.write_bytes(b"a\n2\n")
    before = state_of(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    touched = state_of(path)
    assert touched[0] != before[0]
    assert touched[1] == before[1]
    # Of the same size and time.
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)
    assert open_source(path).version() != touched[0]


@pytest.mark.parametrize("asked", ["version", "digest"])
def test_missing_files_and_folders_are_refused(source: Source, tmp_path: Path, asked: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*t\.csv[^\n]*$"):
        getattr(open_source(source.address), asked)()
    with pytest.raises(InputError, match=tmp_path.name):
        getattr(open_source(tmp_path), asked)()


def test_a_web_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c2tc_pipeline.sources.location.WEB_SILENCE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/people.csv"
        with pytest.raises(OSError, match="people"):
            Location.parse(address).version()
