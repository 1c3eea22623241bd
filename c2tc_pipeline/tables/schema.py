"""What a table looked like when it was described, as a schema to check later deliveries of it against.

The schema is a pandera one, derived from roles and data; it is stored as a small JSON document of our own, so
that what was stored can be read without pandera and by people. Mending a table belongs in
:mod:`c2tc_pipeline.tables.preparation`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.kinds import Kind, column_kind, plain, to_codes, to_numbers, to_text
from c2tc_pipeline.tables.preparation import PreparedTable, prepare_table, row_named
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.spec import TableSpec

if TYPE_CHECKING:
    from pandera.pandas import Check, Column, DataFrameSchema

_CASES_SHOWN = 5
_OUR_KEY = "table"


class _ColumnDocument(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    role: Role
    nullable: bool
    # False where the user reads numbers as strings on purpose, so that numbers are no fault.
    must_be_text: bool


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    version: Literal[1] = 1
    label: str
    classes: tuple[bool | int | float | str, ...]
    columns: tuple[_ColumnDocument, ...]


@dataclass(frozen=True)
class SchemaFailure:
    """One way in which a table does not fit its schema.

    Parameters
    ----------
    column : str
        The column at fault.
    check : str
        ``present``, ``not_missing``, ``number``, ``finite``, ``whole_number``, ``text`` or ``known_class``.
    count : int
        Values at fault; 1 for a column that is absent.
    first_cases : tuple of str
        The first of them.

    Examples
    --------
    >>> SchemaFailure("age", "finite", 2, ("inf", "-inf")).count
    2
    """

    column: str
    check: str
    count: int
    first_cases: tuple[str, ...]


def derive_schema(table: PreparedTable | pd.DataFrame, spec: TableSpec) -> DataFrameSchema:
    """Derive the schema that a table and its description imply.

    Every kept column must be there with the kind of values its role asks for, missing values only where some
    were seen; the label must be there, never missing, one of the known classes. Further columns are allowed.

    Parameters
    ----------
    table : PreparedTable or pandas.DataFrame
        The table, prepared or as it was read.
    spec : TableSpec
        Its description.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        For :func:`check_schema`, or for pandera itself.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> schema = derive_schema(pd.DataFrame({"age": [31, 45, 28], "y": ["no", "yes", "no"]}), spec)
    >>> list(schema.columns)
    ['age', 'y']
    """
    if isinstance(table, pd.DataFrame):
        table = prepare_table(table, label=spec.label, roles=spec.roles)
    columns = tuple(
        _ColumnDocument(
            name=name,
            role=role.role,
            nullable=role.missing > 0,
            must_be_text=role.role is Role.STRING and name not in spec.roles,
        )
        for name, role in table.roles.items()
        if role.role is not Role.DROP
    )
    return _build(_Document(label=spec.label, classes=_classes(table.y), columns=columns))


def check_schema(frame: pd.DataFrame, schema: DataFrameSchema) -> list[SchemaFailure]:
    """Check a table against a schema, all of it, and say what does not fit.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table as it was read, or ``PreparedTable.to_frame()``; rows without a label are at fault.
    schema : pandera.pandas.DataFrameSchema
        From :func:`derive_schema` or :func:`schema_from_json`.

    Returns
    -------
    list of SchemaFailure
        Empty when the table fits.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> schema = derive_schema(pd.DataFrame({"age": [31, 45, 28], "y": ["no", "yes", "no"]}), spec)
    >>> for failure in check_schema(pd.DataFrame({"age": [31, None], "y": ["no", "maybe"]}), schema):
    ...     print(failure.column, failure.check, failure.count, *failure.first_cases)
    age not_missing 1 data row 2 (the first is 1)
    y known_class 1 maybe
    """
    from pandera.errors import SchemaErrors

    numbered = frame.reset_index(drop=True)
    try:
        schema.validate(numbered, lazy=True)
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
    order = {name: position for position, name in enumerate(schema.columns)}
    return sorted(failures, key=lambda failure: order.get(failure.column, len(order)))


def schema_to_json(schema: DataFrameSchema) -> str:
    """Write a schema that was derived here as JSON.

    Parameters
    ----------
    schema : pandera.pandas.DataFrameSchema
        From :func:`derive_schema`.

    Returns
    -------
    str
        A JSON document.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> schema = derive_schema(pd.DataFrame({"age": [31, 45, 28], "y": [1, 2, 1]}), spec)
    >>> json.loads(schema_to_json(schema))["classes"]
    [1, 2]
    """
    return json.dumps((schema.metadata or {})[_OUR_KEY], indent=1, ensure_ascii=False)


def schema_from_json(text: str) -> DataFrameSchema:
    """Read a schema back from JSON.

    Parameters
    ----------
    text : str
        From :func:`schema_to_json`.

    Returns
    -------
    pandera.pandas.DataFrameSchema
        The same schema.

    Raises
    ------
    InputError
        When the text is not such a document.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> schema = derive_schema(pd.DataFrame({"age": [31, 45, 28], "y": [1, 2, 1]}), spec)
    >>> schema_to_json(schema_from_json(schema_to_json(schema))) == schema_to_json(schema)
    True
    """
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
    columns[document.label] = Column(checks=[_known_class(document.classes)], nullable=False)
    return DataFrameSchema(columns, strict=False, metadata={_OUR_KEY: document.model_dump(mode="json")})


def _checks(column: _ColumnDocument) -> list[Check]:
    if column.role is Role.NUMERIC:
        return [_check(_is_number, "number"), _check(_is_finite, "finite")]
    if column.role is Role.CODE:
        return [_check(_is_whole, "whole_number")]
    return [_check(_is_text, "text")] if column.must_be_text else []


def _check(function: Any, name: str) -> Check:
    from pandera.pandas import Check

    return Check(function, name=name, error=name, ignore_na=True)


def _known_class(classes: tuple[bool | int | float | str, ...]) -> Check:
    return _check(lambda values: _comparable(values).isin(list(classes)), "known_class")


def _comparable(labels: pd.Series[Any]) -> pd.Series[Any]:
    """Labels as JSON can hold them: text where they are neither text nor numbers nor booleans."""
    return to_text(labels) if column_kind(labels) in (Kind.MIXED, Kind.MOMENT, Kind.DURATION) else plain(labels)


def _is_number(values: pd.Series[Any]) -> pd.Series[Any]:
    return _all_but(values, to_numbers(values).refused)


def _is_finite(values: pd.Series[Any]) -> pd.Series[Any]:
    numbers = to_numbers(values).values
    return _all_but(values, np.flatnonzero(np.isinf(numbers.to_numpy(dtype=np.float64))))


def _is_whole(values: pd.Series[Any]) -> pd.Series[Any]:
    return _all_but(values, to_codes(values).refused)


def _is_text(values: pd.Series[Any]) -> pd.Series[Any]:
    is_text = column_kind(values) in (Kind.TEXT, Kind.MIXED, Kind.EMPTY)
    return pd.Series(is_text, index=values.index)


def _all_but(values: pd.Series[Any], refused: np.ndarray) -> pd.Series[Any]:
    fits = np.ones(len(values), dtype=bool)
    fits[refused] = False
    return pd.Series(fits, index=values.index)


def _classes(labels: pd.Series[Any]) -> tuple[bool | int | float | str, ...]:
    return tuple(_comparable(labels).drop_duplicates().sort_values().tolist())
