"""A large table, condensed in blocks, gives the same result as a table in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.bench.scale import LABEL, synthetic_part
from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline.condensation.steps import condense_table
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables import blocks as blocks_module
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import Table, learn_table

# What differs between two runs: how long they took, and what shows it.
RUNS = {"timings.json", "report.html", "manifest.json"}


def mixed_rows(rows: int = 1_200) -> pd.DataFrame:
    """Return rows of all kinds: gaps, moments, constants, identifiers, labels that are missing."""
    frame = synthetic_part(rows, 0).to_pandas()
    rng = np.random.default_rng(1)
    frame["seen"] = pd.Timestamp("2024-02-29") + pd.to_timedelta(rng.integers(10**6, size=rows), unit="s")
    frame["visits"] = frame["visits"].astype("Int64")
    frame["has_insurance"] = frame["has_insurance"].astype("boolean").mask(rng.random(rows) < 0.1)
    frame["source"] = "survey"
    frame["row_id"] = np.arange(rows)
    frame.loc[rng.random(rows) < 0.05, LABEL] = None
    return frame


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    mixed_rows().to_parquet(path, index=False, row_group_size=500)
    return path


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the test table as large, in blocks of 97 rows."""
    monkeypatch.setattr(blocks_module, "LARGE_CELLS", 1_000)
    monkeypatch.setattr(blocks_module, "LARGE_CSV_BYTES", 1_000)
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 97)


def condensed(source: Path, out: Path, *, split: bool = False, trials: int = 0, **settings: Any) -> CondensedTable:
    spec = TableSpec.model_validate({"name": "t", "source": str(source), "label": LABEL, "settings": settings})
    condense_to_directory(spec, out, name="t", ratio=0.02, split=split, trials=trials)
    return CondensedTable.load(out)


def same_files(one: Path, other: Path) -> None:
    names = {str(path.relative_to(one)) for path in one.rglob("*") if path.is_file()}
    assert names == {str(path.relative_to(other)) for path in other.rglob("*") if path.is_file()}
    different = {name for name in names if (one / name).read_bytes() != (other / name).read_bytes()}
    assert different <= RUNS


@pytest.mark.parametrize(
    "settings",
    [
        {"strings": "target"},
        {"strings": "target", "split": True, "gamma": "auto"},
        {"representative": "medoid", "strings": "target", "numeric": "minmax"},
    ],
)
def test_many_blocks_give_the_bytes_of_the_table_in_memory(
    stored: Path, tmp_path: Path, settings: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    condensed(stored, tmp_path / "memory", **settings)
    request.getfixturevalue("small_limit")
    large = condensed(stored, tmp_path / "blocks", **settings)
    same_files(tmp_path / "memory", tmp_path / "blocks")
    assert "row_id" not in large.original
    assert set(large.original["source"]) == {"survey"}


def test_an_autoencoder_differs_by_rounding_only(stored: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    # Its matrix products round by the size of a block.
    in_memory = condensed(stored, tmp_path / "memory")
    request.getfixturevalue("small_limit")
    words = condensed(stored, tmp_path / "words")
    condensed(stored, tmp_path / "again")
    same_files(tmp_path / "words", tmp_path / "again")
    pd.testing.assert_frame_equal(words.X, in_memory.X, atol=1e-6)
    pd.testing.assert_frame_equal(words.original, in_memory.original)
    pd.testing.assert_frame_equal(words.membership, in_memory.membership)


def test_noise_and_forgetting_do_not_depend_on_blocks(stored: Path, request: pytest.FixtureRequest) -> None:
    frame, rows = pd.read_parquet(stored), np.arange(40, 90)

    def results() -> tuple[CondensedTable, CondensedTable]:
        table = learn_table(Blocks.of_source(stored), label=LABEL)
        noisy = HybridEncoder(strings="target", noise=0.05)
        with_noise, _ = condense_table(table, noisy, Condenser(0.02), name="t", clock=StageClock())
        plain, _ = condense_table(table, HybridEncoder(strings="target"), Condenser(0.02), name="t", clock=StageClock())
        return with_noise, forget_rows(plain, Blocks.of_source(stored), rows).table

    in_memory = results()
    request.getfixturevalue("small_limit")
    for one, other in zip(in_memory, results(), strict=True):
        pd.testing.assert_frame_equal(one.X, other.X)
        pd.testing.assert_frame_equal(one.original, other.original)
        pd.testing.assert_frame_equal(one.membership, other.membership)
    by_frame = forget_rows(in_memory[1], frame, np.array([0])).table
    assert by_frame.weight.sum() == in_memory[1].weight.sum() - 1


def test_a_large_table_can_be_evaluated(stored: Path, tmp_path: Path, small_limit: None) -> None:
    table = condensed(stored, tmp_path / "out", split=True, trials=1, strings="target")
    assert {row["training_set"] for row in table.summary["scores"]} > {"condensed", "random", "whole"}
    split = pd.read_parquet(tmp_path / "out" / "split.parquet")
    assert split["side"].value_counts()["test"] == pytest.approx(0.1 * split["side"].ne("no label").sum(), abs=3)


def test_a_source_that_is_no_parquet_file_is_read_once(
    stored: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    frame = pd.read_parquet(stored).drop(columns=["has_insurance", "is_urban"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    condensed(tmp_path / "rows.csv", tmp_path / "memory", strings="target")
    request.getfixturevalue("small_limit")
    condensed(tmp_path / "rows.csv", tmp_path / "blocks", strings="target")
    same_files(tmp_path / "memory", tmp_path / "blocks")
    blocks = Blocks.of_source(tmp_path / "rows.csv")
    (tmp_path / "rows.csv").unlink()
    assert not blocks.in_memory
    for columns in (None, ["age", LABEL]):
        read = list(blocks.frames(columns))
        assert [len(block) for block in read[:-1]] == [97] * (len(read) - 1)
        assert sum(map(len, read)) == 1_200
        assert columns is None or read[0].columns.tolist() == columns


def test_a_source_that_changes_between_the_passes_is_refused(stored: Path, tmp_path: Path, small_limit: None) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(stored.read_bytes())
    blocks = Blocks.of_source(path)
    table = learn_table(blocks, label=LABEL)
    pd.read_parquet(stored).iloc[::-1].to_parquet(path)
    with pytest.raises(InputError, match="was changed while it was read"):
        list(table.rows())


def test_stored_blocks_outlive_their_file(stored: Path, tmp_path: Path, small_limit: None) -> None:
    table = learn_table(Blocks.of_source(stored), label=LABEL)
    table.write_files(tmp_path)
    again = Table.read_files(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    assert not again.blocks.in_memory
    assert again.digest() == table.digest()


def test_nothing_is_left_behind_when_a_table_can_not_be_condensed(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_limit: None
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    spec = TableSpec(name="t", source=str(stored), label="income")
    with pytest.raises(InputError):
        condense_to_directory(spec, tmp_path / "out", name="t", ratio=0.02)
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]
