"""A condensed table on disk: whole, the same when it comes back, the same bytes for the same seed, and cached parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline_tests.tools.made_tables import data_hashes, everything_below, mixed_table

FILES = (
    "condensed.parquet",
    "condensed_original.parquet",
    "membership.parquet",
    "projection.parquet",
    "spread.parquet",
    "correlation.parquet",
    "gaps.parquet",
    "category_shares.parquet",
    "summary.json",
    "timings.json",
    "encoder/encoder.json",
    "encoder/encoder.safetensors",
    "manifest.json",
)


def small_table(**settings: Any) -> CondensedTable:
    return condense(mixed_table(words=True), "outcome", 0.03, **settings)


@pytest.fixture(scope="module")
def table() -> CondensedTable:
    return small_table()


@pytest.mark.parametrize(
    "label",
    [["a", "b"] * 60, [1, 2] * 60, [0.5, 1.5] * 60, [True, False] * 60, pd.Categorical(["a", "b"] * 60)],
    ids=["text", "whole", "fraction", "bool", "category"],
)
def test_what_is_loaded_is_what_was_saved(tmp_path: Path, label: Any) -> None:
    frame = mixed_table(120).assign(outcome=label, version=3)
    saved = condense(frame, "outcome", 0.1, gamma="auto", name="people")
    loaded = CondensedTable.load(saved.save(tmp_path / "small"))
    for part in ("X", "original", "membership", "roles", "projection"):
        pd.testing.assert_frame_equal(getattr(loaded, part), getattr(saved, part))
    pd.testing.assert_series_equal(loaded.y, saved.y)
    pd.testing.assert_series_equal(loaded.weight, saved.weight)
    assert loaded.classes == saved.classes
    assert loaded.class_rows == saved.class_rows
    assert loaded.notices == saved.notices
    assert loaded.allocation.to_dict() == saved.allocation.to_dict()
    assert [c.to_dict() for c in loaded.curves] == [c.to_dict() for c in saved.curves]
    assert loaded.summary["objective"] == saved.summary["objective"]
    assert loaded.summary.keys() == saved.summary.keys()
    np.testing.assert_array_equal(loaded.encoder.transform(frame), saved.encoder.transform(frame))


def test_files(tmp_path: Path, table: CondensedTable) -> None:
    table.save(tmp_path / "small")
    assert {name for name, content in everything_below(tmp_path / "small").items() if content is not None} == set(FILES)
    encoded = pd.read_parquet(tmp_path / "small" / "condensed.parquet")
    weights = ["weight", "training_weight"]
    assert encoded.columns.tolist() == [*table.X.columns, "outcome", *weights]
    original = pd.read_parquet(tmp_path / "small" / "condensed_original.parquet")
    assert original.columns.tolist() == [*mixed_table().columns, *weights]
    for written in (encoded, original):
        assert written["weight"].tolist() == table.weight.tolist()
        assert written["training_weight"].tolist() == table.training_weight.tolist()


def test_a_report_is_saved_on_request(tmp_path: Path, table: CondensedTable) -> None:
    saved = table.save(tmp_path / "small", report=True)
    assert "outcome" in (saved / "report.html").read_text(encoding="utf-8")
    assert len(CondensedTable.load(saved)) == len(table)


def test_a_damaged_or_missing_file_is_named(tmp_path: Path, table: CondensedTable) -> None:
    path = table.save(tmp_path / "small") / "spread.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedArtefactError, match=path.name):
        CondensedTable.load(tmp_path / "small")
    path.unlink()
    with pytest.raises(InputError, match=path.name):
        CondensedTable.load(tmp_path / "small")


def test_an_own_directory_is_replaced_on_request_only(tmp_path: Path, table: CondensedTable) -> None:
    other = condense(mixed_table(), "outcome", rows=5)
    table.save(tmp_path / "small")
    before = everything_below(tmp_path)
    with pytest.raises(FileExistsError):
        other.save(tmp_path / "small")
    assert everything_below(tmp_path) == before
    other.save(tmp_path / "small", replace=True)
    assert len(CondensedTable.load(tmp_path / "small")) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_same_seed_same_bytes_other_seed_other_bytes(tmp_path: Path) -> None:
    hashes = {}
    for name, seed in (("one", 1), ("again", 1), ("other", 2)):
        hashes[name] = data_hashes(small_table(random_state=seed).save(tmp_path / name))
    assert hashes["one"] == hashes["again"]
    assert hashes["one"].keys() == hashes["other"].keys()
    assert hashes["one"]["condensed.parquet"] != hashes["other"]["condensed.parquet"]
    assert hashes["one"]["membership.parquet"] != hashes["other"]["membership.parquet"]


def test_the_cache_is_hit_and_changes_no_byte(tmp_path: Path, table: CondensedTable) -> None:
    first, second = (small_table(cache_dir=tmp_path / "cache") for _ in range(2))
    assert first.summary["cache_hits"] == {"autoencoder": False, "loss_curves": False}
    assert second.summary["cache_hits"] == {"autoencoder": True, "loss_curves": True}
    assert table.summary["cache_hits"]["loss_curves"] is None
    hashes = [data_hashes(t.save(tmp_path / f"{i}")) for i, t in enumerate((table, first, second))]
    assert hashes[0] == hashes[1] == hashes[2]
