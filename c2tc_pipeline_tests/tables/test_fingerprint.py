"""Version and digest of a source, on disk, in memory and on a real S3 server: what changes them and what doesn't."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import fsspec
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.fingerprint import fingerprint_size, source_digest, source_fingerprint
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server


class Source(NamedTuple):
    """A file somewhere, and how to write it."""

    address: str
    write: Callable[[bytes], Any]


def state_of(source: str | Path) -> tuple[str, str]:
    return source_fingerprint(source), source_digest(source)


@pytest.fixture(params=["directory", "memory", "s3"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    """A file in every kind of place in turn."""
    if request.param == "directory":
        return Source(str(tmp_path / "t.csv"), (tmp_path / "t.csv").write_bytes)
    files = fsspec.filesystem("memory")
    address = f"memory://{uuid.uuid4().hex}/t.csv"
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        # fsspec keeps a file system for each set of arguments, and the environment is none of them.
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        settings = {"endpoint_url": server.endpoint_url, "key": KEY, "secret": SECRET, "skip_instance_cache": True}
        files = fsspec.filesystem("s3", **settings)
        address = f"s3://{BUCKET}/{uuid.uuid4().hex}/t.csv"
    return Source(address, lambda content: files.pipe_file(address, content))


@pytest.mark.parametrize("content", [b"a,b\n1,3\n", b"a,b\n1,2\n1,3\n", b""], ids=["same size", "longer", "empty"])
def test_only_other_bytes_have_another_fingerprint_and_digest(source: Source, content: bytes) -> None:
    source.write(b"a,b\n1,2\n")
    before = state_of(source.address)
    assert state_of(source.address) == before
    assert fingerprint_size(before[0]) == 8
    assert re.fullmatch(r"[0-9a-f-]{1,63}", before[0])
    source.write(content)
    assert not set(state_of(source.address)) & set(before)


def test_the_digest_is_that_of_all_bytes(source: Source) -> None:
    content = os.urandom(3 * 2**20 + 17)
    source.write(content)
    assert source_digest(source.address) == hashlib.sha256(content).hexdigest()


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
    assert source_fingerprint(path) != touched[0]


@pytest.mark.parametrize("ask", [source_fingerprint, source_digest])
def test_missing_files_and_folders_are_refused(source: Source, tmp_path: Path, ask: Callable[[Any], str]) -> None:
    with pytest.raises(InputError, match=r"There is no file [^\n]*$"):
        ask(source.address)
    with pytest.raises(InputError, match="is a folder"):
        ask(tmp_path)
