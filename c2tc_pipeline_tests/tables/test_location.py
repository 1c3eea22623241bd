"""Where tables lie: local paths, remote addresses, and messages that keep secrets.

The remote half runs on fsspec's in-memory file system and, for errors that only S3 gives, on a file system
that raises them; no S3 server is contacted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest
from botocore.exceptions import (  # type: ignore[import-untyped]
    EndpointConnectionError,
    NoCredentialsError,
)

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.tables.blocks import peek_table, read_table


def refusal(source: str | Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_table(source, **options)
    return str(caught.value)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "adult.csv").write_text("a\n1\n")
    (tmp_path / "parts.parquet").mkdir()
    for path, named in (
        (tmp_path / "adlut.csv", "'adult.csv'"),
        (tmp_path / "none" / "adult.csv", f"the folder {tmp_path}/none"),
        (tmp_path / "parts.parquet", "is a folder"),
        (tmp_path, "is a folder"),
    ):
        assert named in refusal(path)


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.csv.zip"])
def test_unknown_kind_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\n1\n")
    assert all(ending in refusal(tmp_path / name) for ending in (".csv.gz", ".parquet", ".sqlite", ".duckdb"))


@pytest.mark.parametrize("source", ["", "a\0b.csv", "x" * 5000 + ".csv"])
def test_paths_that_cannot_be(source: str) -> None:
    assert len(refusal(source)) < 6000


def test_file_address(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert read_table(f"file://{tmp_path}/t.csv")["b"].tolist() == [2]


@pytest.fixture
def memory() -> Iterator[Any]:
    filesystem = fsspec.filesystem("memory")
    yield filesystem
    filesystem.store.clear()


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_remote_files_read_as_local_ones(memory: Any, tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame({"a": [1, 2], "s": ["x", None]})
    if name.endswith("parquet"):
        frame.to_parquet(tmp_path / name)
    else:
        frame.to_csv(tmp_path / name, index=False)
    memory.pipe(f"/tables/{name}", (tmp_path / name).read_bytes())
    pd.testing.assert_frame_equal(read_table(f"memory://tables/{name}"), frame)
    assert peek_table(f"memory://tables/{name}").columns == ("a", "s")


@pytest.mark.parametrize("source", ["s3://key:hidden@bucket/t.csv", "ftp://me:hidden@host/t.csv?token=hidden"])
def test_secrets_in_an_address_are_not_shown(source: str) -> None:
    message = refusal(source)
    assert "hidden" not in message
    assert "t.csv" in message


class _Failing:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def open(self, path: str, mode: str) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (NoCredentialsError(), InputError, "s3://bucket/t.csv; set AWS_ACCESS_KEY_ID"),
        (PermissionError("hidden"), InputError, "s3://bucket/t.csv was refused"),
        (FileNotFoundError("hidden"), InputError, "no file s3://bucket/t.csv"),
        (EndpointConnectionError(endpoint_url="http://key:hidden@host"), ConnectionError, "s3://bucket/t.csv"),
    ],
)
def test_errors_of_s3(monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[Exception], message: str) -> None:
    seen: dict[str, Any] = {}

    def filesystem(scheme: str, **options: Any) -> _Failing:
        seen.update(options, scheme=scheme)
        return _Failing(error)

    monkeypatch.setattr(fsspec, "filesystem", filesystem)
    with pytest.raises(raised, match=message) as caught:
        read_table("s3://bucket/t.csv", storage_options={"secret": "hidden"})
    assert "hidden" not in str(caught.value)
    assert seen == {"scheme": "s3", "secret": "hidden"}


def test_a_location_does_not_print_its_options() -> None:
    assert "hidden" not in repr(Location.parse("s3://bucket/t.csv", {"secret": "hidden"}))
