"""Column roles: what each column is used for, inferred by rules that can be said in one phrase.

The rules look at the values first and at the column's name only where whole numbers could be either a
quantity or a code. Conversion of the values belongs in :mod:`c2tc_pipeline.tables.kinds`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.common.threads import side_by_side
from c2tc_pipeline.tables.column_facts import ColumnFacts, ColumnGatherer
from c2tc_pipeline.tables.kinds import Kind


class Role(StrEnum):
    """What a column is used for.

    Examples
    --------
    >>> Role("code") is Role.CODE
    True
    """

    NUMERIC = "numeric"
    STRING = "string"
    CODE = "code"
    DROP = "drop"


@dataclass(frozen=True)
class ColumnRole:
    """A column's role and why it has it.

    Parameters
    ----------
    name : str
        The column.
    role : Role
        What it is used for.
    reason : str
        A short phrase for people.
    distinct : int
        Different values that are present.
    missing : int
        Rows without a value.

    Examples
    --------
    >>> ColumnRole("age", Role.NUMERIC, "whole numbers, 74 distinct", distinct=74, missing=0).role.value
    'numeric'
    """

    name: str
    role: Role
    reason: str
    distinct: int
    missing: int


# Whole numbers under a name with one of these words are codes, unless a counting word stands beside it.
CODE_WORDS = frozenset(
    [
        "category",
        "class",
        "code",
        "day",
        "did",
        "district",
        "dow",
        "flag",
        "group",
        "has",
        "id",
        "is",
        "kind",
        "month",
        "postcode",
        "status",
        "type",
        "was",
        "weekday",
        "zip",
    ]
)
COUNT_WORDS = frozenset(
    ["age", "amount", "avg", "count", "mean", "n", "num", "number", "qty", "quantity", "size", "sum", "total"]
)
IDENTIFIER_WORDS = frozenset(["guid", "id", "identifier", "idx", "index", "key", "rowid", "uid", "uuid"])

# A code's values come back: at most this many, or on average twenty rows a value.
FEW_VALUES = 20
ROWS_PER_CODE = 20

# In a smaller table all-different values prove nothing, so only an identifier's name does.
IDENTIFIER_MIN_ROWS = 50
IDENTIFIER_SHARE = 0.99

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def infer_roles(
    frame: pd.DataFrame, *, label: str | None = None, overrides: Mapping[str, Role | str] | None = None
) -> dict[str, ColumnRole]:
    """Give every column but the label a role.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table; column names are unique strings.
    label : str, optional
        The column to leave out.
    overrides : mapping of str to Role or str, optional
        Roles that are given and not inferred.

    Returns
    -------
    dict of str to ColumnRole
        In table order.

    Raises
    ------
    InputError
        When an override names an unknown column, the label, or an unknown role.

    Notes
    -----
    In this order:

    1. no value at all, or one value in every row: dropped;
    2. identifiers: dropped. Text is one when at least 99 % of the values differ; whole numbers when that
       holds and the name says so (``id``, ``key``, ...), or when all differ and they lie so close together
       that they number the rows. Below 50 rows a column is an identifier only when its name says so and all
       values differ. Fractions and moments never are;
    3. booleans, and whole numbers with two values: codes;
    4. text, mixed types: strings; a pandas category of whole numbers: codes;
    5. other whole numbers: codes when the name has a word such as ``code``, ``type``, ``day`` or ``id``,
       none that counts (``number``, ``age``, ...), and the values come back (at most 20, or on average 20
       rows a value); numeric otherwise;
    6. fractions, and moments and durations (in seconds): numeric.

    The order of the rows never matters.

    Examples
    --------
    >>> table = pd.DataFrame({"weekday": [1, 2, 3, 1], "price": [1.5, 2.0, 0.3, 9.1], "y": list("abab")})
    >>> for column in infer_roles(table, label="y").values():
    ...     print(column.name, column.role.value, "-", column.reason)
    weekday code - whole numbers, 3 distinct, and 'weekday' in the name: treated as codes
    price numeric - numbers with fractions
    """
    given = checked_overrides(list(frame.columns), label, overrides or {})
    one_class, row_ids = np.zeros(len(frame), dtype=np.int64), np.arange(len(frame))

    def decide(name: str) -> ColumnRole:
        gatherer = gatherer_of(name, given.get(name), facts_only=True)
        gatherer.add(frame[name], one_class, row_ids)
        return decided_role(name, gatherer.facts(), given.get(name))

    names = [name for name in frame.columns if name != label]
    return dict(zip(names, side_by_side([partial(decide, name) for name in names]), strict=True))


def checked_overrides(
    columns: Sequence[str], label: str | None, overrides: Mapping[str, Role | str]
) -> dict[str, Role]:
    """Return the roles that the user gave, or say which of them can't be."""
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


def gatherer_of(name: str, given: Role | None, *, facts_only: bool = False) -> ColumnGatherer:
    """Return what gathers the facts of a column; by its name it is known whether whole numbers may be codes."""
    return ColumnGatherer(given, could_be_code=_hint(words_of(name)) is not None, facts_only=facts_only)


def decided_role(name: str, facts: ColumnFacts, given: Role | None) -> ColumnRole:
    """Return the role of a column: the one given, or what the rules say about its facts."""
    role, reason = (given, "set by the user") if given is not None else _inferred(facts, words_of(name))
    return ColumnRole(name, role, reason, facts.distinct, facts.missing)


def _inferred(facts: ColumnFacts, words: list[str]) -> tuple[Role, str]:
    kind, distinct = facts.kind, facts.distinct
    if kind is Kind.EMPTY:
        return Role.DROP, "no value at all"
    # One value plus gaps is kept: which rows are filled may say something.
    if distinct == 1 and facts.missing == 0:
        return Role.DROP, "the same value in every row"
    if _is_identifier(facts, words):
        return Role.DROP, f"{distinct} distinct values in {facts.rows} rows: looks like an identifier"
    if kind is Kind.MIXED:
        return Role.STRING, f"mixed types, {distinct} distinct: read as strings"
    if kind is Kind.TEXT:
        return Role.STRING, f"text, {distinct} distinct"
    if kind is Kind.BOOLEAN:
        return Role.CODE, "yes or no"
    if kind is Kind.WHOLE:
        return _role_of_whole_numbers(distinct, facts.rows - facts.missing, words, facts.is_category)
    if kind is Kind.REAL:
        return Role.NUMERIC, "numbers with fractions"
    if kind is Kind.MOMENT:
        return Role.NUMERIC, "dates or times, as seconds since 1970"
    return Role.NUMERIC, "durations, as seconds"


def _role_of_whole_numbers(distinct: int, present: int, words: list[str], is_category: bool) -> tuple[Role, str]:
    described = f"whole numbers, {distinct} distinct"
    if distinct <= 2:
        return Role.CODE, f"{described}: treated as codes"
    if is_category:
        return Role.CODE, f"{described}, stored as a category: treated as codes"
    hint = _hint(words)
    if hint is not None and distinct <= max(FEW_VALUES, present // ROWS_PER_CODE):
        return Role.CODE, f"{described}, and {hint!r} in the name: treated as codes"
    return Role.NUMERIC, described


def _hint(words: list[str]) -> str | None:
    """Return the word of a name that speaks for codes, unless another one counts."""
    if any(word in COUNT_WORDS for word in words):
        return None
    return next((word for word in words if word in CODE_WORDS), None)


def _is_identifier(facts: ColumnFacts, words: list[str]) -> bool:
    kind, distinct, present = facts.kind, facts.distinct, facts.rows - facts.missing
    if kind not in (Kind.TEXT, Kind.MIXED, Kind.WHOLE):
        return False
    named_so = any(word in IDENTIFIER_WORDS for word in words)
    if present < IDENTIFIER_MIN_ROWS:
        return named_so and distinct == present
    if kind is Kind.WHOLE and not named_so:
        # An estimate of the number of values does not tell whether a few of them repeat.
        all_differ = distinct == present if facts.is_counted else distinct >= IDENTIFIER_SHARE * present
        # Independent draws from a range of at most twice their count would repeat, so such values were counted up, in
        # whatever order they are.
        return all_differ and facts.high - facts.low < 2 * present
    return distinct >= IDENTIFIER_SHARE * present


def words_of(name: str) -> list[str]:
    """Split a column name into lower-case words at punctuation, digits and capitals.

    Parameters
    ----------
    name : str
        A column name in any of the usual spellings.

    Returns
    -------
    list of str
        Its words.

    Examples
    --------
    >>> words_of("DayOfWeek"), words_of("admission_type_id"), words_of("zip5")
    (['day', 'of', 'week'], ['admission', 'type', 'id'], ['zip', '5'])
    """
    return [word.lower() for word in _WORD.findall(name)]
