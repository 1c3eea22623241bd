"""How each asset's value becomes files and comes back, and what its content hash is.

What belongs here: one :class:`Format` per asset, made of the core's own saving and loading. What does not: where the
files go, which the IO manager and the artefact store decide. Equal inputs have to give equal bytes; only a file named
``timings.json`` may differ from run to run, so it counts in no hash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import pandas as pd

from c2tc_pipeline.evaluation.averages import read_scores, write_scores
from c2tc_pipeline.pipeline.values import AllocationPlan, CondensedTable, EncodedRows, TableEncoder
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.hashing import hash_file, hash_json
from c2tc_pipeline.storage.manifest import TIMINGS_NAME, files_below, relative_name
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import derive_schema, schema_to_json
from c2tc_pipeline.tables.table import Table

T = TypeVar("T")

PAGE_NAME = "report.html"
TABLE_NAME = "table.parquet"
SCHEMA_NAME = "schema.json"


@dataclass(frozen=True)
class Format(Generic[T]):
    """The files of one kind of value.

    Examples
    --------
    >>> words = Format(
    ...     kind="words",
    ...     write=lambda value, directory: (directory / "words.txt").write_text(value),
    ...     read=lambda directory: (directory / "words.txt").read_text(),
    ... )
    >>> words.digest_of("to be") == words.digest_of("to be"), words.digest_of("to be") == words.digest_of("or not")
    (True, False)
    """

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
    """Return the sha256 over the names and contents of all files below a directory, without timings.

    Examples
    --------
    >>> with ScratchDirectory() as folder:
    ...     _ = Path(folder, "a.txt").write_text("hi")
    ...     before = digest_of_files(Path(folder))
    ...     _ = Path(folder, "timings.json").write_text("3.1")
    ...     digest_of_files(Path(folder)) == before
    True
    """
    counted = (path for path in files_below(directory) if path.name != TIMINGS_NAME)
    return hash_json({relative_name(path, directory): hash_file(path) for path in counted})


def _write_text(text: str, directory: Path) -> None:
    (directory / PAGE_NAME).write_text(text, encoding="utf-8")


def _read_text(directory: Path) -> str:
    return (directory / PAGE_NAME).read_text(encoding="utf-8")


def _write_table(frame: pd.DataFrame, directory: Path) -> None:
    write_parquet(frame, directory / TABLE_NAME)


def _read_table(directory: Path) -> pd.DataFrame:
    return read_parquet(directory / TABLE_NAME)


def _write_blocks(blocks: Blocks, directory: Path) -> None:
    blocks.write(directory / TABLE_NAME)


def _read_blocks(directory: Path) -> Blocks:
    return Blocks.of_parquet(directory / TABLE_NAME)


def _write_validated(table: Table, directory: Path) -> None:
    table.write_files(directory)
    (directory / SCHEMA_NAME).write_text(schema_to_json(derive_schema(table)) + "\n", encoding="utf-8")


def _write_leaderboard(board: pd.DataFrame, directory: Path) -> None:
    from c2tc_pipeline.reports.leaderboard import render_leaderboard

    _write_table(board, directory)
    (directory / "leaderboard.html").write_text(render_leaderboard(board), encoding="utf-8")


def _write_encoder(encoder: TableEncoder, directory: Path) -> None:
    # The encoding package brings torch along, which the definitions must not wait for.
    from c2tc_pipeline.encoding.storage import save_encoder

    save_encoder(encoder, directory)


def _read_encoder(directory: Path) -> TableEncoder:
    from c2tc_pipeline.encoding.storage import load_encoder

    return load_encoder(directory).set_output(transform="pandas")


def _read_encoded(directory: Path) -> EncodedRows:
    from c2tc_pipeline.condensation.encoded import EncodedRows

    return EncodedRows.read_files(directory)


def _read_plan(directory: Path) -> AllocationPlan:
    from c2tc_pipeline.condensation.plan import AllocationPlan

    return AllocationPlan.read_files(directory)


def _read_condensed(directory: Path) -> CondensedTable:
    from c2tc_pipeline.condensation.table import CondensedTable

    return CondensedTable.read_files(directory)


def _write_files(value: Any, directory: Path) -> None:
    value.write_files(directory)


def _located(encoded: EncodedRows, folder: str) -> EncodedRows:
    return encoded.stored_in(folder)


def _digest(value: Any) -> str:
    return value.digest()


FORMATS: dict[str, Format[Any]] = {
    "raw_table": Format("raw-table", _write_blocks, _read_blocks, Blocks.values_digest),
    "validated_table": Format("validated-table", _write_validated, Table.read_files, _digest),
    "encoder": Format("encoder", _write_encoder, _read_encoder),
    "encoded_table": Format("encoded-table", _write_files, _read_encoded, _digest, _located),
    "cluster_allocation": Format("allocation-plan", _write_files, _read_plan),
    "condensed_table": Format("condensed-table", _write_files, _read_condensed),
    "evaluation_scores": Format("scores", write_scores, read_scores),
    "leaderboard": Format("leaderboard", _write_leaderboard, _read_table),
    "report": Format("report", _write_text, _read_text),
}
"""By the name of the asset."""
