"""Catalogue, storage and Dagster instance of a pipeline on this machine.

Dagster loads definitions in processes of its own, so the first three are passed as environment variables with absolute
paths. The default settings of an instance are in ``dagster.yaml`` beside this file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import yaml

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend, split_root
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue

SETTINGS = Path(__file__).with_name("dagster.yaml")
# A process reports its id some time after it began, and the two clocks are read in different ways.
_CLOCK_SLACK_SECONDS = 5.0


@dataclass(frozen=True)
class Workplace:
    """Catalogue file, storage root (a path, ``s3://bucket/prefix`` or ``memory://name``) and DAGSTER_HOME."""

    catalogue: Path
    storage: str
    home: Path

    def environment(self) -> dict[str, str]:
        """Return the environment variables by which another process finds the same place."""
        scheme, folder = split_root(self.storage)
        return {
            "C2TC_CATALOGUE": str(self.catalogue.absolute()),
            "C2TC_STORAGE": str(Path(folder).absolute()) if scheme == "file" else self.storage,
            "DAGSTER_HOME": str(self.home.absolute()),
        }

    def tables(self) -> Catalogue:
        """Load the catalogue."""
        return load_catalogue(self.catalogue.absolute())

    def store(self) -> ArtefactStore:
        """Return the store of artefacts."""
        return ArtefactStore(self.environment()["C2TC_STORAGE"])

    def definitions(self, catalogue: Catalogue) -> dg.Definitions:
        """Return the pipeline over the loaded catalogue."""
        from c2tc_pipeline.definitions import build_defs

        return build_defs(catalogue, storage=self.environment()["C2TC_STORAGE"])


def prepare_home(home: str | Path) -> Path:
    """Make DAGSTER_HOME, with the default settings unless it has settings already; return its absolute path."""
    folder = Path(home).absolute()
    settings = folder / SETTINGS.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not settings.exists():
            Backend(folder).put_if_absent(SETTINGS.name, SETTINGS.read_bytes())
    except OSError as error:
        raise InputError(
            f"The folder {folder} can't be made ({error.strerror}); set DAGSTER_HOME to another."
        ) from None
    return folder


def open_instance(home: str | Path) -> dg.DagsterInstance:
    """Return the instance in a folder, made if need be; use it in a ``with`` block, which closes its connections."""
    # DagsterInstance.get() does the same with the folder in DAGSTER_HOME; here the environment stays unchanged.
    return dg.DagsterInstance.from_config(str(prepare_home(home)))


def runs_are_local(home: str | Path) -> bool:
    """Return whether an instance has its runs on this machine, as it does unless its settings say otherwise."""
    remote = {"run_launcher", "storage", "run_storage", "event_log_storage"}
    return remote.isdisjoint(yaml.safe_load(Path(home, SETTINGS.name).read_text(encoding="utf-8")) or {})


def end_dead_runs(instance: dg.DagsterInstance, is_due: Callable[[str], bool] = lambda _: True) -> list[str]:
    """Mark runs as failed whose process was killed, and free their pool slots; return their ids.

    Otherwise a killed ``c2tc run`` would keep its slot of the pool, and the next one would wait for it forever.
    Only for an instance whose runs are all on this machine. ``is_due`` says whether one is to be ended already.
    """
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        process = _process_of(instance, run.run_id)
        if process is None or _is_alive(*process) or not is_due(run.run_id):
            continue
        # It may have ended by itself since it was listed.
        now = instance.get_run_by_id(run.run_id)
        if now is not None and now.status == dg.DagsterRunStatus.STARTED:
            instance.report_run_failed(run, f"The process {process[0]} of this run was killed.")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            ended.append(run.run_id)
    return ended


def _process_of(instance: dg.DagsterInstance, run_id: str) -> tuple[int, float] | None:
    """Return the process id that a run reported first, before those of its steps, and when."""
    for record in instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT).records:
        event = record.event_log_entry.dagster_event
        if event is not None and event.event_specific_data is not None and "pid" in event.engine_event_data.metadata:
            return int(str(event.engine_event_data.metadata["pid"].value)), record.event_log_entry.timestamp
    return None


def _is_alive(pid: int, reported: float) -> bool:
    """Return whether a process is running, and is not another one that got the same id later (in containers, often)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it exists, and belongs to another user
        pass
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        [booted] = [line.split()[1] for line in Path("/proc/stat").read_text().splitlines() if line[:5] == "btime"]
        began = float(booted) + float(fields[18]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return True  # the start time is known on Linux only
    return state != "Z" and began <= reported + _CLOCK_SLACK_SECONDS
