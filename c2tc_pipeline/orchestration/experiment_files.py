"""The values of experiments' assets, and the files that they become.

What belongs here: scores together with the grid that they are scores of, and a page with all that lies beside it. How
scores are laid out on the page is in :mod:`c2tc_pipeline.experiment_job`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from c2tc_pipeline.storage.files import TIMINGS_NAME, files_below, relative_name
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables import SplitSettings

if TYPE_CHECKING:
    from c2tc_pipeline.evaluation.experiments.grid import Experiment

EXPERIMENT_NAME = "experiment.json"
SCORES_NAME = "scores.parquet"
# They differ between two runs that find the same.
_SECONDS = ["condense_seconds", "fit_seconds"]

Files = dict[str, bytes]
"""Contents by name, with slashes."""


@dataclass(frozen=True)
class ExperimentResult:
    """Scores, and what was run to get them.

    Parameters
    ----------
    experiment : Experiment
        The grid as it was run, restricted where somebody asked for that.
    scores : DataFrame
        What :func:`~c2tc_pipeline.evaluation.experiments.runner.run_experiment` returned.
    splits : dict of str to SplitSettings
        How the tables were split.
    """

    experiment: Experiment
    scores: pd.DataFrame
    splits: dict[str, SplitSettings]


def write_result(result: ExperimentResult, directory: Path) -> None:
    """Write scores and grid into an existing directory, seconds into a file of their own."""
    write_parquet(result.scores.drop(columns=_SECONDS), directory / SCORES_NAME)
    _write_json(result.scores[_SECONDS].to_dict(orient="list"), directory / TIMINGS_NAME)
    # Without their names nobody would know where the seconds stood among the columns.
    told = {
        "experiment": result.experiment.model_dump(mode="json"),
        "splits": {name: split.model_dump(mode="json") for name, split in result.splits.items()},
        "columns": list(result.scores.columns),
    }
    _write_json(told, directory / EXPERIMENT_NAME)


def read_result(directory: Path) -> ExperimentResult:
    """Read what :func:`write_result` wrote."""
    from c2tc_pipeline.evaluation.experiments.grid import Experiment

    told = json.loads((directory / EXPERIMENT_NAME).read_text(encoding="utf-8"))
    seconds = json.loads((directory / TIMINGS_NAME).read_text(encoding="utf-8"))
    floats = {name: pd.Series(values, dtype="float64") for name, values in seconds.items()}
    scores = read_parquet(directory / SCORES_NAME).assign(**floats)[told["columns"]]
    splits = {name: SplitSettings.model_validate(split) for name, split in told["splits"].items()}
    return ExperimentResult(Experiment.model_validate(told["experiment"]), scores, splits)


def write_files(files: Mapping[str, bytes], directory: Path) -> None:
    """Write files into an existing directory, some of them below folders.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_files({"report.html": b"<p>", "figures/01.png": b"PNG"}, folder)
    >>> read_files(folder)
    {'figures/01.png': b'PNG', 'report.html': b'<p>'}
    """
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_files(directory: Path) -> Files:
    """Return all files below a directory."""
    return {relative_name(path, directory): path.read_bytes() for path in files_below(directory)}


def _write_json(value: object, path: Path) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
