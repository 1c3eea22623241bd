"""Fixtures that several folders of tests use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the paper's tables; tests that need them skip where it is absent."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not (folder / "datasets.json").is_file():
        pytest.skip("the paper's tables are not on this machine")
    return folder
