"""One storage root for each kind of place."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from c2tc_pipeline.storage import ArtefactStore
from c2tc_pipeline_tests.storage.places import Place
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server, running_server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3_place(s3_server: S3Server, tmp_path: Path) -> Place:
    root = f"s3://{BUCKET}/{uuid.uuid4().hex}/deep"
    return Place(root, tmp_path, access=s3_server.access, environment=s3_server.environment)


@pytest.fixture
def memory_place(tmp_path: Path) -> Iterator[Place]:
    place = Place(f"memory://{uuid.uuid4().hex}", tmp_path)
    yield place
    backend = place.store.backend
    for path in backend.list_files(""):
        backend.delete(path)


@pytest.fixture(params=["directory", "memory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Every kind of place in turn."""
    if request.param == "directory":
        return Place(str(tmp_path / "root"), tmp_path)
    chosen = request.getfixturevalue(f"{request.param}_place")
    assert isinstance(chosen, Place)
    return chosen


@pytest.fixture
def store(place: Place) -> ArtefactStore:
    return place.store
