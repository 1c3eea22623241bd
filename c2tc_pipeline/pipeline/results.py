"""A table's results as a plain folder that a person can open, copied from the store after each run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import pandas as pd

from c2tc_pipeline.evaluation.averages import SCORES_NAME
from c2tc_pipeline.pipeline.formats import FORMATS, PAGE_NAME
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.pipeline.versioning import Partitions
from c2tc_pipeline.storage.artefact import check_target, publish_directory
from c2tc_pipeline.storage.manifest import refusing_damage
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.spec import TableSpec

RESULTS_KIND = "pipeline-results"
_CONDENSED = "condensed_table"
_SCORES = "evaluation_scores"


def check_results_folder(folder: Path) -> None:
    """Refuse a folder that :func:`export_results` would not replace, before any work is done."""
    check_target(folder, kind=RESULTS_KIND, replace=True)


def export_results(store: ArtefactStore, spec: TableSpec, folder: Path) -> None:
    """Copy the newest report, condensed tables and scores of a table into a folder, all or nothing.

    The folder holds ``report.html`` and, for each ratio that was made, a folder that ``CondensedTable.load`` reads. One
    that was written here before is replaced. Every file is verified as it is copied.
    """

    def write(directory: Path) -> None:
        with _newest(store, "report", spec.name) as stored:
            shutil.copy(stored / PAGE_NAME, directory)
        for ratio in spec.ratios:
            cell = Partitions.cell_key(spec.name, ratio)
            if all(store.latest(artefact_key(asset, cell)) for asset in (_CONDENSED, _SCORES)):
                kind = FORMATS[_CONDENSED].kind
                publish_directory(directory / repr(ratio), partial(_copy_cell, store, cell), kind=kind)

    publish_directory(folder, write, kind=RESULTS_KIND, settings={"table": spec.name}, replace=True)


def report_page(folder: Path) -> Path:
    """Return the page in a folder of results."""
    return folder / PAGE_NAME


def read_results(store: ArtefactStore, table: str, ratios: Sequence[float]) -> pd.DataFrame:
    """Return the scores of a table at some ratios, as ``gather_scores`` combines them."""
    from c2tc_pipeline.evaluation.averages import gather_scores

    cells: dict[tuple[str, float], pd.DataFrame] = {}
    for ratio in ratios:
        cell = Partitions.cell_key(table, ratio)
        with _newest(store, _SCORES, cell) as directory, refusing_damage(artefact_key(_SCORES, cell)):
            cells[table, ratio] = FORMATS[_SCORES].read(directory)
    return gather_scores(cells)


def _copy_cell(store: ArtefactStore, cell: str, folder: Path) -> None:
    with _newest(store, _CONDENSED, cell) as stored:
        shutil.copytree(stored, folder, dirs_exist_ok=True)
    with _newest(store, _SCORES, cell) as stored:
        shutil.copy(stored / SCORES_NAME, folder)


def _newest(store: ArtefactStore, asset: str, partition: str) -> AbstractContextManager[Path]:
    return store.fetch(artefact_key(asset, partition), kind=FORMATS[asset].kind)
