"""The launcher of runs on one machine: each run is a copy of a process that has imported everything already.

Dagster's default launcher has every run import Dagster, torch and the rest anew, three seconds of CPU before the first
step begins, and can't tell when the process of a run was killed. This one can do both. It is named in the settings of
the instance (``dagster.yaml``), and is for instances whose daemon, code and runs are on one machine.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Self

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, RunLauncher, WorkerStatus
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from c2tc_pipeline.pipeline.fork_client import ForkClient
from c2tc_pipeline.pipeline.run_processes import process_of


class ForkingRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Executes runs in copies of a prepared process, and knows which of them are alive.

    Parameters
    ----------
    inst_data : ConfigurableClassData, optional
        What Dagster keeps about where it was configured.
    """

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__()
        self._inst_data = inst_data
        self._client = ForkClient()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """What Dagster keeps about where the launcher was configured."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Return what can be set: nothing."""
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]) -> Self:
        """Return a launcher; called by Dagster."""
        return cls(inst_data=inst_data)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Begin a run."""
        run, origin = context.dagster_run, context.job_code_origin
        if origin is None:
            raise RuntimeError(f"Run {run.run_id} does not say where its code is, and can't be launched.")
        command = ExecuteRunArgs(
            job_origin=origin, run_id=run.run_id, instance_ref=self._instance.get_ref()
        ).get_command_args()
        if origin.executable_path == sys.executable:
            self._client.start(command[command.index("api") :])
        else:
            # The code of another environment, of which this process has nothing imported.
            subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def terminate(self, run_id: str) -> bool:
        """Ask a run to stop, as Ctrl-C would; tell whether there was somebody to ask."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        process = process_of(self._instance, run_id)
        if process is None or not process.is_alive():
            self._instance.report_engine_event(
                "This run has no process that could be stopped: it has not begun yet, or was killed.", run
            )
            return False
        os.kill(process.number, signal.SIGINT)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        """True: the monitor of Dagster's daemon may ask."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Tell whether the process of a run is there."""
        process = process_of(self._instance, run.run_id)
        if process is None or process.is_alive():
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        return CheckRunHealthResult(WorkerStatus.FAILED, f"The process of this run ({process.number}) is gone.")

    def dispose(self) -> None:
        """End the prepared process; runs go on."""
        self._client.close()
