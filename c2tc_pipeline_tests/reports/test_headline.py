"""The headline: how many rows repeat a record, and why."""

from __future__ import annotations

import pytest

from c2tc_pipeline.reports.headline import ratios_section, tiles_section
from c2tc_pipeline_tests.reports.stand_in import stand_in

REASONS = {"singletons": 0, "equal_rows": 0, "medoids": 0, "coincidences": 0, "encoded": 0}


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({}, "none equals a source row"),
        ({"singletons": 1}, "1 singleton"),
        ({"singletons": 2, "equal_rows": 3, "coincidences": 1}, "2 singletons, 3 for equal rows, 1 by coincidence"),
        ({"medoids": 7}, "7 medoids"),
    ],
    ids=str,
)
def test_rows_that_repeat_a_record(counts: dict[str, int], said: str) -> None:
    table = stand_in()
    table.summary["repeated_rows"] = {**REASONS, **counts, "total": sum(counts.values())}
    assert said in str(tiles_section(table))
    assert f">{sum(counts.values())}<" in str(ratios_section({0.1: table}, {0.1: "here"}))


def test_a_table_from_before_they_were_counted() -> None:
    table = stand_in()
    assert "repeated_rows" not in table.summary
    singletons = int((table.weight == 1).sum())
    assert (f"{singletons} singleton" in str(tiles_section(table))) == (singletons > 0)
