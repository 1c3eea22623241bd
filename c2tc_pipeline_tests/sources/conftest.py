"""Servers with the environment in which sources find them."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pytest

from c2tc_pipeline_tests.sources.postgresql_server import PostgresServer
from c2tc_pipeline_tests.storage.s3_server import S3Server


@pytest.fixture
def server(postgresql: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> PostgresServer:
    """PostgreSQL, with its password where libpq looks for it."""
    for name, value in postgresql.environment.items():
        monkeypatch.setenv(name, value)
    return postgresql


@pytest.fixture
def bucket(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """S3, with its credentials where s3fs looks for them."""
    # fsspec keeps a file system for each set of arguments, and the environment is none of them.
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    yield s3_server
    fsspec.get_filesystem_class("s3").clear_instance_cache()
