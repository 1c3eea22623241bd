"""Toy assets in a folder, and a window on the dashboard of a site."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from c2tc_pipeline.pipeline import messages
from c2tc_pipeline_tests.pipeline.live import Dashboard, Site, running_dashboard
from c2tc_pipeline_tests.tools.browser import Page, open_page


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


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


@pytest.fixture
def quick_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between tries, and no targets but those of the test."""
    monkeypatch.setattr(messages, "PAUSE_SECONDS", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("WEBHOOK_URL", "WEBHOOK_FORMAT", "SMTP_URL", "MAIL_TO", "MAIL_FROM", "UI_URL"):
        monkeypatch.delenv(f"C2TC_{name}", raising=False)
