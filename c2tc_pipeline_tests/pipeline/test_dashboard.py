"""``c2tc ui`` for real: it answers on the place it was given, and leaves no process behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from c2tc_pipeline.pipeline.instance import open_instance
from c2tc_pipeline_tests.pipeline.live import Dashboard
from c2tc_pipeline_tests.pipeline.toy_pipeline import toy_catalogue

QUERY = "{ assetsOrError { ... on AssetConnection { nodes { key { path } definition { partitionKeys } } } } }"


def living(group: int) -> list[psutil.Process]:
    """Return the processes of a group that are not zombies."""
    found = []
    for process in psutil.process_iter(["status"]):
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group and process.info["status"] != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.slow
def test_the_dashboard_from_start_to_end(tmp_path: Path) -> None:
    toy_catalogue(tmp_path, "wide")
    table = {"source": "wide.csv", "label": "y", "ratios": [0.1]}
    (tmp_path / "catalog.yaml").write_text(json.dumps({"tables": {"wide": table}}))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    # Relative paths, which the children could not resolve if they were told them as they are.
    environment = {**os.environ, "C2TC_CATALOGUE": "catalog.yaml", "DAGSTER_HOME": "home", "C2TC_STORAGE": "store"}
    with subprocess.Popen(
        [sys.executable, "-m", "c2tc_pipeline", "ui", "--port", str(port)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert "Starting" in process.stdout.readline()
        assert process.stdout.readline() == f"The dashboard is at http://127.0.0.1:{port} (Ctrl-C ends it).\n"
        [child] = psutil.Process(process.pid).children()
        assert len(living(child.pid)) > 2
        found = Dashboard(f"http://127.0.0.1:{port}").ask(QUERY)
        # What a service manager sends; Ctrl-C takes the same way without a handler of our own.
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == "Stopping.\n"
    assert process.returncode == 0
    keys = {node["key"]["path"][0]: node["definition"]["partitionKeys"] for node in found["assetsOrError"]["nodes"]}
    assert keys["raw_table"] == ["wide"]
    assert living(child.pid) == []
    with open_instance(tmp_path / "home") as instance:
        # The daemon was at work on the same instance: it has left its heartbeats there.
        assert instance.get_daemon_heartbeats()
