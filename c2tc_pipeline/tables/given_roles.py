"""Label and roles that the user names, checked against the columns before anything heavy is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from c2tc_pipeline.common.errors import InputError, closest


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
