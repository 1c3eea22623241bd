"""Shared fixtures."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from c2tc_pipeline.cli.main import main
from c2tc_pipeline_tests.sources.postgresql_server import PostgresServer, running_postgresql
from c2tc_pipeline_tests.storage.places import Place, place_of
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server, running_server
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import mixed_table

# Time limits would fail on a busy machine.
settings.register_profile("without a clock", deadline=None, max_examples=40)
settings.load_profile("without a clock")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run files with slow tests first, so that the test processes end together."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the paper's tables; without it the test is skipped."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not (folder / "datasets.json").is_file():
        pytest.skip("the paper's tables are not on this machine")
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a new folder, with a new cache."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "cache"))

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def people(run: Run) -> Path:
    """A table as CSV in the working directory."""
    mixed_table().to_csv("people.csv", index=False)
    return Path("people.csv")


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with running_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    with running_postgresql() as server:
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
    """Each kind of storage."""
    return place_of(request, tmp_path)
