"""The Dagster instance on one machine: its folder, its settings, and how to open it in this process.

The settings themselves are in ``dagster.yaml`` beside this file. Where the folder is by default is for the caller to
say.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import yaml

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend

SETTINGS = Path(__file__).with_name("dagster.yaml")
_LAUNCHER = {"module": "c2tc_pipeline.pipeline.launcher", "class": "ForkingRunLauncher"}


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
    Backend(folder).put_if_absent(SETTINGS.name, SETTINGS.read_bytes())
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


def runs_are_here(home: str | Path) -> bool:
    """Tell whether an instance has its runs on this machine, as it does unless its settings say otherwise.

    Parameters
    ----------
    home : str or Path
        The folder of an instance that was opened before.

    Examples
    --------
    >>> import tempfile
    >>> runs_are_here(prepare_home(tempfile.mkdtemp()))
    True
    """
    settings = yaml.safe_load((Path(home) / SETTINGS.name).read_text(encoding="utf-8")) or {}
    launcher = settings.get("run_launcher", _LAUNCHER)
    return launcher == _LAUNCHER and not {"storage", "run_storage", "event_log_storage"} & settings.keys()
