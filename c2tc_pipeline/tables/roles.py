"""Column roles: what each column is used for, inferred by rules.

The rules look at the values first, and at the column's name only where integers could be a quantity or a code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from c2tc_pipeline.common.defaults import Role
from c2tc_pipeline.tables.column_facts import ColumnFacts, ColumnGatherer
from c2tc_pipeline.tables.kinds import Kind


@dataclass(frozen=True)
class ColumnRole:
    """A column's role, the reason in one phrase, and its numbers of distinct and of missing values."""

    name: str
    role: Role
    reason: str
    distinct: int
    missing: int


# Integers under a name with one of these words are codes, unless the name has a counting word too.
CODE_WORDS = frozenset(
    [
        *("category", "class", "code", "day", "did", "district", "dow", "flag", "group", "has"),
        *("id", "is", "kind", "month", "postcode", "status", "type", "was", "weekday", "zip"),
    ]
)
COUNT_WORDS = frozenset(
    ["age", "amount", "avg", "count", "mean", "n", "num", "number", "qty", "quantity", "size", "sum", "total"]
)
IDENTIFIER_WORDS = frozenset(["guid", "id", "identifier", "idx", "index", "key", "rowid", "uid", "uuid"])

# A code's values repeat: there are at most 20, or 20 rows per value on average.
FEW_VALUES = 20
ROWS_PER_CODE = 20

# In a smaller table distinct values prove nothing, so only a name makes an identifier.
IDENTIFIER_MIN_ROWS = 50
IDENTIFIER_SHARE = 0.99

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def gatherer_of(name: str, given: Role | None) -> ColumnGatherer:
    """Return the gatherer of a column's facts; its name decides whether integers may be codes."""
    return ColumnGatherer(given, could_be_code=_hint(words_of(name)) is not None)


def decided_role(name: str, facts: ColumnFacts, given: Role | None) -> ColumnRole:
    """Return the role of a column: the one given, or what the rules say about its facts."""
    role, reason = (given, "set by the user") if given is not None else _inferred(facts, words_of(name))
    return ColumnRole(name, role, reason, facts.distinct, facts.missing)


def _inferred(facts: ColumnFacts, words: list[str]) -> tuple[Role, str]:
    """Infer the role of a column from its facts and the words of its name; return it with the reason.

    In this order, whatever the order of the rows:

    1. no value at all, or one value in every row: dropped;
    2. identifiers: dropped. Text is one when at least 99 % of the values are distinct; integers when that holds and the
       name says so (``id``, ``key``, ...), or when all are distinct and so close together that they number the rows.
       Below 50 rows a column is an identifier only when its name says so and all values are distinct. Fractions and
       datetimes never are;
    3. booleans, and integers with two values: codes;
    4. text, mixed types: strings; a pandas category of integers: codes;
    5. other integers: codes when the name has a word such as ``code``, ``type``, ``day`` or ``id``, no counting word
       (``number``, ``age``, ...), and the values repeat (at most 20, or 20 rows per value on average); numeric
       otherwise;
    6. fractions, datetimes and durations (in seconds): numeric.
    """
    kind, distinct = facts.kind, facts.distinct
    if kind is Kind.EMPTY:
        return Role.DROP, "no value at all"
    # One value and missing ones are kept: which rows have a value may be informative.
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
    if kind is Kind.INTEGER:
        return _role_of_integers(distinct, facts.rows - facts.missing, words, facts.is_category)
    if kind is Kind.REAL:
        return Role.NUMERIC, "numbers with fractions"
    if kind is Kind.MOMENT:
        return Role.NUMERIC, "dates or times, as seconds since 1970"
    return Role.NUMERIC, "durations, as seconds"


def _role_of_integers(distinct: int, present: int, words: list[str], is_category: bool) -> tuple[Role, str]:
    described = f"integers, {distinct} distinct"
    if distinct <= 2:
        return Role.CODE, f"{described}: treated as codes"
    if is_category:
        return Role.CODE, f"{described}, stored as a category: treated as codes"
    hint = _hint(words)
    if hint is not None and distinct <= max(FEW_VALUES, present // ROWS_PER_CODE):
        return Role.CODE, f"{described}, and {hint!r} in the name: treated as codes"
    return Role.NUMERIC, described


def _hint(words: list[str]) -> str | None:
    """Return the first word of a name that suggests codes, unless it has a counting word."""
    if any(word in COUNT_WORDS for word in words):
        return None
    return next((word for word in words if word in CODE_WORDS), None)


def _is_identifier(facts: ColumnFacts, words: list[str]) -> bool:
    kind, distinct, present = facts.kind, facts.distinct, facts.rows - facts.missing
    if kind not in (Kind.TEXT, Kind.MIXED, Kind.INTEGER):
        return False
    named_so = any(word in IDENTIFIER_WORDS for word in words)
    if present < IDENTIFIER_MIN_ROWS:
        return named_so and distinct == present
    if kind is Kind.INTEGER and not named_so:
        # An estimate can't show that a few values repeat.
        all_differ = distinct == present if facts.is_counted else distinct >= IDENTIFIER_SHARE * present
        # Independent draws from a range of at most twice their count would repeat, so such values number the rows.
        return all_differ and facts.high - facts.low < 2 * present
    return distinct >= IDENTIFIER_SHARE * present


def words_of(name: str) -> list[str]:
    """Split a column name into lower-case words at punctuation, digits and capitals."""
    return [word.lower() for word in _WORD.findall(name)]
