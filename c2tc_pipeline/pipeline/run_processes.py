"""The processes of runs on this machine: which one a run has, and whether it is still there.

A process that was killed can't say that its run ended. The run would stay "started" and go on holding its slot of a
pool, and the next one would wait for it in silence.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

# A process reports itself some time after it began, by clocks that are read in different ways.
_CLOCK_SLACK_SECONDS = 5.0


@dataclass(frozen=True)
class RunProcess:
    """The process of a run.

    Parameters
    ----------
    number : int
        Its number.
    reported : float
        When it said so, in seconds since 1970.

    Examples
    --------
    >>> import time
    >>> RunProcess(os.getpid(), time.time()).is_alive()
    True
    """

    number: int
    reported: float

    def is_alive(self) -> bool:
        """Tell whether it is at work; another process that has got its number since is not it."""
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # it is there, and another user's
            pass
        began = _beginning(self.number)
        return began is None or began <= self.reported + _CLOCK_SLACK_SECONDS


def process_of(instance: dg.DagsterInstance, run_id: str) -> RunProcess | None:
    """Return the process of a run, if it has reported one.

    Parameters
    ----------
    instance : DagsterInstance
        Whose run it is.
    run_id : str
        The run.
    """
    # Those of its steps report later.
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        if event is not None and event.event_specific_data is not None and "pid" in event.engine_event_data.metadata:
            number = int(str(event.engine_event_data.metadata["pid"].value))
            return RunProcess(number, record.event_log_entry.timestamp)
    return None


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Mark the runs whose process is gone as failed, and give back the slots of pools that they hold.

    Only for an instance whose runs are all on this machine.

    Parameters
    ----------
    instance : DagsterInstance
        The instance.

    Returns
    -------
    list of str
        The ids of those runs.

    Examples
    --------
    >>> end_dead_runs(dg.DagsterInstance.ephemeral())
    []
    """
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        process = process_of(instance, run.run_id)
        if process is None or process.is_alive():
            continue
        # It may have ended by itself since it was listed.
        now = instance.get_run_by_id(run.run_id)
        if now is None or now.status != dg.DagsterRunStatus.STARTED:
            continue
        # What Dagster's own monitor does when it finds a dead run, for those who work without its daemon.
        instance.report_run_failed(run, f"The process of this run ({process.number}) is gone.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return ended


def _beginning(number: int) -> float | None:
    """Return when a process began, in seconds since 1970; infinity for one that has ended and is not collected yet.

    None where the system does not tell, as only Linux does in this way.
    """
    try:
        # The name of the program, in brackets, may hold anything.
        state, *fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        if state == "Z":
            return float("inf")
        [booted] = [line.split()[1] for line in Path("/proc/stat").read_text().splitlines() if line[:5] == "btime"]
        return float(booted) + float(fields[18]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
