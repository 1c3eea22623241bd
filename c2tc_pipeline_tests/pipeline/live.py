"""The running pipeline: Dagster's real daemon and dashboard, as processes of their own, over the folder of a rig.

What belongs here: starting and stopping them, querying them, and waiting. Assertions belong to the tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline.jobs import UNFINISHED
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig
from c2tc_pipeline_tests.storage.s3_server import free_ports
from c2tc_pipeline_tests.tools.serving import serving

WORKSPACE = Path(__file__).parents[2] / "workspace.yaml"
TABLE = "people"
CELL = f"{TABLE}|0.1"
CLOSED = "[...document.querySelectorAll('a')].filter(link => link.innerText == '[Show Markdown]')"
"""The dashboard shows long Markdown, as every picture is, when one of these is clicked."""
PATIENCE = 900.0
"""Seconds until something that does not happen fails the test; a free machine needs a small part of it."""


class Site(Rig):
    """A rig on which programs of Dagster work."""

    @contextmanager
    def running(self, program: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program of Dagster, and end it in the end with all that it started."""
        with self._log(program).open("ab") as stream:
            process = subprocess.Popen(
                [str(Path(sys.executable).with_name(program)), *arguments, "-w", str(WORKSPACE)],
                cwd=self.folder,
                env={**os.environ, **self._environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            # Code servers, runs and steps are in its group; a polite stop would wait for all of them.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def call(self, program: str, *arguments: str) -> None:
        """Run a program of Dagster to its end."""
        with self.running(program, *arguments) as process:
            assert process.wait(PATIENCE) == 0, self.said

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "DAGSTER_HOME": str(self.folder / "home"),
            "C2TC_CATALOGUE": str(self.folder / "catalog.yaml"),
            "C2TC_STORAGE": self.storage,
            "C2TC_CACHE_DIR": str(self.folder / "cache"),
            "C2TC_SENSOR_SECONDS": "1",
            "OMP_NUM_THREADS": "1",
            "no_proxy": "127.0.0.1",
        }

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds."""
        give_up = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < give_up, f"The condition did not hold within {PATIENCE:g} s. {self.said}"
            # Polling costs CPU, too.
            time.sleep(1)

    def wait_for_quiet(self, sensors: Iterable[str], ticks: int = 2) -> None:
        """Wait until no run is left, and then until each of these sensors has looked so many times more."""
        self.wait_until(lambda: not self.runs(*UNFINISHED))
        since = time.time()
        self.wait_until(lambda: all(self._ticks(sensor, since) >= ticks for sensor in sensors))

    def _ticks(self, sensor: str, since: float) -> int:
        [state] = [state for state in self.instance.all_instigator_state() if state.instigator_name == sensor]
        ticks = self.instance.get_ticks(state.instigator_origin_id, state.selector_id, after=since, limit=100)
        return sum(tick.status.value in ("SKIPPED", "SUCCESS") for tick in ticks)

    def made(self) -> Counter[str]:
        """Return how many times each asset was made."""
        return Counter(
            key.to_user_string()
            for key in self.instance.get_asset_keys()
            for _ in self.instance.fetch_materializations(key, limit=1000).records
        )

    def runs(self, *statuses: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
        """Return the runs with one of these statuses, all of them by default."""
        return list(self.instance.get_runs(dg.RunsFilter(statuses=list(statuses))))

    def _log(self, program: str) -> Path:
        return self.folder / f"{program}.log"

    @property
    def said(self) -> str:
        """The end of the programs' output, for messages of failed tests."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-20_000:]}" for path in logs)


@dataclass(frozen=True)
class Dashboard:
    """A running dashboard at an address."""

    url: str

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        """Return the answer to a GraphQL query."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        # Bypass the HTTP proxy of the environment.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=PATIENCE) as response:
            answer: dict[str, Any] = json.load(response)
        assert "errors" not in answer, answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data


@contextmanager
def running_dashboard(site: Site) -> Iterator[Dashboard]:
    """Start the dashboard of a site on a free port of the loopback, and wait until it has loaded the pipeline."""
    [port] = free_ports(1)
    dashboard = Dashboard(f"http://127.0.0.1:{port}")
    with site.running("dagster-webserver", "-h", "127.0.0.1", "-p", str(port)) as process:

        def answers() -> bool:
            assert process.poll() is None, site.said
            try:
                return bool(dashboard.ask("{ assetNodes { id } }")["assetNodes"])
            except OSError:
                return False

        site.wait_until(answers)
        yield dashboard


@contextmanager
def shown_site(folder: Path, frame: pd.DataFrame, **entry: Any) -> Iterator[Site]:
    """Make everything of a table, with further fields of its entry in the catalogue, for tests of its pages."""
    with Site(folder) as site:
        site.add(TABLE, frame, **entry)
        site.run_all()
        yield site


@dataclass
class Webhook:
    """A webhook that records posts, and answers with the given codes, then 200."""

    url: str
    answers: list[int] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def running_webhook(path: str) -> Iterator[Webhook]:
    """Serve a webhook on the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.paths.append(self.path)
            code = kept.answers.pop(0) if kept.answers else 200
            if code == 200:
                kept.received.append(json.loads(body))
            self.send_response(code)
            if code == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()

        def do_GET(self) -> None:
            kept.paths.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        kept = Webhook(f"http://127.0.0.1:{port}/{path}")
        yield kept
