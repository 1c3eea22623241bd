"""The Dagster instance on one machine: its folder, its settings, and how to open it in this process.

The settings themselves are in ``dagster.yaml`` beside this file. Where the folder is by default is for the caller to
say.
"""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage.local_backend import LocalBackend

SETTINGS = Path(__file__).with_name("dagster.yaml")


def prepare_home(home: str | Path) -> Path:
    """Make the folder of an instance, with the default settings unless it has settings already.

    Parameters
    ----------
    home : str or Path
        The folder, as in ``DAGSTER_HOME``.

    Returns
    -------
    Path
        The same folder, absolute, as Dagster wants it.

    Raises
    ------
    InputError
        When it can't be made.

    Examples
    --------
    >>> import tempfile
    >>> home = prepare_home(Path(tempfile.mkdtemp()) / "dagster")
    >>> (home / "dagster.yaml").read_text() == SETTINGS.read_text()
    True
    """
    folder = Path(home).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The folder {folder} can't be made ({error.strerror}); set DAGSTER_HOME to another."
        ) from None
    LocalBackend(folder).put_if_absent(SETTINGS.name, SETTINGS.read_bytes())
    return folder


def open_instance(home: str | Path) -> dg.DagsterInstance:
    """Return the instance in a folder, made if need be; use it in a ``with`` block, which ends its connections.

    Parameters
    ----------
    home : str or Path
        The folder, as in ``DAGSTER_HOME``.

    Returns
    -------
    DagsterInstance
        The one that a dashboard with the same ``DAGSTER_HOME`` shows.

    Examples
    --------
    >>> import tempfile
    >>> with open_instance(tempfile.mkdtemp()) as instance:
    ...     instance.telemetry_enabled
    False
    """
    # DagsterInstance.get() does the same with the folder in DAGSTER_HOME; this needs no change of the environment.
    return dg.DagsterInstance.from_config(str(prepare_home(home)))


def end_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Mark the runs whose process is gone as failed, and give back the slots of pools that they hold.

    A killed process can't say that its run ended: the run would stay "started" and go on holding its slot, and the
    next run would wait for it in silence. Only for an instance whose runs are all on this machine.

    Parameters
    ----------
    instance : DagsterInstance
        As :func:`open_instance` returns it.

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
        process = _process_of(instance, run.run_id)
        if process is None or _is_alive(process):
            continue
        # It may have ended by itself since it was listed.
        now = instance.get_run_by_id(run.run_id)
        if now is None or now.status != dg.DagsterRunStatus.STARTED:
            continue
        # What Dagster's own monitor does when it finds a dead run, which with runs of one machine it can't.
        instance.report_run_failed(run, f"The process of this run ({process}) is gone.")
        instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
        ended.append(run.run_id)
    return ended


def _process_of(instance: dg.DagsterInstance, run_id: str) -> int | None:
    """Return the process of a run; those of its steps report later."""
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records
    for record in records:
        event = record.event_log_entry.dagster_event
        if event is not None and event.event_specific_data is not None and "pid" in event.engine_event_data.metadata:
            return int(str(event.engine_event_data.metadata["pid"].value))
    return None


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and another user's
        pass
    return True
