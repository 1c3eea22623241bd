"""Fixtures that several folders of tests use."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from c2tc_pipeline.cli import main
from c2tc_pipeline_tests.command_line import Run
from c2tc_pipeline_tests.made_tables import mixed_table


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the paper's tables; tests that need them skip where it is absent."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not (folder / "datasets.json").is_file():
        pytest.skip("the paper's tables are not on this machine")
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in a folder of its own, with a cache elsewhere."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("C2TC_CACHE_DIR", str(tmp_path / "cache"))

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(main, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def people(run: Run) -> Path:
    """A table as CSV in the command's folder."""
    mixed_table().to_csv("people.csv", index=False)
    return Path("people.csv")
