"""The least number of source rows behind a condensed row: what may be asked for, and whether a table has room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from c2tc_pipeline.common.errors import InputError


def check_least_rows(least: int, representative: str) -> None:
    """Refuse what is no number of rows, and real rows where every row is to stand for several.

    Examples
    --------
    >>> check_least_rows(5, "centroid")
    """
    if not isinstance(least, Integral) or isinstance(least, bool) or least < 1:
        raise InputError(f"min_rows_per_condensed_row is {least!r}, but must be a whole number from 1 up.")
    if least > 1 and representative == "medoid":
        raise InputError(
            f"min_rows_per_condensed_row is {least}, but representative='medoid' returns real rows, however many each "
            "stands for; choose 'centroid', or leave the minimum at 1."
        )


def check_room(sizes: Sequence[int] | np.ndarray, budget: int, least: int, names: Iterable[Any] | None = None) -> None:
    """Refuse a minimum that a class, or the budget, leaves no room for.

    Examples
    --------
    >>> check_room([80, 20], 10, 5)
    >>> check_room([80, 3], 10, 5, names=["no", "yes"])
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Class 'yes' has 3 rows, fewer than min_rows_per_condensed_row=5; leave its
    rows out, join it with another class, or choose a smaller minimum.
    """
    sizes = np.asarray(sizes, dtype=np.int64)
    small = np.flatnonzero(sizes < least)
    if len(small):
        listed = list(range(len(sizes)) if names is None else names)
        name = listed[small[0]]
        name = name.item() if isinstance(name, np.generic) else name
        classes = "1 more class has" if len(small) == 2 else f"{len(small) - 1:,} more classes have"
        others = f", and {classes} too few" if len(small) > 1 else ""
        rows = "1 row" if sizes[small[0]] == 1 else f"{sizes[small[0]]} rows"
        raise InputError(
            f"Class {name!r} has {rows}, fewer than min_rows_per_condensed_row={least}{others}; leave its rows out, "
            "join it with another class, or choose a smaller minimum."
        )
    room = int((sizes // least).sum())
    if budget > room:
        raise InputError(
            f"With min_rows_per_condensed_row={least} the table has room for at most {room:,} condensed rows, but "
            f"{budget:,} are asked for; choose a smaller ratio or a smaller minimum."
        )
