"""The measurements on tables small enough for a test: that they run, and that they measure what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.memory import peak_growth
from c2tc_pipeline.evaluation.reference import dense_matrix, printed_search, train_dense
from c2tc_pipeline.evaluation.speed import allocation_speed, autoencoder_speed, measure_speed, memory_of_condense
from c2tc_pipeline_tests.made_tables import mixed_table


def test_the_printed_search_spends_its_budget_and_never_ends_above_its_start() -> None:
    rng = np.random.default_rng(0)
    classes = [rng.random((n, 3)) for n in (120, 40, 9)]
    objective, counts, runs = printed_search(classes, 12, 0.25)
    start, _, first_runs = printed_search(classes, 12, 0.25, patience=0)
    assert counts.sum() == 12
    assert (counts >= 1).all()
    assert objective <= start
    assert first_runs == 3 < runs


def test_the_dense_matrix_holds_each_rows_similarities() -> None:
    tables = [np.array([[1, 0.5], [0.5, 1]], dtype=np.float32), np.eye(2, dtype=np.float32)]
    dense = dense_matrix(tables, np.array([[1, 0], [0, 1]]))
    assert dense.tolist() == [[0.5, 1, 1, 0], [1, 0.5, 0, 1]]
    assert train_dense(dense, latent=1, hidden=2, batch_size=2) > 0


def test_peak_memory_sees_what_was_freed_again() -> None:
    _, grown = peak_growth(lambda: float(np.ones(20_000_000).sum()))
    assert 100_000_000 < grown < 400_000_000


@pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.SingletonWarning")
def test_every_comparison_reports_its_ratio() -> None:
    table = mixed_table(rows=300)
    label = str(table.columns[-1])
    lines: list[str] = []
    assert autoencoder_speed(table, label, lines.append)["ratio"] > 0
    found = allocation_speed(table, label, 0.05, lines.append)
    assert found["optimal"]["bound"] <= found["optimal"]["objective"]
    assert found["printed"]["runs"] >= 2
    assert memory_of_condense(table, label, 0.05, lines.append)["encoded_bytes"] > 0
    assert len(lines) == 4


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no diabetes130us\.parquet"):
        measure_speed(tmp_path, report=print)
