"""Run the code server in production: ``python -m c2tc_pipeline.pipeline.code_server -h HOST -p PORT``.

Runs are children of the code server and end with it, but Dagster's default launcher finds lost runs only while the
server lives: after it was killed they would stay "started", with their slots of pools, until their maximum runtime.
So those of an earlier server are ended once the new one serves; Dagster then retries them, which it tries once and only
with a server. It is ``dagster api grpc`` rather than ``dagster code-server start``, whose proxy answers health checks
for a server that is gone.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import dagster as dg

from c2tc_pipeline.common.processes import answers, end_with_parent

# The tag by which the default launcher records the server of a run; it has no public name.
SERVER_TAG = ".dagster/grpc_info"
_LOST = "The code server that executed this run ended."
_STATUSES = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_POLL_SECONDS = 0.5
# Time in which the daemon, which polls every second, has reloaded the location.
_SETTLE_SECONDS = 10.0


def lost_runs(instance: dg.DagsterInstance, host: str, port: int) -> dict[str, int]:
    """Return the runs that earlier code servers of a host have lost, and how often each was launched.

    To be called before the server that is to listen on the port starts. A server on another port that answers keeps
    its runs.
    """
    found = {}
    for run in instance.get_runs(dg.RunsFilter(statuses=_STATUSES)):
        server = json.loads(run.tags.get(SERVER_TAG, "{}"))
        if server.get("host") == host and (server.get("port") == port or not answers(host, server.get("port") or 0)):
            found[run.run_id] = _launches(instance, run.run_id)
    return found


def end_runs(instance: dg.DagsterInstance, lost: dict[str, int]) -> list[str]:
    """End lost runs and free their pool slots, but for those that have ended or were launched again; return the ids."""
    ended = []
    for run_id, launches in lost.items():
        run = instance.get_run_by_id(run_id)
        if run is None or run.status not in _STATUSES or _launches(instance, run_id) != launches:
            continue
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, _LOST)
        else:
            instance.report_run_failed(run, _LOST)
        instance.event_log_storage.free_concurrency_slots_for_run(run_id)
        ended.append(run_id)
    return ended


def _launches(instance: dg.DagsterInstance, run_id: str) -> int:
    return len(instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.RUN_STARTING).records)


def main(arguments: list[str]) -> int:
    """Run the code server to its end, and return its exit code."""
    host, port = os.environ["C2TC_CODE_HOST"], int(os.environ["C2TC_CODE_PORT"])
    with dg.DagsterInstance.get() as instance:
        lost = lost_runs(instance, host, port)
        command = [sys.executable, "-m", "dagster", "api", "grpc", "-m", "c2tc_pipeline.definitions", *arguments]
        server = subprocess.Popen(command, preexec_fn=end_with_parent)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: server.send_signal(received))
        settled: float | None = None
        while lost and server.poll() is None:
            time.sleep(_POLL_SECONDS)
            if settled is None and answers(host, port):
                settled = time.monotonic() + _SETTLE_SECONDS
            if settled is not None and time.monotonic() > settled:
                for run_id in end_runs(instance, lost):
                    print(f"Ended run {run_id}, which was lost with an earlier code server.", flush=True)
                lost = {}
    code = server.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
