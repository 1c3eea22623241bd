"""A table condensed in blocks is the table condensed in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.bench.scale import LABEL, synthetic_part
from c2tc_pipeline.cli import job
from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.streamed import encode_blocks
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.storage.holds import SCRATCH_PREFIX, is_held
from c2tc_pipeline.tables import blocks as blocks_module
from c2tc_pipeline.tables.blocks import SourceBlocks, is_large
from c2tc_pipeline.tables.overview import overview_of
from c2tc_pipeline.tables.spec import TableSpec

# What differs between two runs: how long they took, and what shows it.
RUNS = {"timings.json", "report.html", "manifest.json"}


def mixed_rows(rows: int = 3_000) -> pd.DataFrame:
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
    mixed_rows().to_parquet(path, index=False, row_group_size=700)
    return path


def condensed(source: Path, out: Path, *, blocks: bool, **settings: Any) -> CondensedTable:
    spec = TableSpec.model_validate({"name": "t", "source": str(source), "label": LABEL, "settings": settings})
    condense_to_directory(spec, out, name="t", ratio=0.02, blocks=blocks)
    return CondensedTable.load(out)


def same_files(one: Path, other: Path) -> None:
    names = {str(path.relative_to(one)) for path in one.rglob("*") if path.is_file()}
    assert names == {str(path.relative_to(other)) for path in other.rglob("*") if path.is_file()}
    different = {name for name in names if (one / name).read_bytes() != (other / name).read_bytes()}
    assert different <= RUNS


@pytest.mark.parametrize(
    "settings", [{"strings": "target"}, {"representative": "medoid", "strings": "target", "numeric": "minmax"}]
)
def test_one_block_gives_the_bytes_of_the_table_in_memory(
    stored: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    condensed(stored, tmp_path / "memory", blocks=False, **settings)
    condensed(stored, tmp_path / "blocks", blocks=True, **settings)
    same_files(tmp_path / "memory", tmp_path / "blocks")


def test_many_blocks_give_the_same_table(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = condensed(stored, tmp_path / "memory", blocks=False, strings="target")
    monkeypatch.setattr(SourceBlocks.__init__, "__defaults__", (97,))
    condensed(stored, tmp_path / "blocks", blocks=True, strings="target")
    # Without an autoencoder, whose products of matrices round by the size of a block, to the byte.
    same_files(tmp_path / "memory", tmp_path / "blocks")
    words = condensed(stored, tmp_path / "words", blocks=True)
    condensed(stored, tmp_path / "again", blocks=True)
    same_files(tmp_path / "words", tmp_path / "again")
    in_memory = condensed(stored, tmp_path / "memory words", blocks=False)
    pd.testing.assert_frame_equal(words.X, in_memory.X, atol=1e-6)
    pd.testing.assert_frame_equal(words.original, in_memory.original)
    pd.testing.assert_frame_equal(words.membership, in_memory.membership)
    assert whole.original.columns.tolist()[-1] == LABEL
    assert "row_id" not in whole.original
    assert set(whole.original["source"]) == {"survey"}


def test_a_source_that_is_no_parquet_file_is_read_once(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.read_parquet(stored).drop(columns=["has_insurance", "is_urban"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    source = open_source(tmp_path / "rows.csv")
    condensed(tmp_path / "rows.csv", tmp_path / "memory", blocks=False, strings="target")
    condensed(tmp_path / "rows.csv", tmp_path / "blocks", blocks=True, strings="target")
    same_files(tmp_path / "memory", tmp_path / "blocks")
    (tmp_path / "work").mkdir()
    blocks = SourceBlocks(source, tmp_path / "work", rows=1_000)
    (tmp_path / "rows.csv").unlink()
    for columns in (None, ["age", LABEL]):
        read = list(blocks.frames(columns))
        assert [len(block) for block in read] == [1_000] * 3
        assert columns is None or read[0].columns.tolist() == columns


def test_a_source_that_changes_between_the_passes_is_refused(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    path.write_bytes(stored.read_bytes())
    blocks = SourceBlocks(open_source(path), tmp_path)
    pd.read_parquet(stored).iloc[::-1].to_parquet(path)
    with pytest.raises(InputError, match="was changed while it was read"):
        list(blocks.frames())


def test_a_class_that_appears_between_the_passes_is_a_change_of_the_source(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"x": np.arange(60.0) % 7, "y": ["a", "b"] * 30})
    frame.to_parquet(path)
    blocks = SourceBlocks(open_source(path), tmp_path)
    overview = overview_of(blocks.frames(), label="y")
    encoder = HybridEncoder().fit_overview(overview)
    frame.assign(y=["a", "b", "c"] * 20).to_parquet(path)
    with pytest.raises(InputError, match="was changed while it was read"):
        encode_blocks(encoder, overview, blocks, tmp_path / "encoded.npy")


def test_nothing_is_left_behind_when_a_table_can_not_be_condensed(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    spec = TableSpec(name="t", source=str(stored), label="income")
    with pytest.raises(InputError, match="looks continuous"):
        condense_to_directory(spec, tmp_path / "out", name="t", ratio=0.02, blocks=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


def test_the_working_folder_of_a_killed_process_can_be_collected(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    seen: list[tuple[str, bool]] = []

    def die(blocks: SourceBlocks, folder: Path, **options: Any) -> CondensedTable:
        seen.append((folder.name, is_held(folder)))
        raise Killed

    monkeypatch.setattr(job, "condense_blocks", die)
    with pytest.raises(Killed):
        condensed(stored, tmp_path / "out", blocks=True)
    [(name, held)] = seen
    # By this name c2tc gc finds it, and by the hold it knows that somebody is still at work in it.
    assert name.startswith(SCRATCH_PREFIX)
    assert held


def test_a_large_table_goes_by_blocks_and_a_split_does_not(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = TableSpec(name="t", source=str(stored), label=LABEL)
    assert not is_large(open_source(stored))
    monkeypatch.setattr(blocks_module, "LARGE_CELLS", 3_000 * 24)
    assert is_large(open_source(stored))
    table = condense_to_directory(spec, tmp_path / "out", name="t", ratio=0.02)
    assert not isinstance(table.members, pd.DataFrame)
    assert len(table.membership) == table.weight.sum()
    with pytest.raises(InputError, match="A split needs the whole table in memory"):
        condense_to_directory(spec, tmp_path / "out", name="t", ratio=0.02, split=True, blocks=True)
