"""The dashboard of ``c2tc ui`` in a real browser, over a pipeline that was run; its end leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from c2tc_pipeline.pipeline.versioning import BY_RATIO, OVER_ALL, PARENTS, TableStep
from c2tc_pipeline_tests.pipeline.live import CELL, CLOSED, TABLE, Dashboard, Site, shown_site
from c2tc_pipeline_tests.pipeline.pipeline_rig import step_of
from c2tc_pipeline_tests.storage.s3_server import free_ports
from c2tc_pipeline_tests.tools.browser import Page
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = pytest.mark.slow

STEPS = [step_of(name, None if name in OVER_ALL else CELL if name in BY_RATIO else TABLE) for name in PARENTS]
CONDENSED = TableStep(TABLE, "condensed_table", 0.1)
LOADED = "[...document.images].filter(image => image.naturalWidth > 0)"
STALENESS = "{ assetNodes { assetKey { path } staleStatus } }"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on which everything was made."""
    with shown_site(tmp_path_factory.mktemp("site"), mixed_table(400)) as site:
        yield site


@pytest.fixture(scope="module")
def dashboard(command: subprocess.Popen[str]) -> Dashboard:
    """The address that the command prints when it answers."""
    assert command.stdout is not None
    assert "Starting" in command.stdout.readline()
    said = command.stdout.readline()
    assert said.startswith("The dashboard is at http://127.0.0.1:")
    return Dashboard(said.split()[4])


@pytest.fixture(scope="module")
def command(site: Site) -> Iterator[subprocess.Popen[str]]:
    """``c2tc ui``, with relative paths, which its children could not resolve if they got them as they are."""
    arguments = ["--catalogue", "catalog.yaml", "--home", "home", "--storage", "store"]
    with subprocess.Popen(
        [sys.executable, "-m", "c2tc_pipeline", "ui", "--port", str(free_ports(1)[0]), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=site.folder,
    ) as process:
        yield process
        process.terminate()


@pytest.fixture
def page(window: Page, dashboard: Dashboard) -> Iterator[Page]:
    """A page of the dashboard, which must have no reason to complain and ask nobody else."""
    yield window
    assert window.console_errors == []
    assert [address for address in window.requests if not address.startswith(dashboard.url)] == []


def says(page: Page, *texts: str) -> None:
    """Wait until a page says all of these."""
    for text in texts:
        page.wait_until(f"document.body.innerText.includes({text!r})")


def test_it_lists_every_asset(page: Page, dashboard: Dashboard) -> None:
    page.open(f"{dashboard.url}/assets")
    says(page, *(step.name for step in STEPS))


def test_a_partition_shows_its_numbers_and_pictures(page: Page, dashboard: Dashboard, site: Site) -> None:
    page.open(f"{dashboard.url}/assets/{'/'.join(CONDENSED.key.path)}?view=events")
    told = site.told("condensed_table", CELL)
    says(page, "rows_in", str(told["rows_in"]), "objective", str(told["objective"]), "projection")
    assert page.evaluate(f"{CLOSED}.length") == 2
    for number, first_words in enumerate(("Bars of the share", "Scatter plot of")):
        page.evaluate(f"{CLOSED}[{number}].click()")
        page.wait_until(f"{LOADED}.some(image => image.alt.startsWith('{first_words}'))")
        page.evaluate("[...document.querySelectorAll('button')].find(button => button.innerText == 'Close').click()")
        page.wait_until("document.images.length == 0")


def test_the_checks_of_an_asset_are_listed(page: Page, dashboard: Dashboard) -> None:
    page.open(f"{dashboard.url}/assets/{'/'.join(CONDENSED.key.path)}?view=checks")
    says(page, "few_repeated_rows", "near_bound", "condensed rows repeat a source row", "Passed")


def test_nothing_looks_out_of_date_after_a_run(dashboard: Dashboard) -> None:
    nodes = {tuple(node["assetKey"]["path"]): node["staleStatus"] for node in dashboard.ask(STALENESS)["assetNodes"]}
    assert nodes == dict.fromkeys((tuple(step.key.path) for step in STEPS), "FRESH")


def living(group: int) -> list[psutil.Process]:
    """Return the processes of a group that are not zombies."""
    found = []
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_the_end_leaves_no_process_behind(dashboard: Dashboard, command: subprocess.Popen[str]) -> None:
    children = psutil.Process(command.pid).children()
    assert len(children) == 2
    # What a service manager sends; Ctrl-C takes the same way without a handler of our own.
    command.send_signal(signal.SIGTERM)
    assert command.wait() == 0
    assert [living(child.pid) for child in children] == [[], []]
