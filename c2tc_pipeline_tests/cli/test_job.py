"""From a described table to a directory: what the command does beyond condensing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.spec import SplitSettings, TableSpec
from c2tc_pipeline.tables.table import learn_table
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture
def spec(tmp_path: Path) -> TableSpec:
    table = mixed_table(200)
    table.loc[:20, "outcome"] = None
    table.to_parquet(tmp_path / "people.parquet")
    return TableSpec(name="people", source=str(tmp_path / "people.parquet"), label="outcome")


@pytest.mark.parametrize("split", [False, True])
def test_rows_without_a_label_are_counted_with_and_without_a_split(
    spec: TableSpec, tmp_path: Path, split: bool
) -> None:
    table = condense_to_directory(spec, tmp_path / "out", name="people", ratio=0.1, split=split)
    counted = [str(notice) for notice in table.notices if notice.kind == "missing_labels"]
    assert counted == ["Column 'outcome': 21 rows without a label were left out"]


def test_every_stage_is_timed(spec: TableSpec, tmp_path: Path) -> None:
    table = condense_to_directory(spec, tmp_path / "out", name="people", ratio=0.1, split=True)
    assert list(table.summary["seconds"])[:3] == ["read", "prepare", "encode"]


def test_equal_rows_stay_on_one_side_when_asked_to(spec: TableSpec) -> None:
    frame = pd.concat([pd.read_parquet(spec.source)] * 3, ignore_index=True)
    grouped = spec.model_copy(update={"split": SplitSettings(group_duplicates=True)})
    for described, together in ((grouped, True), (spec, False)):
        blocks = Blocks.of_frame(frame)
        sides = learn_table(blocks, label="outcome", split=described.split).split_frame()
        per_row = sides["side"].groupby(sides["source_row"] % 200).nunique()
        assert bool(per_row.max() == 1) is together
