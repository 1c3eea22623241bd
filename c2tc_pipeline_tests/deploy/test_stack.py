"""The deployment: every service on loopback, a table through it, back-up and restoration, and killed services."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from c2tc_pipeline_tests.tools.made_tables import mixed_table
from deploy import probes
from deploy.layout import Layout, free_ports
from deploy.preparing import file_system
from deploy.smoke import partitions_to_make, query, verified_files

pytestmark = [pytest.mark.slow, pytest.mark.faults]

ROOT = Path(__file__).parents[2]
PATIENCE = 900.0
# A catalogue names the scheduler's port, so it has to be known before the stack is up.
[DASK_PORT] = free_ports(1)
PORTS = ("--port", "0", "--dask-port", str(DASK_PORT))
SERVICES = ("postgresql", "s3", "dask-scheduler", "dask-workers", "code-server", "dashboard", "daemon")


@pytest.fixture(scope="module")
def layout() -> Iterator[Layout]:
    if not (list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")):
        pytest.skip("the programs of PostgreSQL are not on this machine")
    # Not below pytest's own folder, which the user as whom PostgreSQL runs may not enter.
    folder = Path(tempfile.mkdtemp(prefix="c2tc-stack-"))
    folder.chmod(0o755)
    mixed_table(400).to_parquet(folder / "people.parquet")
    write_catalogue(folder / "catalog.yaml", f"dask://127.0.0.1:{DASK_PORT}")
    yield Layout(folder / "stack", folder / "catalog.yaml")
    shutil.rmtree(folder)


def write_catalogue(path: Path, engine: str) -> None:
    people = {
        "source": "people.parquet",
        "label": "outcome",
        "ratios": [0.1],
        "settings": {"engine": engine},
        "evaluation": {"seeds": 1, "models": ["boosting"]},
    }
    path.write_text(yaml.safe_dump({"tables": {"people": people}}))


def command(layout: Layout, name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "deploy", name, "--folder", str(layout.folder), *arguments]


def call(layout: Layout, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(layout, name, *arguments), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def wait_until(condition: Callable[[], object]) -> None:
    give_up = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.5)


@contextmanager
def up(layout: Layout, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start a stack, and yield its process when it is up; kill what is left of it in the end."""
    said = layout.folder.with_name("up.txt")
    with said.open("w") as stream:
        process = subprocess.Popen(
            command(layout, "up", "--catalogue", str(layout.catalogue), *PORTS, *arguments),
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


def test_a_table_goes_through_all_services_and_survives_the_loss_of_its_data(layout: Layout) -> None:
    backup = layout.folder.with_name("backup")
    with up(layout) as process:
        healthy = call(layout, "check")
        assert healthy.returncode == 0, healthy.stdout
        assert [line.split()[:2] for line in healthy.stdout.splitlines()] == [[name, "well"] for name in SERVICES]

        second = call(layout, "up", "--catalogue", str(layout.catalogue))
        assert second.returncode == 2
        assert "already" in second.stderr
        assert process.poll() is None

        made = call(layout, "smoke")
        assert made.returncode == 0, made.stderr + made.stdout
        assert "raw_table" in made.stdout
        assert "Receive client connection" in (layout.logs / "dask-scheduler.log").read_text()

        secrets = list(layout.secrets.values())
        lines = [" ".join(each.cmdline()) for each in belonging(layout)]
        assert len(lines) > len(SERVICES)
        assert not [line for line in lines if any(word in line for word in secrets)]

        copied = call(layout, "backup", "--to", str(backup))
        assert copied.returncode == 0, copied.stderr
        assert call(layout, "backup", "--to", str(backup)).returncode == 2
        events = event_count(layout)
        assert call(layout, "down").returncode == 0
        assert process.wait(PATIENCE) == 0
    assert [line.split()[0] for line in said(layout).splitlines() if re.search("stopped|killed", line)] == [
        *SERVICES[::-1]
    ]
    assert files_with(layout, secrets) == {"secrets.env", "s3.identities.json"}
    assert not list(layout.temporary.glob("weed*"))

    for folder in (layout.postgres, layout.s3):
        shutil.rmtree(folder)
    restored = call(layout, "restore", "--from", str(backup))
    assert restored.returncode == 0, restored.stderr
    with up(layout):
        fresh = Layout.recorded(layout.folder)
        assert event_count(fresh) == events
        files = verified_files(fresh, 1)
        assert files > 1
        damage_one_artefact(fresh)
        with pytest.raises(RuntimeError, match="damaged files"):
            verified_files(fresh, 1)


def event_count(layout: Layout) -> int:
    [[count]] = query(layout, "SELECT count(*) FROM event_logs WHERE asset_key IS NOT NULL", ())
    return int(count)


def damage_one_artefact(layout: Layout) -> None:
    files = file_system(layout)
    path = next(path for path in files.find("c2tc/store") if "raw_table" in path and path.endswith(".parquet"))
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


def test_what_is_killed_is_started_again_and_lost_runs_are_retried(layout: Layout) -> None:
    write_catalogue(layout.catalogue, "local")
    layout = Layout(layout.folder.with_name("second"), layout.catalogue)
    with up(layout, "--workers", "0") as process:
        launch(layout)
        wait_until(lambda: statuses(layout) == ["STARTED"])
        [server] = [each for each in belonging(layout) if "grpc" in each.cmdline()[3:5]]
        family = server.children(recursive=True)
        assert family
        server.kill()
        psutil.wait_procs([server, *family], timeout=60)
        assert not any(each.is_running() for each in family)
        wait_until(lambda: statuses(layout) == ["FAILURE", "SUCCESS"])

        [daemon] = [each for each in belonging(layout) if any("dagster-daemon" in part for part in each.cmdline()[:2])]
        daemon.kill()
        wait_until(lambda: "daemon ended with code -9" in said(layout))
        wait_until(lambda: call(layout, "check").returncode == 0)

        before = server_of(layout)
        layout.catalogue.write_text(layout.catalogue.read_text().replace("0.1", "0.2"))
        wait_until(lambda: server_of(layout) not in (None, before))
        wait_until(lambda: call(layout, "check").returncode == 0)
        assert process.poll() is None


LAUNCH = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename } }"""
INGEST = ("raw_table", "validated_table", "encoder", "encoded_table")


def launch(layout: Layout) -> None:
    """Put a run of the first steps of the table into the queue, from which the daemon launches it."""
    steps = {asset: keys for asset, keys in partitions_to_make(layout).items() if asset.split("/")[-1] in INGEST}
    [partition] = set().union(*steps.values())
    selector = {
        "repositoryLocationName": "c2tc_pipeline",
        "repositoryName": "__repository__",
        "jobName": "__ASSET_JOB",
        "assetSelection": [{"path": asset.split("/")} for asset in steps],
    }
    tags = [{"key": "dagster/partition", "value": partition}] if partition else []
    params = {"selector": selector, "runConfigData": {}, "executionMetadata": {"tags": tags}}
    answer = probes.ask(layout, LAUNCH, seconds=60.0, params=params) or {}
    assert answer["launchRun"]["__typename"] == "LaunchRunSuccess", answer


def statuses(layout: Layout) -> list[str]:
    return [status for (status,) in query(layout, "SELECT status FROM runs ORDER BY id", ())]


def server_of(layout: Layout) -> int | None:
    found = [each.pid for each in belonging(layout) if "grpc" in each.cmdline()[3:5]]
    return found[0] if found else None
