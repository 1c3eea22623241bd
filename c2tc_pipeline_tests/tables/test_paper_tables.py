"""The paper's tables: inference against the roles that the paper's authors gave their columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.schema import check_schema, derive_schema
from c2tc_pipeline.tables.spec import SplitSettings, TableSpec
from c2tc_pipeline.tables.table import learn_table

# Columns where inference and the list differ, and why that is right or can't be known from the data.
KNOWN_DIFFERENCES = {
    "electricity": 0,
    "electricity_full": 0,
    "adult": 0,
    # Three columns of codes called ..._id; two constants and one row identifier, which are dropped.
    "diabetes130us": 6,
    "airlines": 0,
    "covertype": 0,
    "jannis": 0,
    "higgs": 0,
    # Five columns of zeros and ones.
    "microsoft": 5,
    # Codes whose names don't say so; two constants.
    "road_safety_full": 24,
    # Vehicle type and district, which the full table lists as codes.
    "road_safety": 2,
}


@pytest.mark.parametrize("name", sorted(KNOWN_DIFFERENCES))
def test_table(shared_data: Path, name: str) -> None:
    described: dict[str, Any] = json.loads((shared_data / "datasets.json").read_text())["datasets"][name]
    frame = read_table(shared_data / described["file"])
    spec = TableSpec(
        name=name,
        source=described["file"],
        label=described["label"],
        roles=dict.fromkeys(described["not_features"], Role.DROP),
    )
    blocks = Blocks.of_frame(frame)
    prepared = learn_table(blocks, label=spec.label, roles=spec.roles)
    counts = dict(zip(prepared.classes.tolist(), prepared.class_rows.tolist(), strict=True))
    assert counts == {type(prepared.classes.tolist()[0])(key): n for key, n in described["class_counts"].items()}
    expected = {
        **dict.fromkeys(described["numerical"], "numeric"),
        **dict.fromkeys(described["string_categorical"], "string"),
        **dict.fromkeys(described["integer_categorical"], "code"),
    }
    different = [column for column, role in expected.items() if prepared.roles[column].role != role]
    assert len(different) == KNOWN_DIFFERENCES[name], different
    assert check_schema(blocks, derive_schema(prepared)) == []
    sides = learn_table(blocks, label=spec.label, roles=spec.roles, split=SplitSettings()).sides
    assert np.abs(np.bincount(sides) / len(sides) - [0.8, 0.1, 0.1]).max() < 0.001
