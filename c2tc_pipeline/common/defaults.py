"""Default paths, and checks of settings, label and roles.

Nothing heavy is imported here, so that mistakes are reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from c2tc_pipeline.common.errors import InputError, closest

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
    """Raise InputError unless ``rows`` is an integer of at least 1."""
    if not isinstance(rows, Integral) or isinstance(rows, bool) or rows < 1:
        raise InputError(f"A budget of {rows!r} condensed rows does not fit: it must be an integer from 1 up.")


def check_choice(what: str, value: Any, known: Sequence[str]) -> None:
    """Raise InputError unless the value is one of the known ones."""
    if value not in known:
        raise InputError(f"{what} {value!r} is unknown; choose one of: {', '.join(known)}.")


def check_gamma(gamma: float | str) -> None:
    """Raise InputError unless gamma is a number from 0 to 1, or ``"auto"``."""
    in_range = isinstance(gamma, Real) and 0 <= gamma <= 1
    if not in_range and gamma != "auto":
        raise InputError(f"gamma is {gamma!r}, but must be a number between 0 and 1, or 'auto'.")


def check_min_rows(least: int, representative: str, *, name: str = "min_rows_per_condensed_row") -> None:
    """Raise InputError unless the minimum is an integer of at least 1; medoids allow only 1."""
    if not isinstance(least, Integral) or isinstance(least, bool) or least < 1:
        raise InputError(f"{name} is {least!r}, but must be an integer from 1 up.")
    if least > 1 and representative == "medoid":
        raise InputError(
            f"min_rows_per_condensed_row is {least}, but representative='medoid' returns real rows, however many each "
            "stands for; choose 'centroid', or leave the minimum at 1."
        )


def check_column_weights(wanted: Any) -> None:
    """Raise InputError unless the weights are ``"auto"``, ``"none"`` or a mapping of columns to positive numbers."""
    if wanted not in ("auto", "none") if isinstance(wanted, str) else not isinstance(wanted, Mapping):
        raise InputError(f"column_weights is {wanted!r}; choose 'auto', 'none' or a mapping of columns to numbers.")
    for name, value in wanted.items() if isinstance(wanted, Mapping) else ():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
            raise InputError(f"The weight of column {name!r} is {value!r}, but must be a number above 0.")


class Role(StrEnum):
    """Use of a column in condensing."""

    NUMERIC = "numeric"
    STRING = "string"
    CODE = "code"
    DROP = "drop"


def checked_overrides(
    columns: Sequence[str], label: str | None, overrides: Mapping[str, Role | str]
) -> dict[str, Role]:
    """Return the roles that the user gave; refuse unknown columns, unknown roles and the label."""
    if not isinstance(overrides, Mapping):
        raise InputError(f"The roles are {overrides!r}, but must be given by column, such as {{'zip': 'code'}}.")
    known = [name for name in columns if name != label]
    given = {}
    for name, role in overrides.items():
        if name == label:
            raise InputError(f"Column {name!r} is the label and can't have a role; remove it from the roles.")
        if name not in known:
            raise InputError(f"There is no column {name!r} to give a role to; {closest(name, known)}.")
        try:
            given[name] = Role(role)
        except ValueError:
            choices = ", ".join(choice.value for choice in Role)
            raise InputError(f"Column {name!r} can't have the role {str(role)!r}; choose one of: {choices}.") from None
    return given


def check_columns(columns: Sequence[str], label: str, roles: Mapping[str, Role | str]) -> dict[str, Role]:
    """Return the roles that the user gave; refuse a label that is not there, and unknown columns and roles."""
    if label not in columns:
        raise InputError(f"There is no label column {label!r} in the table; {closest(label, columns)}.")
    return checked_overrides(columns, label, roles)
