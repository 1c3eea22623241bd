"""Table schema (pandera): derived from the first accepted delivery, checked on every later one.

The schema is stored as a small JSON document, so that it can be read without pandera and by people.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.kinds import Kind, column_kind, plain, to_codes, to_numbers, to_text
from c2tc_pipeline.tables.readings import Readings
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.statistics import row_named
from c2tc_pipeline.tables.table import Table, learn_described

if TYPE_CHECKING:
    from pandera.pandas import Check, Column, DataFrameSchema

_CASES_SHOWN = 5
_OUR_KEY = "table"


class _ColumnDocument(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    role: Role
    nullable: bool
    # False where the user reads numbers as strings on purpose, so that numbers are allowed.
    must_be_text: bool


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    version: Literal[1] = 1
    label: str
    classes: tuple[bool | int | float | str, ...]
    columns: tuple[_ColumnDocument, ...]
    readings: dict[str, Any] = Field(default_factory=lambda: Readings().to_json())


@dataclass(frozen=True)
class SchemaFailure:
    """One way in which a table does not fit its schema.

    ``check`` is ``present``, ``not_missing``, ``number``, ``finite``, ``integer``, ``text``, ``known_class`` or
    ``usable``; ``count`` is the number of values at fault, 1 for an absent column.
    """

    column: str
    check: str
    count: int
    first_cases: tuple[str, ...]


def derive_schema(table: Table) -> DataFrameSchema:
    """Derive the schema that a table implies for later deliveries.

    Every kept column must be present with the kind of values of its role, with missing values only where there were
    some; the label must be present and one of the known classes. Further columns are allowed.
    """
    columns = tuple(
        _ColumnDocument(
            name=name,
            role=table.roles[name].role,
            nullable=table.missing[name] > 0,
            must_be_text=table.roles[name].role is Role.STRING and name not in table.given,
        )
        for name in table.statistics.kept
    )
    labels = _comparable(table.labels(np.arange(len(table.classes))))
    classes = tuple(labels.drop_duplicates().sort_values().tolist())
    readings = table.statistics.readings.to_json()
    return _build(_Document(label=table.label, classes=classes, columns=columns, readings=readings))


def check_schema(blocks: Blocks, schema: DataFrameSchema) -> list[SchemaFailure]:
    """Check all labelled rows of a delivery against a schema, and return what does not fit, column by column."""
    document = _Document.model_validate((schema.metadata or {})[_OUR_KEY])
    readings = Readings.from_json(document.readings)
    found: dict[tuple[str, str], SchemaFailure] = {}
    start = 0
    for frame in blocks.frames():
        rows = readings.read(frame).set_axis(pd.RangeIndex(start, start + len(frame)))
        start += len(frame)
        if document.label in rows.columns:
            rows = rows.loc[rows[document.label].notna()]
        for failure in _failures(rows, schema):
            key = failure.column, failure.check
            if key not in found:
                found[key] = failure
            elif failure.check != "present":
                before = found[key]
                cases = (*before.first_cases, *failure.first_cases)[:_CASES_SHOWN]
                found[key] = SchemaFailure(*key, before.count + failure.count, cases)
    order = {name: position for position, name in enumerate(schema.columns)}
    return sorted(found.values(), key=lambda failure: order.get(failure.column, len(order)))


def _failures(frame: pd.DataFrame, schema: DataFrameSchema) -> list[SchemaFailure]:
    from pandera.errors import SchemaErrors

    try:
        schema.validate(frame, lazy=True)
    except SchemaErrors as error:
        cases = error.failure_cases
    else:
        return []
    failures = []
    for (column, check), found in cases.groupby(["column", "check"], sort=False, dropna=False):
        if check == "column_in_dataframe":
            absent = [str(name) for name in found["failure_case"]]
            failures += [SchemaFailure(name, "present", 1, ()) for name in absent]
        elif check == "not_nullable":
            rows = tuple(row_named(int(index)) for index in found["index"].head(_CASES_SHOWN))
            failures.append(SchemaFailure(str(column), "not_missing", len(found), rows))
        else:
            shown = tuple(str(value) for value in found["failure_case"].head(_CASES_SHOWN))
            failures.append(SchemaFailure(str(column), str(check), len(found), shown))
    return failures


def baseline_of(spec: TableSpec) -> str:
    """Return the hash of a table's baseline: deliveries are checked only against schemas of the same baseline."""
    read: list[Any] = [list(spec.missing), spec.label_kind] if spec.missing or spec.label_kind != "auto" else []
    return hash_json([spec.label, {name: str(role) for name, role in spec.roles.items()}, spec.checks.baseline, *read])


def unfit(blocks: Blocks, spec: TableSpec, schema: str | None) -> list[SchemaFailure]:
    """Return what is wrong with a delivery: against the baseline's schema (None for the first one), or unusable."""
    failures = fit_failures(blocks, spec, schema)
    if failures:
        return failures
    try:
        learn_described(blocks, spec)
    except InputError as error:
        return [SchemaFailure(spec.label, "usable", 1, (str(error),))]
    return []


def fit_failures(blocks: Blocks, spec: TableSpec, schema: str | None) -> list[SchemaFailure]:
    """Return how a delivery differs from the schema of its baseline, if there is one."""
    if schema is None or spec.label not in blocks.columns:
        return []
    return check_schema(blocks, schema_from_json(schema))


def failure_sentence(failures: list[SchemaFailure], spec: TableSpec) -> str:
    """Say in one sentence what is wrong with a delivery, and what to do."""
    first = failures[0]
    if first.check == "usable":
        return first.first_cases[0]
    cases = f" ({', '.join(first.first_cases)})" if first.first_cases else ""
    what = "is absent" if first.check == "present" else f"fails {first.check!r} in {first.count:,} values{cases}"
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return (
        f"Table {spec.name!r} does not fit its schema: column {first.column!r} {what}{more}; correct the source, or "
        "raise checks.baseline in the catalogue to accept the table as it is now."
    )


def schema_to_json(schema: DataFrameSchema) -> str:
    """Write a schema that was derived here as JSON."""
    return json.dumps((schema.metadata or {})[_OUR_KEY], indent=1, ensure_ascii=False)


def schema_from_json(text: str) -> DataFrameSchema:
    """Read a schema back from JSON; an InputError says where the text is not such a document."""
    try:
        return _build(_Document.model_validate_json(text, strict=True))
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors()[0]["loc"]) or "the document"
        raise InputError(f"The stored schema is not valid at {place!r}; derive it anew from the table.") from None


def _build(document: _Document) -> DataFrameSchema:
    from pandera.pandas import Column, DataFrameSchema

    columns: dict[str, Column] = {
        column.name: Column(checks=_checks(column), nullable=column.nullable) for column in document.columns
    }
    known = _check(lambda labels: _comparable(labels).isin(list(document.classes)), "known_class")
    columns[document.label] = Column(checks=[known], nullable=False)
    return DataFrameSchema(columns, strict=False, metadata={_OUR_KEY: document.model_dump(mode="json")})


def _checks(column: _ColumnDocument) -> list[Check]:
    if column.role is Role.NUMERIC:
        return [_check(_is_number, "number"), _check(_is_finite, "finite")]
    if column.role is Role.CODE:
        return [_check(_is_integer, "integer")]
    return [_check(_is_text, "text")] if column.must_be_text else []


def _check(function: Any, name: str) -> Check:
    from pandera.pandas import Check

    return Check(function, name=name, error=name, ignore_na=True)


def _comparable(labels: pd.Series[Any]) -> pd.Series[Any]:
    """Labels as JSON can hold them: text where they are neither text nor numbers nor booleans."""
    return to_text(labels) if column_kind(labels) in (Kind.MIXED, Kind.MOMENT, Kind.DURATION) else plain(labels)


def _is_number(values: pd.Series[Any]) -> pd.Series[Any]:
    return _all_but(values, to_numbers(values).refused)


def _is_finite(values: pd.Series[Any]) -> pd.Series[Any]:
    numbers = to_numbers(values).values
    return _all_but(values, np.flatnonzero(np.isinf(numbers.to_numpy(dtype=np.float64))))


def _is_integer(values: pd.Series[Any]) -> pd.Series[Any]:
    return _all_but(values, to_codes(values).refused)


def _is_text(values: pd.Series[Any]) -> pd.Series[Any]:
    is_text = column_kind(values) in (Kind.TEXT, Kind.MIXED, Kind.EMPTY)
    return pd.Series(is_text, index=values.index)


def _all_but(values: pd.Series[Any], refused: np.ndarray) -> pd.Series[Any]:
    fits = np.ones(len(values), dtype=bool)
    fits[refused] = False
    return pd.Series(fits, index=values.index)
