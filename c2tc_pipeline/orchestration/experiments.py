"""Experiments as the pipeline runs them: which there are, on which tables, with how much of their grid.

What an experiment is and how it is run is the core's business (:mod:`c2tc_pipeline.evaluation.experiments`), which
brings torch along and is imported when an experiment is run. Nothing here is launched by itself: an experiment has no
table of the pipeline behind it, takes hours, and is asked for by a person.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

import c2tc_pipeline.evaluation.experiments
from c2tc_pipeline.errors import InputError
from c2tc_pipeline.orchestration.versioning import recipe
from c2tc_pipeline.tables import Catalogue, TableSpec, source_digest

if TYPE_CHECKING:
    from c2tc_pipeline.evaluation.experiments.grid import Experiment

_GRIDS = Path(c2tc_pipeline.evaluation.experiments.__file__).parent / "grids"
_TOLD_SHARE = 0.05
# What condensing and scoring read of a table's description; seed, device and ratios are the experiment's.
_READ_FIELDS = {"label", "roles", "split"}


def experiment_partitions() -> dg.StaticPartitionsDefinition:
    """Return one partition an experiment, named by the files of the grids; none of them is opened.

    Examples
    --------
    >>> "overall" in experiment_partitions().get_partition_keys()
    True
    """
    return dg.StaticPartitionsDefinition(sorted(path.stem for path in _GRIDS.glob("*.yaml")))


class ExperimentConfig(dg.Config):
    """How much of an experiment is run; nothing said, all of it but the methods that take minutes a cell.

    Parameters
    ----------
    tables : list of str
        Other tables than all that there are.
    ratios : list of float
        Other ratios.
    methods : list of str
        Only these.
    models : list of str
        Other models.
    seeds : int or None
        Another number of repetitions.
    jobs : int or None
        Processes side by side.
    """

    tables: list[str] = Field(default=[], description="Only these tables; all that there are by default.")
    ratios: list[float] = Field(default=[], description="Other ratios than those of the experiment.")
    methods: list[str] = Field(default=[], description="Only these methods; all but dm, gm and mtt by default.")
    models: list[str] = Field(default=[], description="Other models than those of the experiment.")
    seeds: int | None = Field(default=None, description="Another number of repetitions.")
    jobs: int | None = Field(
        default=None, description="Processes side by side; one a core by default, 0 for none beside the step's own."
    )


def chosen_experiment(
    name: str, config: ExperimentConfig, *, data: Path | None, catalogue: Catalogue
) -> tuple[Experiment, dict[str, TableSpec]]:
    """Return an experiment and the tables that it runs on.

    Parameters
    ----------
    name : str
        The experiment.
    config : ExperimentConfig
        How much of it.
    data : Path or None
        The folder of the paper's tables. With it, these are the tables; without it, those of the catalogue.
    catalogue : Catalogue
        The pipeline's tables.

    Raises
    ------
    InputError
        When it can't run on these tables, or the config names what there is not.
    """
    from c2tc_pipeline.condensation.rivals import COSTLY
    from c2tc_pipeline.evaluation.experiments.catalogue import tables_of
    from c2tc_pipeline.evaluation.experiments.grid import load_experiment

    if config.jobs is not None and config.jobs < 0:
        raise InputError(f"The config field 'jobs' is {config.jobs}; it must be 0 or more.")
    experiment = load_experiment(name)
    tables = tuple(config.tables)
    if data is None and not tables and experiment.scaling is None:
        tables = tuple(catalogue)
        if not tables:
            raise InputError(f"There are no tables in the catalogue {catalogue.path}; describe one there.")
    _refuse_featureless(experiment, tables)
    affordable = [part.method for part in experiment.methods if part.method not in COSTLY]
    experiment = experiment.restricted(
        tables=tables,
        ratios=tuple(config.ratios),
        methods=tuple(config.methods or dict.fromkeys(affordable)),
        models=tuple(config.models),
        seeds=config.seeds,
    )
    if data is None and experiment.scaling is None:
        described = {table: catalogue.table(table) for table in experiment.tables}
        return experiment, {
            table: spec.model_copy(update={"source": catalogue.resolve_source(spec)})
            for table, spec in described.items()
        }
    return experiment, tables_of(experiment, data=data)


def _refuse_featureless(experiment: Experiment, tables: tuple[str, ...]) -> None:
    if experiment.imbalance is None:
        return
    columns = experiment.imbalance.columns
    for table in tables:
        if table not in columns:
            raise InputError(
                f"The experiment {experiment.name!r} can't run on table {table!r}, of which it knows no feature to "
                f"make one-sided; choose among {', '.join(columns)} with the config field 'tables', or name the folder "
                "of the paper's tables in C2TC_BENCH_DATA."
            )


def scores_recipe(experiment: Experiment, specs: Mapping[str, TableSpec]) -> str:
    """Return the hash of all that determines an experiment's scores: its grid, and the tables' bytes and roles."""
    settings = {
        "experiment": experiment.model_dump(mode="json"),
        "tables": {name: spec.model_dump(mode="json", include=_READ_FIELDS) for name, spec in specs.items()},
    }
    sources = {f"source/{name}": source_digest(spec.source) for name, spec in specs.items()}
    return recipe("experiment_scores", settings, sources)


class ProgressLog:
    """Tells how far an experiment is, now and then.

    Parameters
    ----------
    tell : callable
        Told a line at the start, and whenever another twentieth of the work is done.

    Examples
    --------
    >>> progress = ProgressLog(print)
    >>> for done in range(31):
    ...     progress(done, 400)
    0 % done
    5 % done, about 0 minutes left
    """

    def __init__(self, tell: Callable[[str], Any]) -> None:
        self._tell = tell
        self._told = -1
        self._started = time.monotonic()

    def __call__(self, done: float, total: float) -> None:
        """Be told how much work is done, and how much there is."""
        share = done / total if total else 1.0
        if (part := int(share / _TOLD_SHARE + 1e-9)) == self._told:
            return
        self._told = part
        told = f"{100 * share:.0f} % done"
        if 0 < share < 1:
            minutes = (time.monotonic() - self._started) * (1 - share) / share / 60
            told += f", about {minutes:.0f} minutes left"
        self._tell(told)
