"""A hostile table through the whole pipeline: its report, leaderboard and the dashboard show it and obey nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.versioning import BY_RATIO, OVER_ALL, PARENTS
from c2tc_pipeline.reports.wording import printable
from c2tc_pipeline_tests.pipeline.live import CELL, CLOSED, TABLE, Dashboard, Site, shown_site
from c2tc_pipeline_tests.pipeline.pipeline_rig import step_of
from c2tc_pipeline_tests.tools.browser import Page
from c2tc_pipeline_tests.tools.hostile_tables import MARK, Listener, hostile_table, hostile_texts, listening

pytestmark = [pytest.mark.faults, pytest.mark.slow]

# What a page may have none of when all that it knows of the table is text.
FOREIGN = """
[...document.querySelectorAll('script:not([nonce]):not([src^="/"]), iframe, object, embed, form, base')]
  .map(found => found.outerHTML.slice(0, 200))
  .concat([...document.querySelectorAll('[src], [href]')].map(found => found.src || found.href)
    .filter(address => typeof address == 'string' && !address.startsWith('data:') && !address.startsWith('blob:')
      && !address.startsWith(location.href.split('#')[0]) && !address.startsWith(location.origin + '/')))
  .concat([...document.querySelectorAll('*')].flatMap(found => [...found.attributes])
    .filter(attribute => attribute.name.startsWith('on')).map(attribute => attribute.name))
"""
MARKDOWN = "document.querySelector('[role=dialog] .dagster-markdown')"


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    with listening() as listener:
        yield listener


@pytest.fixture(scope="module")
def table(listener: Listener) -> tuple[pd.DataFrame, str]:
    return hostile_table(listener.url)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, table: tuple[pd.DataFrame, str]) -> Iterator[Site]:
    """A site on which the hostile table went all the way."""
    frame, label = table
    roles = {name: "numeric" for name in frame.columns if frame[name].dtype == float}
    entry = {"label": label, "roles": roles, "description": frame.columns[0]}
    with shown_site(tmp_path_factory.mktemp("site"), frame, **entry) as site:
        yield site


@pytest.fixture
def page(window: Page, listener: Listener) -> Iterator[Page]:
    """A page that is found unharmed at the end."""
    yield window
    assert window.evaluate(f"typeof window.{MARK}") == "undefined"
    assert MARK not in window.evaluate("document.title").partition(":")[0]
    assert window.dialogs == []
    assert listener.asked == []
    assert [address for address in window.requests if address.startswith(listener.url)] == []


def stored_page(site: Site, asset: str, partition: str | None, folder: Path) -> str:
    """Copy a page of the store to where a browser opens it, and return its address."""
    with site.store.fetch(artefact_key(asset, partition)) as directory:
        [stored] = directory.glob("*.html")
        (folder / stored.name).write_bytes(stored.read_bytes())
    return (folder / stored.name).as_uri()


@pytest.mark.parametrize(("asset", "partition"), [("report", TABLE), ("leaderboard", None)])
def test_stored_pages_show_the_names_and_obey_none(
    page: Page, site: Site, listener: Listener, tmp_path: Path, asset: str, partition: str | None
) -> None:
    url = stored_page(site, asset, partition, tmp_path)
    page.open(url)
    page.wait_until("[...document.images].every(image => image.complete)")
    page.evaluate("document.querySelectorAll('*').forEach(found => found.dispatchEvent(new Event('mouseover')))")
    assert page.evaluate(FOREIGN) == []
    assert page.requests == [url]
    assert page.console_errors == []
    if asset == "report":
        for text in hostile_texts(listener.url)[:6]:
            assert text.split("\n")[0] in page.text


@pytest.mark.parametrize("asset", PARENTS)
def test_the_dashboard_obeys_none_of_the_names(
    page: Page, dashboard: Dashboard, listener: Listener, table: tuple[pd.DataFrame, str], asset: str
) -> None:
    step = step_of(asset, None if asset in OVER_ALL else CELL if asset in BY_RATIO else TABLE)
    page.open(f"{dashboard.url}/assets/{'/'.join(step.key.path)}?view=events")
    page.wait_until("document.body.innerText.includes('data_version')")
    said = [page.text]
    for number in range(page.evaluate(f"{CLOSED}.length")):
        page.evaluate(f"{CLOSED}[{number}].click()")
        closing = "[...document.querySelectorAll('button')].find(button => button.innerText == 'Close')"
        page.wait_until(f"!!({closing})")
        # The window is there before what it shows.
        page.wait_until(f"!!{MARKDOWN}?.childElementCount")
        assert inside(page, listener) == []
        said.append(page.text)
        page.evaluate(f"{closing}.click()")
        page.wait_until(f"!({closing})")
    assert inside(page, listener) == []
    outside = [address for address in page.requests if not address.startswith((dashboard.url, "blob:"))]
    assert outside == []
    # Nothing would be obeyed either if nothing were shown: here every name stands on the page, letter by letter.
    if asset == "condensed_table":
        assert names_missing(" ".join(said), table[0].columns) == []


def names_missing(said: str, names: Iterable[str]) -> list[str]:
    """Return the names that a page does not show as they are, however it breaks its lines."""
    shown = " ".join(said.split())
    return [name for name in names if " ".join(printable(name).split()) not in shown]


def inside(page: Page, listener: Listener) -> list[str]:
    """Return what a page of the dashboard made of the table's texts, beside text."""
    return [
        str(found)
        for found in page.evaluate(
            "[...document.querySelectorAll('a[href], img[src], iframe, script[src]')].map(f => f.href || f.src)"
        )
        if found.startswith(listener.url)
        or "example.com" in found
        or found.startswith("javascript:")
        or "evil" in found
    ]


def test_no_file_is_called_after_a_name_of_the_table(site: Site) -> None:
    names = {path.name for folder in ("store", "cache") for path in (site.folder / folder).rglob("*")}
    assert names
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_|.-]+", name)] == []


def test_cells_that_a_spreadsheet_would_run_are_kept_as_they_are(site: Site, table: tuple[pd.DataFrame, str]) -> None:
    frame, _ = table
    with site.store.fetch(artefact_key("raw_table", TABLE)) as directory:
        pd.testing.assert_frame_equal(pd.read_parquet(directory / "table.parquet"), frame, check_dtype=False)
    with site.store.fetch(artefact_key("condensed_table", CELL)) as directory:
        condensed = CondensedTable.read_files(directory)
    assert list(condensed.original.columns) == list(frame.columns)
    assert set(condensed.original["cells 0"].dropna()) <= set(frame["cells 0"])
