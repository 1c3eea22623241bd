"""``c2tc forget``: find the rows to forget, check the source, and publish the directory anew.

What a table is without some rows is computed in :mod:`c2tc_pipeline.condensation.forget`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.condensation.forget import Forgotten, forget_rows
from c2tc_pipeline.condensation.table import ARTEFACT_KIND, CondensedTable
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline.storage.artefact import check_target, publish_directory, read_manifest
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.kinds import to_text

SPLIT_NAME = "split.parquet"
SCORES_NAME = "scores.parquet"


def forget_in_directory(directory: Path, ids: Path, *, key: str | None = None, source: str | None = None) -> Forgotten:
    """Make a directory that ``c2tc condense`` wrote forget source rows; all of it or nothing."""
    if not directory.is_dir():
        raise InputError(f"There is no directory {str(directory)!r}; name one that c2tc condense wrote.")
    # Before the table is read: whatever comes in its place from here on is not what is replaced.
    manifest = read_manifest(directory)
    check_target(directory, kind=ARTEFACT_KIND, replace=True)
    table = CondensedTable.load(directory)
    wanted = read_ids(ids)
    address, digest = source or table.summary.get("source"), table.summary.get("source_digest")
    if address is None or digest is None:
        raise InputError(
            f"Directory {str(directory)!r} does not say which source it was made from; condense the table anew without "
            "the rows."
        )
    blocks = Blocks.of_source(address)
    if blocks.digest != digest:
        raise InputError(
            f"The source {blocks.shown} is not as it was when it was condensed; name a copy that is with --source, or "
            "condense the table anew without the rows."
        )
    check_key(key, blocks.columns, blocks.shown)
    rows = find_rows(blocks, wanted, key, ids)
    found = forget_rows(table, blocks, rows)
    if found.rows:
        write = _writer(found.table, directory, rows)
        publish_directory(directory, write, kind=ARTEFACT_KIND, replace=True, instead_of=manifest)
    return found


def check_key(key: str | None, columns: Iterable[object], shown: str) -> None:
    """Refuse a key that is no column.

    Examples
    --------
    >>> check_key("person", ["person", "age"], "people.csv")
    """
    names = [str(name) for name in columns]
    if key is not None and key not in names:
        raise InputError(f"There is no key column {key!r} in {shown}; {closest(key, names)}.")


def read_ids(path: Path) -> dict[int, str]:
    """Return the ids in a file by their line, counted from 1; empty lines are left out.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ids.txt"
    >>> _ = path.write_text("17\\n\\n4\\n")
    >>> read_ids(path)
    {1: '17', 3: '4'}
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"The file {path} is not UTF-8 text; write one id a line.") from None
    except FileNotFoundError:
        raise InputError(f"There is no file {path}; name one with an id a line.") from None
    except OSError:
        raise InputError(f"The file {path} can't be read; check that it is a file and its permissions.") from None
    found = {number: line.strip() for number, line in enumerate(lines, start=1) if line.strip()}
    if not found:
        raise InputError(f"The file {path} holds no id; write one a line.")
    return found


def find_rows(blocks: Blocks, ids: dict[int, str], key: str | None, path: Path) -> np.ndarray:
    """Return the positions of the rows that ids name, in the key column or, without one, as positions.

    Messages name the line of the file (``path``) and not the id, since an id may identify a person.

    Examples
    --------
    >>> import pandas as pd
    >>> blocks = Blocks.of_frame(pd.DataFrame({"person": ["ann", "bob", "ann"]}))
    >>> find_rows(blocks, {1: "ann"}, "person", Path("ids.txt")).tolist()
    [0, 2]
    >>> find_rows(blocks, {1: "1"}, None, Path("ids.txt")).tolist()
    [1]
    """
    if key is None:
        count = sum(len(frame) for frame in blocks.frames(blocks.columns[:1]))
        for line, text in ids.items():
            # Not isdigit: that takes other scripts' digits, and int() takes signs and underscores.
            if not (text.isascii() and text.isdecimal()):
                raise InputError(
                    f"Line {line} of {path} is no position of a row, counted from 0; correct it, or name the column "
                    "that holds the ids with --key."
                )
            # Compared by length first, because a number of a million digits takes long to read.
            digits = text.lstrip("0")
            if len(digits) > 18 or int(digits or 0) >= count:
                raise InputError(
                    f"Line {line} of {path} is beyond the last row of the source, whose position is {count - 1}; "
                    "count rows from 0."
                )
        return np.unique([int(text) for text in ids.values()])
    wanted, known, start = set(ids.values()), set[str](), 0
    rows = [np.empty(0, dtype=np.int64)]
    for frame in blocks.frames([key]):
        values = to_text(frame[key]).str.strip()
        own = values.isin(wanted).to_numpy()
        known.update(values[own])
        rows.append(start + np.flatnonzero(own))
        start += len(frame)
    unknown = [line for line, text in ids.items() if text not in known]
    if unknown:
        lines = "1 more line" if len(unknown) == 2 else f"{len(unknown) - 1:,} more lines"
        more = f", nor is that in {lines}" if len(unknown) > 1 else ""
        raise InputError(
            f"The id in line {unknown[0]} of {path} is not in column {key!r} of the source{more}; correct the file."
        )
    return np.concatenate(rows)


def _writer(table: CondensedTable, before: Path, rows: np.ndarray):  # type: ignore[no-untyped-def]
    """Return what writes the files of a directory anew."""

    def write(directory: Path) -> None:
        table.write_files(directory)
        (directory / "report.html").write_text(render_report(table), encoding="utf-8")
        if (before / SPLIT_NAME).exists():
            split = read_parquet(before / SPLIT_NAME)
            write_parquet(split[~split["source_row"].isin(rows)].reset_index(drop=True), directory / SPLIT_NAME)
        if (before / SCORES_NAME).exists():
            shutil.copy(before / SCORES_NAME, directory / SCORES_NAME)

    return write
