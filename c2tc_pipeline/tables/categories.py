"""Categories as text keys: one spelling of a value, whatever the type of its column.

``1``, ``1.0`` and ``True`` are the same code; a table read back from CSV must have the categories it was fitted with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

MISSING = -1


def factorise(series: pd.Series[Any]) -> tuple[np.ndarray, list[str]]:
    """Return the position of each row's key among the distinct keys, and the keys; missing values get -1."""
    positions, values = pd.factorize(series, use_na_sentinel=True)
    keys = [category_key(value) for value in values]
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < len(keys):
        # Values of different types can share a key; an extra entry at the end keeps -1 pointing at missing.
        place = {key: index for index, key in enumerate(distinct)}
        positions = np.array([*(place[key] for key in keys), MISSING])[positions]
    return positions.astype(np.int64, copy=False), distinct


def natural_order(key: str) -> tuple[float, str]:
    """Return a sort key: numbers by size, then text by the alphabet."""
    try:
        number = float(key)
    except ValueError:
        return np.inf, key
    return (number, key) if np.isfinite(number) else (np.inf, key)


def category_key(value: object) -> str:
    """Return the text key of a value: '2' for 2.0, '1' for True."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
