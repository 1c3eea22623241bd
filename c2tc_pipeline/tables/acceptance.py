"""Whether a delivery of a table may go on: usable by itself, and like the one that set the baseline."""

from __future__ import annotations

import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables.preparation import prepare_table
from c2tc_pipeline.tables.schema import SchemaFailure, check_schema, schema_from_json
from c2tc_pipeline.tables.spec import TableSpec


def baseline_of(spec: TableSpec) -> str:
    """Return the mark of a table's baseline: a delivery is held only against schemas of the same mark.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> baseline_of(spec) == baseline_of(spec.model_copy(update={"label": "z"}))
    False
    """
    return hash_json([spec.label, {name: str(role) for name, role in spec.roles.items()}, spec.checks.baseline])


def unfit(frame: pd.DataFrame, spec: TableSpec, schema: str | None) -> list[SchemaFailure]:
    """Return what is wrong with a delivery; nothing, when it may go on.

    Rows without a label are left out, here as in everything that follows.

    Parameters
    ----------
    frame : DataFrame
        The table as it was read.
    spec : TableSpec
        Its description.
    schema : str or None
        The schema of the delivery that set the baseline, as JSON; None for the first one.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> unfit(pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "a"]}), spec, None)[0].check
    'usable'
    """
    if schema is not None and spec.label in frame.columns:
        failures = check_schema(frame.loc[frame[spec.label].notna()], schema_from_json(schema))
        if failures:
            return failures
    try:
        prepare_table(frame, label=spec.label, roles=spec.roles)
    except InputError as error:
        return [SchemaFailure(spec.label, "usable", 1, (str(error),))]
    return []


def refuse_unfit(frame: pd.DataFrame, spec: TableSpec, schema: str | None) -> None:
    """Raise an error that names the first thing wrong with a delivery; the parameters are those of :func:`unfit`.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> refuse_unfit(pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]}), spec, None)
    """
    if failures := unfit(frame, spec, schema):
        raise InputError(sentence(failures, spec))


def sentence(failures: list[SchemaFailure], spec: TableSpec) -> str:
    """Say in one sentence what is wrong with a delivery, and what to do.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y")
    >>> print(sentence([SchemaFailure("age", "finite", 2, ("inf",))], spec))
    Table 't' does not fit its schema: column 'age' fails 'finite' in 2 values (inf); correct the source, or raise
    checks.baseline in the catalogue to accept the table as it is now.
    """
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
