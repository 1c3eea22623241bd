"""Toy assets in a folder, and a window on the dashboard of a site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.pipeline.formats import FORMATS
from c2tc_pipeline_tests.pipeline.live import Dashboard, Site, running_dashboard
from c2tc_pipeline_tests.pipeline.toys import WORDS, Toys
from c2tc_pipeline_tests.storage.places import Place
from c2tc_pipeline_tests.tools.browser import Page, open_page


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def word_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the toy assets be stored, all but the one called unknown."""
    for name in ("motto", "word"):
        monkeypatch.setitem(FORMATS, name, WORDS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A folder: the tests of the storage cover the other kinds."""
    return Place(str(tmp_path / "root"), tmp_path)


@pytest.fixture
def toys(place: Place, instance: dg.DagsterInstance, word_formats: None, monkeypatch: pytest.MonkeyPatch) -> Toys:
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    return Toys(place, instance)


@pytest.fixture(scope="module")
def dashboard(site: Site) -> Iterator[Dashboard]:
    """The dashboard of the site that a test file makes."""
    with running_dashboard(site) as dashboard:
        yield dashboard


@pytest.fixture
def window() -> Iterator[Page]:
    """A browser's window, wide enough for the dashboard."""
    with open_page(width=1400, height=1000) as page:
        yield page
