"""Jobs of the real pipeline with injected faults, for processes that a test starts and may lose.

Each is rebuilt from a folder and the name of a fault in whichever process works on it: that of the run or, with the
real executor, that of a step. Faults change modules for good, so nothing here is for the process of the tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.condensation import steps
from c2tc_pipeline_tests.pipeline.pipeline_rig import PARTS, QUIET, Rig, step_of, without_pictures
from c2tc_pipeline_tests.tools.reliability.moments import count_calls, die, killed_at

NONE = "none"
STORAGE_VARIABLE = "C2TC_RIG_STORAGE"
"""Names a storage other than that in the rig's folder."""


def killed_once_in_encoder(folder: Path) -> None:
    """Die in the middle of the encoder's step, the first time."""

    def die_once() -> None:
        try:
            (folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return
        die()

    _before_encoder_ends(die_once)


def held_in_encoder(folder: Path) -> None:
    """Write the process id in the middle of the encoder's step, and wait for the signal to continue.

    The pipe ``alive`` is held open as long as this process lives.
    """

    def hold() -> None:
        alive = os.open(folder / "alive", os.O_WRONLY)
        os.write(alive, f"{os.getpid()}\n".encode())
        (folder / "go").read_bytes()

    _before_encoder_ends(hold)


def _before_encoder_ends(happening: Callable[[], None]) -> None:
    fit = steps.fit_encoder

    def fit_and_happen(*arguments: Any, **options: Any) -> Any:
        fitted = fit(*arguments, **options)
        happening()
        return fitted

    steps.fit_encoder = fit_and_happen


FAULTS: dict[str, Callable[..., None]] = {
    NONE: lambda folder: None,
    "count_calls": count_calls,
    "killed_at": killed_at,
    "killed_once_in_encoder": killed_once_in_encoder,
    "held_in_encoder": held_in_encoder,
}


@cache
def _harm(folder: str, fault: str, *arguments: str) -> None:
    """Let a fault happen in this process; once, however often Dagster rebuilds the job."""
    FAULTS[fault](Path(folder), *arguments)
    without_pictures(pytest.MonkeyPatch())


@cache
def faulty_job(folder: str, part: str, partition: str, fault: str, *arguments: str) -> dg.JobDefinition:
    """Return a part of the pipeline in a folder as a job, with the executor of the pipeline."""
    _harm(folder, fault, *arguments)
    keys = [step_of(step, partition).key for step in PARTS[part]]
    job = dg.define_asset_job("part", dg.AssetSelection.assets(*keys))
    whole = dg.Definitions.merge(_rig(Path(folder)).definitions, dg.Definitions(jobs=[job]))
    return whole.resolve_job_def("part")


def _rig(folder: Path) -> Rig:
    return Rig(folder, storage=os.environ.get(STORAGE_VARIABLE))


@cache
def faulty_job_in_process(folder: str, part: str, partition: str, fault: str, *arguments: str) -> dg.JobDefinition:
    """Return the same with all steps in the process of the run."""
    return faulty_job(folder, part, partition, fault, *arguments).with_executor_def(dg.in_process_executor)


def execute(
    build: Callable[..., dg.JobDefinition],
    folder: Path,
    part: str,
    partition: str | None,
    *fault: str,
    parent_run: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Make a part, from the failure of another run if one is named; raise if it fails."""
    os.environ.update(environment or {})
    arguments: tuple[Any, ...] = (str(folder), part, partition or "", *(fault or (NONE,)))
    # The name of this module as a program is no name to import it by.
    rebuilt = dg.build_reconstructable_job(__spec__.name, build.__name__, reconstructable_args=arguments)
    with _rig(folder) as rig:
        dg.execute_job(
            rebuilt,
            rig.instance,
            run_config=QUIET,
            raise_on_error=True,
            reexecution_options=dg.ReexecutionOptions.from_failure(parent_run, rig.instance) if parent_run else None,
        )


if __name__ == "__main__":
    execute(faulty_job, Path(sys.argv[1]), sys.argv[2], sys.argv[3], *sys.argv[4:])
