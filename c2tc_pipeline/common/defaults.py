"""Default paths, and checks of settings.

Nothing heavy is imported here, so that mistakes are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError

# Relative to the working directory.
CATALOGUE = Path("data") / "catalog.yaml"
STORAGE = Path("runs") / "store"
DAGSTER_HOME = Path("runs") / "dagster"
RESULTS = Path("runs") / "results"
BENCH = Path("runs") / "bench"

DEFAULT_RATIO = 0.01
STRING_ENCODINGS = ("auto", "similarity", "target")
SCALINGS = ("quantile", "minmax")
REPRESENTATIVES = ("centroid", "medoid")


def checked_ratio(ratio: float) -> float:
    """Return the ratio, or raise InputError if it is not in (0, 1]."""
    if not isinstance(ratio, Real) or not 0 < float(ratio) <= 1:
        shown = f"{float(ratio):g}" if isinstance(ratio, Real) else repr(ratio)
        raise InputError(f"Ratio is {shown}, but must be above 0 and at most 1 (0.001 keeps one row in a thousand).")
    return ratio


def check_rows(rows: Any) -> None:
    """Refuse what is no number of condensed rows."""
    if not isinstance(rows, Integral) or isinstance(rows, bool) or rows < 1:
        raise InputError(f"A budget of {rows!r} condensed rows does not fit: it must be an integer from 1 up.")


def check_choice(what: str, value: Any, known: Sequence[str]) -> None:
    """Refuse a value that is none of the known ones."""
    if value not in known:
        raise InputError(f"{what} {value!r} is unknown; choose one of: {', '.join(known)}.")


def check_gamma(gamma: float | str) -> None:
    """Refuse what is neither a number between 0 and 1 nor ``"auto"``."""
    in_range = isinstance(gamma, Real) and 0 <= gamma <= 1
    if not in_range and gamma != "auto":
        raise InputError(f"gamma is {gamma!r}, but must be a number between 0 and 1, or 'auto'.")


def check_least_rows(least: int, representative: str, *, name: str = "min_rows_per_condensed_row") -> None:
    """Refuse what is no number of rows, and real rows where every row is to stand for several."""
    if not isinstance(least, Integral) or isinstance(least, bool) or least < 1:
        raise InputError(f"{name} is {least!r}, but must be an integer from 1 up.")
    if least > 1 and representative == "medoid":
        raise InputError(
            f"min_rows_per_condensed_row is {least}, but representative='medoid' returns real rows, however many each "
            "stands for; choose 'centroid', or leave the minimum at 1."
        )


def check_column_weights(wanted: Any) -> None:
    """Refuse what is neither ``"auto"``, ``"none"`` nor a mapping of columns to positive numbers."""
    if wanted not in ("auto", "none") if isinstance(wanted, str) else not isinstance(wanted, Mapping):
        raise InputError(f"column_weights is {wanted!r}; choose 'auto', 'none' or a mapping of columns to numbers.")
    for name, value in wanted.items() if isinstance(wanted, Mapping) else ():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
            raise InputError(f"The weight of column {name!r} is {value!r}, but must be a number above 0.")
