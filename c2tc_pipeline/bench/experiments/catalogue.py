"""Which tables an experiment runs on: the paper's, from a folder, or those of a catalogue of your own."""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.bench.experiments.grid import Experiment
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.spec import TableSpec

PAPER_TABLES = Path(__file__).parent / "paper_tables.yaml"


def tables_of(
    experiment: Experiment, *, data: Path | None = None, catalogue: Path | None = None
) -> dict[str, TableSpec]:
    """Return the tables of an experiment, with sources that can be opened.

    Parameters
    ----------
    experiment : Experiment
        Who names the tables.
    data : path, optional
        The folder with the paper's tables as Parquet files.
    catalogue : path, optional
        A catalogue that describes the tables, instead of the paper's.

    Raises
    ------
    InputError
        When a table is not there; the message says which.
    """
    if experiment.scaling is not None:
        return {}
    if catalogue is not None:
        loaded = load_catalogue(catalogue)
        described = {name: loaded.table(name) for name in experiment.tables}
        return {n: spec.model_copy(update={"source": loaded.resolve_source(spec)}) for n, spec in described.items()}
    known = load_catalogue(PAPER_TABLES)
    if data is None:
        raise InputError(
            f"The experiment {experiment.name!r} needs tables; name the folder of the paper's with --data, or tables "
            "of a catalogue with --catalogue and --tables."
        )
    specs = {
        name: known.table(name).model_copy(update={"source": str(data / known.table(name).source)})
        for name in experiment.tables
    }
    absent = [name for name, spec in specs.items() if not Path(spec.source).is_file()]
    if absent:
        raise InputError(
            f"There is no {absent[0]}.parquet in {str(data)!r}; name the folder that has it with --data, or choose "
            "among the tables that are there with --tables."
        )
    return specs
