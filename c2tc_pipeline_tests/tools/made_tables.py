"""Small synthetic tables, and the content of directories for comparison."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from c2tc_pipeline.common.defaults import checked_overrides
from c2tc_pipeline.tables.roles import ColumnRole
from c2tc_pipeline.tables.statistics import Block, gather_statistics

WORDS = ("senior engineer", "junior engineer", "head nurse", "night nurse", "cook")
CODES = ("ENG1", "ENG2", "NUR1", "NUR2", "COOK")


def mixed_table(rows: int = 300, classes: int = 3, seed: int = 0, *, words: bool = False) -> pd.DataFrame:
    """Make a table with numbers, a string, a code, a flag and a timestamp, whose classes differ in size.

    Codes in the string column need no autoencoder; words do, which takes a second.
    """
    rng = np.random.default_rng(seed)
    shares = 0.6 ** np.arange(classes)
    label = np.sort(rng.choice(classes, rows, p=shares / shares.sum()))
    label[:classes] = np.arange(classes)
    return pd.DataFrame(
        {
            "amount": rng.normal(label, 1.0),
            "age": rng.integers(18, 90, rows),
            "job": rng.choice(WORDS if words else CODES, rows),
            "day": rng.integers(1, 8, rows),
            "insured": rng.random(rows) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, rows), unit="s"),
            "outcome": np.array([f"class {chr(97 + number)}" for number in range(classes)])[label],
        }
    )


def inferred_roles(frame: pd.DataFrame, label: str, overrides: Any = None) -> dict[str, ColumnRole]:
    """Return the role of every column but the label."""
    columns = [name for name in frame.columns if name != label]
    rows = Block(frame, np.zeros(len(frame), dtype=np.int64), np.arange(len(frame)))
    return gather_statistics([rows], columns, checked_overrides(list(frame.columns), label, overrides or {})).roles


@st.composite
def labelled_frames(draw: st.DrawFn) -> pd.DataFrame:
    """Draw a table of up to 60 rows with missing values, equal rows, small classes and some rows without a label."""
    rows = draw(st.integers(4, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Few distinct values make equal rows.
    spread = draw(st.sampled_from([2, 5, 1000]))
    amount = rng.integers(0, spread, rows) / 7
    amount[rng.random(rows) < draw(st.sampled_from([0.0, 0.3]))] = np.nan
    amount[:2] = 0.25, 0.5
    classes = draw(st.integers(2, 4))
    label = rng.choice(classes, rows, p=rng.dirichlet(np.ones(classes)))
    label[:classes] = np.arange(classes)
    outcome = pd.Series(np.array(["no", "yes", "may be", "é"], dtype=object)[label])
    outcome[classes:] = outcome[classes:].mask(rng.random(rows - classes) < draw(st.sampled_from([0.0, 0.2])))
    frame = pd.DataFrame(
        {
            "amount": amount,
            "carrier": pd.Series(rng.choice(["AA", "BB", "CC"], rows), dtype="str").mask(rng.random(rows) < 0.1),
            "day": rng.integers(1, draw(st.integers(2, 8)) + 1, rows),
            "outcome": outcome.astype("str"),
        }
    )
    # One table in four has words, because the autoencoder takes most of the time.
    if draw(st.integers(0, 3)) == 3:
        frame["job"] = rng.choice(WORDS, rows)
    return frame


def data_hashes(directory: Path) -> dict[str, str]:
    """Return the sha256 of every data file; summaries and reports contain times and differ."""
    files = [*directory.glob("*.parquet"), *directory.glob("encoder/*")]
    assert files
    return {path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def everything_below(folder: Path) -> dict[str, Any]:
    """Return every path below a folder with its bytes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }
