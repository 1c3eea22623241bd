"""The made table: the same rows again, a smaller one is the beginning of a larger, and there is something to learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.bench.scale import made_table
from c2tc_pipeline.bench.scale.bench import ScaleCheck, ScaleRun
from c2tc_pipeline.bench.scale.made_table import CLASS_SHARES, LABEL, made_part, write_made_table
from c2tc_pipeline.tables.roles import infer_roles


def test_parts_are_made_from_their_own_seeds() -> None:
    first, again, second, other = made_part(500, 0), made_part(500, 0), made_part(500, 1), made_part(500, 0, seed=1)
    assert first.equals(again)
    assert not first.equals(second)
    assert not first.equals(other)
    assert first.schema == second.schema


def test_a_smaller_table_is_the_beginning_of_a_larger_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made_table, "PART_ROWS", 300)
    write_made_table(tmp_path / "small", 300)
    write_made_table(tmp_path / "large", 700)
    small, large = (pq.read_table(tmp_path / name) for name in ("small", "large"))
    assert large.num_rows == 700
    assert large.slice(0, 300).equals(small)


def test_columns_are_of_all_kinds_with_gaps_and_tails_and_classes_are_skewed() -> None:
    frame = made_part(40_000, 0).to_pandas()
    roles = {name: role.role.value for name, role in infer_roles(frame, label=LABEL).items()}
    assert len(roles) == 20
    assert {role: list(roles.values()).count(role) for role in set(roles.values())} == {
        "numeric": 10,
        "code": 5,
        "string": 5,
    }
    assert (frame.isna().sum() > 0).sum() >= 8
    assert frame["speed"].max() > 50 * frame["speed"].median()
    shares = frame[LABEL].value_counts(normalize=True)
    np.testing.assert_allclose(np.sort(shares)[::-1], CLASS_SHARES, atol=0.01)
    # The mean of a column tells classes apart by a good part of its spread.
    ages = frame.groupby(LABEL)["age"].mean()
    assert np.ptp(ages) > 0.3 * frame["age"].std()


def test_findings_are_exponents_and_ratios() -> None:
    def run(rows: int, way: str, seconds: float, memory: int, objective: float) -> ScaleRun:
        return ScaleRun(rows, 10, way, seconds, 2 * seconds, memory, memory, objective, {})

    runs = [run(100, "blocks", 1, 500, 7.0), run(400, "blocks", 4, 500, 20.1), run(400, "memory", 2, 900, 20.0)]
    found = ScaleCheck(runs, memory_limit=1_000).findings()
    assert found["time_exponent"] == pytest.approx(1)
    assert found["memory_exponent"] == pytest.approx(0)
    assert found["objective_difference"] == pytest.approx(0.005)
    assert (found["time_ratio"], found["cpu_ratio"]) == (2, 2)
    assert "| 400 | 10 | memory | 2 | 4 |" in ScaleCheck(runs, memory_limit=1_000).to_markdown()
