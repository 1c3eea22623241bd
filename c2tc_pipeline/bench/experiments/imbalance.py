"""Training rows whose two-valued feature is as one-sided as asked, with everything else as it was."""

from __future__ import annotations

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.shares import largest_remainders
from c2tc_pipeline.common.errors import InputError


def imbalanced_rows(frame: pd.DataFrame, label: str, column: str, level: float, *, seed: int) -> pd.DataFrame:
    """Return as many rows as there are, with ``level`` rows of one half of a column's values to one of the other.

    Within every class rows of the two halves are drawn in that proportion: each as often as the others of its kind,
    some of them left out where there are too many and repeated where there are too few. So the number of rows and the
    shares of the classes stay what they were.

    Parameters
    ----------
    frame : DataFrame
        Training rows.
    label : str
        The label column.
    column : str
        The feature. The first half of its values in order stands for one value, the others for the other; missing
        values count as the last.
    level : float
        How many rows of the first half stand against one of the second.
    seed : int
        Determines which rows are drawn.

    Examples
    --------
    >>> rows = pd.DataFrame({"sex": ["f", "m"] * 50, "y": [0, 0, 1, 1] * 25})
    >>> drawn = imbalanced_rows(rows, "y", "sex", 9, seed=0)
    >>> int((drawn["sex"] == "f").sum()), int(drawn["y"].sum()), len(drawn)
    (90, 50, 100)
    """
    if column not in frame:
        raise InputError(f"There is no column {column!r} to make one-sided; name one that the table has.")
    values = frame[column]
    known = np.sort(values.dropna().unique())
    first = values.isin(known[: (len(known) + 1) // 2]).to_numpy()
    rng = np.random.default_rng([seed, 0x1B])
    drawn = []
    for found in frame.groupby(label, sort=True, observed=True).indices.values():
        rows = np.asarray(found)
        halves = [rows[first[rows]], rows[~first[rows]]]
        # A class that knows one half only can't be made less one-sided.
        wanted = largest_remainders(len(rows) * np.array([level, 1.0]) / (level + 1), len(rows))
        for half, count in zip(halves, _possible(wanted, halves), strict=True):
            drawn.append(_draw(half, int(count), rng))
    return frame.iloc[np.sort(np.concatenate(drawn))]


def _possible(wanted: np.ndarray, halves: list[np.ndarray]) -> np.ndarray:
    if len(halves[0]) and len(halves[1]):
        return wanted
    return np.where([len(half) > 0 for half in halves], wanted.sum(), 0)


def _draw(rows: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw rows, every one as often as the others, give or take once."""
    if not count:
        return rows[:0]
    repeats = np.tile(rows, count // len(rows))
    return np.concatenate([repeats, rng.permutation(rows)[: count - len(repeats)]])
