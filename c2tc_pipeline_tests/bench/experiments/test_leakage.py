"""The test rows are looked at once a trained model, by nothing else: not the encoder, nor gamma, nor a method.

A recipe is named by the experiment before anything is read, so it depends on no row at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c2tc_pipeline.tables.validated import validate_table

from c2tc_pipeline.bench.experiments import group as group_module
from c2tc_pipeline.bench.experiments.contest import condense_split
from c2tc_pipeline.bench.experiments.grid import Contender, Experiment
from c2tc_pipeline.bench.experiments.group import Group, encoded_group, run_group
from c2tc_pipeline.bench.experiments.spaces import SPACES
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.spec import TableSpec


def garbled(spec: TableSpec, side: str, folder: Path) -> TableSpec:
    """Return the same table with every feature of one side's rows replaced by nonsense, the split as it was."""
    frame = read_table(spec.source)
    rows = validate_table(frame, spec).positions(side)
    changed = frame.copy()
    rng = np.random.default_rng(7)
    for column in frame.columns.drop(spec.label):
        values = frame[column].iloc[rng.permutation(rows)].to_numpy()
        changed.loc[changed.index[rows], column] = values
    changed.loc[changed.index[rows], "amount"] = 1e6
    path = folder / f"garbled_{side}.parquet"
    changed.to_parquet(path)
    return spec.model_copy(update={"source": str(path)})


@pytest.mark.parametrize("space", list(SPACES))
def test_no_encoder_sees_test_or_validation_rows(
    space: str, spec: TableSpec, small: Experiment, tmp_path: Path
) -> None:
    before = encoded_group(Group(small, spec, 0, space), None)
    for side in ("test", "validation"):
        after = encoded_group(Group(small, garbled(spec, side, tmp_path), 0, space), None)
        assert after.train.digest == before.train.digest
        assert getattr(after, side).digest != getattr(before, side).digest


def test_neither_gamma_nor_a_condensed_row_depends_on_test_rows(
    spec: TableSpec, small: Experiment, tmp_path: Path
) -> None:
    contender = Contender(method="ours", settings={"gamma": "auto"})
    made = []
    for described in (spec, garbled(spec, "test", tmp_path)):
        split = encoded_group(Group(small, described, 0, "hcfe"), None)
        made.append((split, condense_split(contender, split, 0.05, 0, time_limit=60, memory_limit=4).value))
    (split, first), (other, second) = made
    assert split.seen == other.seen
    assert first.rows is not None
    assert second.rows is not None
    assert first.rows.digest == second.rows.digest


def test_a_trained_model_looks_at_the_test_rows_once(
    spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[str, int]] = []
    test_rows = len(encoded_group(Group(small, spec, 0, "hcfe"), None).test)

    def watched(name: str, **settings: Any) -> Any:
        model = make_model(name, **settings)
        kind = type(model)

        class Watched(kind):  # type: ignore[misc, valid-type]
            def fit(self, X: Any, y: Any, **rest: Any) -> Any:
                looks.append(("fit", len(X)))
                return super().fit(X, y, **rest)

            def predict(self, X: Any) -> Any:
                looks.append(("predict", len(X)))
                return super().predict(X)

        model.__class__ = Watched
        return model

    monkeypatch.setattr(group_module, "make_model", watched)
    results = run_group(Group(small, spec, 0, "hcfe"), cache_dir=None)
    trained = [result for result in results if result["status"] == "ok"]
    assert len(trained) == 2 * (1 + 2 * 2)
    assert [what for what, _ in looks] == ["fit", "predict"] * len(trained)
    assert {rows for what, rows in looks if what == "predict"} == {test_rows}
    assert test_rows not in {rows for what, rows in looks if what == "fit"}
