"""The deployment: every service on loopback, a table through it, a clean stop, and a service that dies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.tools.made_tables import mixed_table
from deploy.layout import Layout, free_ports
from deploy.preparing import file_system
from deploy.smoke import verified_artefacts

pytestmark = [pytest.mark.slow, pytest.mark.faults]

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0
# A catalogue names the scheduler's port, so it has to be known before the stack is up.
[DASK_PORT] = free_ports(1)
SERVICES = ("postgresql", "s3", "dask-scheduler", "dask-workers", "code-server", "dashboard", "daemon")


@pytest.fixture(scope="module")
def layout() -> Iterator[Layout]:
    if not (list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")):
        pytest.skip("the programs of PostgreSQL are not on this machine")
    # Not below pytest's own folder, which the user as whom PostgreSQL runs may not enter.
    folder = Path(tempfile.mkdtemp(prefix="c2tc-stack-"))
    folder.chmod(0o755)
    mixed_table(400).to_parquet(folder / "people.parquet")
    people = {
        "source": "people.parquet",
        "label": "outcome",
        "ratios": [0.1],
        "settings": {"engine": f"dask://127.0.0.1:{DASK_PORT}"},
        "evaluation": {"seeds": 1, "models": ["boosting"]},
    }
    (folder / "catalog.yaml").write_text(yaml.safe_dump({"tables": {"people": people}}))
    yield Layout(folder / "stack", folder / "catalog.yaml")
    shutil.rmtree(folder)


def command(layout: Layout, name: str, *arguments: str) -> list[str]:
    place = ["--folder", str(layout.folder), "--catalogue", str(layout.catalogue)]
    return [sys.executable, "-m", "deploy", name, *place, *arguments]


def call(layout: Layout, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(layout, name, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@contextmanager
def up(layout: Layout, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a stack, and yield its process when it is up; kill what is left of it in the end."""
    said = layout.folder.with_name("up.txt")
    with said.open("w") as stream:
        process = subprocess.Popen(
            command(layout, "up", "--port", "0", "--dask-port", str(DASK_PORT), *arguments),
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"},
            stdout=stream,
            stderr=subprocess.STDOUT,
            text=True,
        )
    try:
        give_up = time.monotonic() + PATIENCE
        while "The stack is up" not in said.read_text():
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < give_up, said.read_text()
            time.sleep(0.2)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)
    assert belonging(layout) == []


def belonging(layout: Layout) -> list[psutil.Process]:
    """Return the processes of a stack: all that have its folder in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("DAGSTER_HOME") == str(layout.home):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def said(layout: Layout) -> str:
    return layout.folder.with_name("up.txt").read_text()


def test_a_table_goes_through_all_services_and_they_stop_in_order(layout: Layout) -> None:
    with up(layout) as process:
        healthy = call(layout, "check")
        assert healthy.returncode == 0, healthy.stdout
        assert [line.split()[:2] for line in healthy.stdout.splitlines()] == [[name, "well"] for name in SERVICES]

        second = call(layout, "up")
        assert second.returncode == 2
        assert "already" in second.stderr
        assert process.poll() is None

        made = call(layout, "smoke")
        assert made.returncode == 0, made.stderr + made.stdout
        counted = [line.split() for line in made.stdout.splitlines() if line.startswith(("raw_table", "leaderboard "))]
        assert counted == [["raw_table", "1", "1"], ["leaderboard", "1", "1"]]
        assert "Receive client connection" in (layout.logs / "dask-scheduler.log").read_text()

        secrets = list(layout.secrets.values())
        lines = [" ".join(each.cmdline()) for each in belonging(layout)]
        assert len(lines) > len(SERVICES)
        assert not [line for line in lines if any(word in line for word in secrets)]

        damage_one_artefact(layout)
        with pytest.raises(InputError, match="raw_table"):
            verified_artefacts(layout, {"raw_table": {"people"}})

        assert call(layout, "down").returncode == 0
        assert process.wait(PATIENCE) == 0
    assert [line.split()[0] for line in said(layout).splitlines() if " stopped after" in line] == [*SERVICES[::-1]]
    assert files_with(layout, secrets) == {"secrets.env", "s3.identities.json"}
    assert not list(layout.temporary.glob("weed*"))


def damage_one_artefact(layout: Layout) -> None:
    files = file_system(layout)
    path = next(path for path in files.find("c2tc/store/raw_table") if path.endswith(".parquet"))
    content = bytearray(files.cat_file(path))
    content[len(content) // 2] ^= 1
    files.pipe_file(path, bytes(content))


def files_with(layout: Layout, words: list[str]) -> set[str]:
    """Return the files of a stopped stack in which one of some words stands."""
    found = set()
    for path in layout.folder.rglob("*"):
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words):
            found.add(path.relative_to(layout.folder).as_posix())
    return found


def test_a_service_that_dies_is_named_and_takes_the_stack_with_it(layout: Layout) -> None:
    with up(layout, "--workers", "0") as process:
        [daemon] = [each for each in belonging(layout) if any("dagster-daemon" in part for part in each.cmdline()[:2])]
        daemon.send_signal(signal.SIGKILL)
        assert process.wait(PATIENCE) == 1
    assert "The service daemon ended with code -9" in said(layout)
    assert "postgresql      stopped" in said(layout)
