"""Start the code server in production: ``python -m c2tc_pipeline.pipeline.code_server -h HOST -p PORT``.

Runs are children of the code server and end with it, but Dagster's default launcher finds lost runs only while the
server lives: after it was killed they would stay "started", with their slots of pools, until their maximum runtime.
So those of an earlier server are ended first; Dagster then retries them. ``dagster api grpc`` rather than
``dagster code-server start``, whose proxy answers health checks for a server that is gone.
"""

from __future__ import annotations

import json
import os
import socket
import sys

import dagster as dg

# How the default launcher notes where a run was launched; it has no public name.
SERVER_TAG = ".dagster/grpc_info"
_LOST = "The code server that executed this run ended."
_STATUSES = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_SECONDS = 2.0


def end_lost_runs(instance: dg.DagsterInstance, host: str, port: int) -> list[str]:
    """End the runs of earlier code servers of a host, and free their pool slots; return their ids.

    To be called before the server that is to listen on the port starts. A server on another port that answers keeps
    its runs.
    """
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_STATUSES)):
        server = json.loads(run.tags.get(SERVER_TAG, "{}"))
        if server.get("host") != host or (server.get("port") != port and _answers(host, server.get("port"))):
            continue
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, _LOST)
        else:
            instance.report_run_failed(run, _LOST)
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return ended


def _answers(host: str, port: int | None) -> bool:
    try:
        with socket.create_connection((host, port or 0), timeout=_SECONDS):
            return True
    except OSError:
        return False


def main(arguments: list[str]) -> None:
    """End lost runs, and become the code server."""
    with dg.DagsterInstance.get() as instance:
        for run_id in end_lost_runs(instance, os.environ["C2TC_CODE_HOST"], int(os.environ["C2TC_CODE_PORT"])):
            print(f"Ended run {run_id}, which was lost with an earlier code server.", flush=True)
    server = [sys.executable, "-m", "dagster", "api", "grpc", "-m", "c2tc_pipeline.definitions"]
    os.execv(sys.executable, [*server, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
