"""What a table is: its description, its columns' roles, how it is read, checked and split.

Nothing here knows about encoding or clustering.
"""

from __future__ import annotations

from c2tc_pipeline.tables.acceptance import refuse_unfit, unfit
from c2tc_pipeline.tables.catalogue import Catalogue, TableReport, load_catalogue, validate_catalogue
from c2tc_pipeline.tables.delivery import Delivery, read_delivery
from c2tc_pipeline.tables.fingerprint import source_digest, source_fingerprint
from c2tc_pipeline.tables.preparation import PreparedTable, prepare_table
from c2tc_pipeline.tables.readers import TableHeader, peek_table, read_table
from c2tc_pipeline.tables.roles import ColumnRole, Role, infer_roles
from c2tc_pipeline.tables.schema import (
    SchemaFailure,
    check_schema,
    derive_schema,
    schema_from_json,
    schema_to_json,
)
from c2tc_pipeline.tables.spec import CheckSettings, CondenseSettings, EvaluationSettings, SplitSettings, TableSpec
from c2tc_pipeline.tables.split import Split, duplicate_groups, split_rows
from c2tc_pipeline.tables.validated import ValidatedTable, validate_table

__all__ = [
    "Catalogue",
    "CheckSettings",
    "ColumnRole",
    "CondenseSettings",
    "Delivery",
    "EvaluationSettings",
    "PreparedTable",
    "Role",
    "SchemaFailure",
    "Split",
    "SplitSettings",
    "TableHeader",
    "TableReport",
    "TableSpec",
    "ValidatedTable",
    "check_schema",
    "derive_schema",
    "duplicate_groups",
    "infer_roles",
    "load_catalogue",
    "peek_table",
    "prepare_table",
    "read_delivery",
    "read_table",
    "refuse_unfit",
    "schema_from_json",
    "schema_to_json",
    "source_digest",
    "source_fingerprint",
    "split_rows",
    "unfit",
    "validate_catalogue",
    "validate_table",
]
