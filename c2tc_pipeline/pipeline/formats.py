"""Files and content hash of each asset's value.

Where the files go is decided by the IO manager and the artefact store. Equal inputs have to give equal bytes; only a
file named ``timings.json`` may differ from run to run, so it counts in no hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from c2tc_pipeline.evaluation.row_worth import read_scores, write_scores
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.manifest import TIMINGS_NAME, files_below, hash_file, hash_json, relative_name
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import derive_schema, schema_to_json
from c2tc_pipeline.tables.table import Table

# Dagster resolves annotations when the definitions load, which must not wait for torch and scikit-learn: only type
# checkers see these classes.
if TYPE_CHECKING:
    from c2tc_pipeline.condensation.encoded import EncodedRows
    from c2tc_pipeline.condensation.plan import AllocationPlan
    from c2tc_pipeline.condensation.table import CondensedTable
    from c2tc_pipeline.encoding.base import TableEncoder
else:
    AllocationPlan = CondensedTable = EncodedRows = TableEncoder = Any

T = TypeVar("T")

PAGE_NAME = "report.html"
TABLE_NAME = "table.parquet"
ROWS_NAME = "train.parquet"
SCHEMA_NAME = "schema.json"


@dataclass(frozen=True)
class Format(Generic[T]):
    """The files of one kind of value, its content hash, and how it learns the address of its files."""

    kind: str
    write: Callable[[T, Path], object]
    read: Callable[[Path], T]
    digest: Callable[[T], str] | None = None
    located: Callable[[T, str], T] | None = None

    def digest_of(self, value: T) -> str:
        """Return the value's content hash: ``digest``'s if there is one, else that of the files it is stored as."""
        if self.digest is not None:
            return self.digest(value)
        with ScratchDirectory() as directory:
            self.write(value, Path(directory))
            return digest_of_files(Path(directory))


def digest_of_files(directory: Path) -> str:
    """Return the sha256 over the names and contents of all files below a directory, without timings."""
    counted = (path for path in files_below(directory) if path.name != TIMINGS_NAME)
    return hash_json({relative_name(path, directory): hash_file(path) for path in counted})


def _write_text(text: str, directory: Path) -> None:
    (directory / PAGE_NAME).write_text(text, encoding="utf-8")


def _read_text(directory: Path) -> str:
    return (directory / PAGE_NAME).read_text(encoding="utf-8")


def _write_validated(table: Table, directory: Path) -> None:
    table.write_files(directory)
    (directory / SCHEMA_NAME).write_text(schema_to_json(derive_schema(table)) + "\n", encoding="utf-8")


def _write_leaderboard(board: pd.DataFrame, directory: Path) -> None:
    from c2tc_pipeline.reports.leaderboard import render_leaderboard

    write_parquet(board, directory / TABLE_NAME)
    (directory / "leaderboard.html").write_text(render_leaderboard(board), encoding="utf-8")


# The encoding and condensation packages import torch, which the definitions must not wait for.
def _write_encoder(encoder: TableEncoder, directory: Path) -> None:
    from c2tc_pipeline.encoding.storage import save_encoder

    save_encoder(encoder, directory)


def _read_encoder(directory: Path) -> TableEncoder:
    from c2tc_pipeline.encoding.storage import load_encoder

    return load_encoder(directory).set_output(transform="pandas")


def _stored(kind: str, module: str, name: str, **hooks: Any) -> Format[Any]:
    """Return the format of a class of the condensation package, which is imported when a value is read."""

    def read(directory: Path) -> Any:
        return getattr(import_module(f"c2tc_pipeline.condensation.{module}"), name).read_files(directory)

    return Format(kind, lambda value, directory: value.write_files(directory), read, **hooks)


FORMATS: dict[str, Format[Any]] = {
    "raw_table": Format(
        "raw-table",
        lambda blocks, directory: blocks.write(directory / TABLE_NAME),
        lambda directory: Blocks.of_parquet(directory / TABLE_NAME),
        Blocks.values_digest,
    ),
    "validated_table": Format("validated-table", _write_validated, Table.read_files, Table.digest),
    "encoder": Format("encoder", _write_encoder, _read_encoder),
    "encoded_table": _stored(
        "encoded-table",
        "encoded",
        "EncodedRows",
        digest=lambda encoded: encoded.digest(),
        located=lambda encoded, folder: encoded.stored_in(folder),
    ),
    "cluster_allocation": _stored("allocation-plan", "plan", "AllocationPlan"),
    "condensed_table": _stored("condensed-table", "table", "CondensedTable"),
    "training_rows": Format(
        "training-rows",
        lambda rows, directory: write_parquet(rows, directory / ROWS_NAME),
        lambda directory: read_parquet(directory / ROWS_NAME),
    ),
    "evaluation_scores": Format("scores", write_scores, read_scores),
    "leaderboard": Format("leaderboard", _write_leaderboard, lambda directory: read_parquet(directory / TABLE_NAME)),
    "report": Format("report", _write_text, _read_text),
    "ops_overview": Format("overview", _write_text, _read_text),
}
"""By the name of the asset."""
