"""The state of a source, on disk, in memory and on a real S3 server: what changes it, what doesn't, what is said."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.fingerprint import fingerprint_size, source_digest, source_fingerprint
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server, running_server


@dataclasses.dataclass(frozen=True)
class Source:
    """A file somewhere, and how to write it."""

    address: str
    write: Callable[[bytes], Any]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_source(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    # fsspec keeps a file system for each set of arguments, and the environment is none of them.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    files = fsspec.filesystem("s3", endpoint_url=server.endpoint_url, key=KEY, secret=SECRET, skip_instance_cache=True)
    address = f"s3://{BUCKET}/{uuid.uuid4().hex}/t.csv"
    yield Source(address, lambda content: files.pipe_file(address, content))
    fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(params=["directory", "memory", "s3"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """Every kind of place in turn."""
    if request.param == "directory":
        return Source(str(tmp_path / "t.csv"), (tmp_path / "t.csv").write_bytes)
    if request.param == "memory":
        address = f"memory://{uuid.uuid4().hex}/t.csv"
        return Source(address, lambda content: fsspec.filesystem("memory").pipe_file(address, content))
    chosen = request.getfixturevalue("s3_source")
    assert isinstance(chosen, Source)
    return chosen


def test_unchanged_sources_keep_their_fingerprint(source: Source) -> None:
    source.write(b"a,b\n1,2\n")
    first = source_fingerprint(source.address)
    assert source_fingerprint(source.address) == first
    assert fingerprint_size(first) == 8
    assert re.fullmatch(r"[0-9a-f-]{1,63}", first)


@pytest.mark.parametrize("content", [b"a,b\n1,3\n", b"a,b\n1,2\n1,3\n", b""], ids=["same size", "longer", "empty"])
def test_other_bytes_have_another_fingerprint_and_digest(source: Source, content: bytes) -> None:
    source.write(b"a,b\n1,2\n")
    before = source_fingerprint(source.address), source_digest(source.address)
    source.write(content)
    after = source_fingerprint(source.address), source_digest(source.address)
    assert after[0] != before[0]
    assert after[1] != before[1]


def test_the_digest_is_that_of_all_bytes(source: Source) -> None:
    content = os.urandom(3 * 2**20 + 17)
    source.write(content)
    assert source_digest(source.address) == hashlib.sha256(content).hexdigest()


def test_a_touched_file_looks_new_but_has_the_same_digest(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a\n1\n")
    before = source_fingerprint(path), source_digest(path)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    assert source_fingerprint(path) != before[0]
    assert source_digest(path) == before[1]


def test_a_file_renamed_over_another_of_the_same_size_and_time_is_noticed(tmp_path: Path) -> None:
    path, other = tmp_path / "t.csv", tmp_path / "new.csv"
    path.write_bytes(b"a\n1\n")
    other.write_bytes(b"a\n2\n")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    os.utime(other, ns=times)
    before = source_fingerprint(path)
    other.replace(path)
    assert path.stat().st_mtime_ns == times[1]
    assert source_fingerprint(path) != before


@pytest.mark.parametrize("ask", [source_fingerprint, source_digest])
def test_a_missing_source_is_one_sentence(source: Source, ask: Callable[[str], str]) -> None:
    with pytest.raises(InputError, match=r"There is no file [^\n]*$"):
        ask(source.address)


@pytest.mark.parametrize("ask", [source_fingerprint, source_digest])
def test_a_folder_is_refused(tmp_path: Path, ask: Callable[[Path], str]) -> None:
    with pytest.raises(InputError, match="is a folder; give the path of one file"):
        ask(tmp_path)


@pytest.mark.parametrize("ask", [source_fingerprint, source_digest])
def test_wrong_credentials_are_refused_without_showing_them(
    s3_source: Source, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], str]
) -> None:
    s3_source.write(b"a\n1\n")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-wrong")
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    with pytest.raises(InputError, match="was refused; check the credentials") as caught:
        ask(s3_source.address)
    assert SECRET not in str(caught.value)
    assert KEY not in str(caught.value)
