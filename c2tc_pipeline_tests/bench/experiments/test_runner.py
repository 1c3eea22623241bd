"""An experiment from its grid to a tidy table: complete, repeatable, resumable, honest about what ended early."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments import contest
from c2tc_pipeline.bench.experiments.grid import Contender, Experiment
from c2tc_pipeline.bench.experiments.group import Group, encoded_group
from c2tc_pipeline.bench.experiments.limits import Outcome
from c2tc_pipeline.bench.experiments.runner import COLUMNS, run_experiment
from c2tc_pipeline.bench.models.realmlp import RealMlpClassifier
from c2tc_pipeline.evaluation import trial as trial_module
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.trial import LabelledRows, trial_key
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline.tables.spec import TableSpec

TIMES = ["condense_seconds", "fit_seconds"]


def test_one_row_a_trained_model(spec: TableSpec, small: Experiment) -> None:
    told: list[tuple[float, float]] = []
    scores = run_experiment(small, {"people": spec}, jobs=0, progress=lambda *news: told.append(news))
    assert list(scores.columns) == list(COLUMNS)
    # Two seeds and two models of two methods at two ratios, and of the whole table.
    assert len(scores) == 2 * 2 * (2 * 2 + 1)
    assert not scores.duplicated(["method", "ratio", "model", "split"]).any()
    assert set(scores["status"]) == {"ok"}
    assert scores[["accuracy", "macro_f1"]].notna().all(axis=None)
    assert scores.loc[scores["method"] == "whole", "rows"].eq(480).all()
    assert scores.loc[scores["ratio"] == 0.05, "rows"].eq(24).all()
    assert scores.loc[scores["method"] == "ours", "objective"].gt(0).all()
    done = [part for part, _ in told]
    assert done == sorted(done)
    assert told[0][0] == 0
    assert told[-1][0] == told[-1][1]


@pytest.mark.slow
def test_processes_find_the_same(spec: TableSpec, small: Experiment, tmp_path: Path) -> None:
    short = small.model_copy(update={"models": ("neighbour",), "ratios": (0.05,)})
    here = run_experiment(short, {"people": spec}, jobs=0)
    there = run_experiment(short, {"people": spec}, jobs=2, cache_dir=tmp_path / "cache")
    pd.testing.assert_frame_equal(here.drop(columns=TIMES), there.drop(columns=TIMES))


def test_what_is_done_is_not_done_again(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(contest, "run_limited", never)
    monkeypatch.setattr(trial_module, "score_predictions", never)
    again = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    pd.testing.assert_frame_equal(first, again)


def test_an_experiment_that_was_stopped_goes_on(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    real = contest.run_limited

    def counted(*args: Any, **rest: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args, **rest)

    monkeypatch.setattr(contest, "run_limited", counted)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    scores = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    # Eight condensations in all: three were done before the stop, the fourth was lost.
    assert len(calls) == 3 + 1 + 5
    assert set(scores["status"]) == {"ok"}


def check_ended(scores: pd.DataFrame, status: str) -> None:
    ours = scores[scores["method"] == "ours"]
    assert set(ours["status"]) == {status}
    assert ours[["accuracy", "macro_f1"]].isna().all(axis=None)
    assert ours["reason"].str.len().gt(0).all()
    assert len(ours) == 2 * 2
    assert set(scores.loc[scores["method"] == "whole", "status"]) == {"ok"}


def test_too_little_time_ends_in_a_row(spec: TableSpec, small: Experiment) -> None:
    tight = small.model_copy(update={"time_limit": 1e-4, "seeds": 1})
    check_ended(run_experiment(tight, {"people": spec}, jobs=0), "OOT")


def test_too_little_memory_ends_in_a_row(spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(*_: Any) -> Any:
        return np.ones(10**10)

    monkeypatch.setattr(contest, "_condense", greedy)
    check_ended(run_experiment(small.model_copy(update={"seeds": 1}), {"people": spec}, jobs=0), "OOM")


def test_who_runs_out_of_time_on_one_split_is_not_tried_on_the_others(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def endless(work: Any, **_: Any) -> Outcome[Any]:
        tried.append(1)
        return Outcome("OOT", reason="it took too long")

    monkeypatch.setattr(contest, "run_limited", endless)
    scores = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    own = scores[scores["method"] != "whole"]
    assert set(own["status"]) == {"OOT"}
    # Two methods at two ratios, once each; the second split was told.
    assert len(tried) == 4
    assert own["reason"].str.contains("another split").sum() == len(own) // 2


def test_another_run_tries_again(spec: TableSpec, small: Experiment, tmp_path: Path) -> None:
    """A machine that was busy yesterday does not count as out of time for ever."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contest, "run_limited", lambda work, **_: Outcome("OOT", reason="busy"))
        assert "OOT" in set(run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)["status"])
    assert set(run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)["status"]) == {"ok"}


def test_what_took_longer_under_another_limit_is_out_of_time(
    spec: TableSpec, small: Experiment, tmp_path: Path
) -> None:
    run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    tight = small.model_copy(update={"time_limit": 1e-9})
    scores = run_experiment(tight, {"people": spec}, jobs=0, cache_dir=tmp_path)
    assert set(scores.loc[scores["method"] != "whole", "status"]) == {"OOT"}


def test_seconds_that_count_are_not_looked_up(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = small.model_copy(update={"timed": True, "seeds": 1})
    run_experiment(timed, {"people": spec}, jobs=0, cache_dir=tmp_path)
    calls: list[int] = []
    real = contest.run_limited

    def counted(*args: Any, **rest: Any) -> Any:
        calls.append(1)
        return real(*args, **rest)

    monkeypatch.setattr(contest, "run_limited", counted)
    run_experiment(timed, {"people": spec}, jobs=0, cache_dir=tmp_path)
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("name", "changed"), [("PULL", 0.8), ("Condenser", functools.partial(contest.Condenser, gamma=0.75))]
)
def test_a_changed_default_is_another_key(name: str, changed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contender = Contender(method="ours")
    before = hash_json(contest._settings(contender, 0.1, 0))
    monkeypatch.setattr(contest, name, changed)
    assert hash_json(contest._settings(contender, 0.1, 0)) != before


def test_a_changed_rate_factor_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LabelledRows(np.eye(3, dtype=np.float32), np.arange(3))
    before = trial_key(make_model("realmlp"), rows, rows, classes=3)
    assert before != trial_key(make_model("realmlp", recipe="paper"), rows, rows, classes=3)
    monkeypatch.setattr(RealMlpClassifier, "rate_factor", 99.0)
    assert before != trial_key(make_model("realmlp"), rows, rows, classes=3)


def test_a_table_that_groups_duplicates_stays_grouped(spec: TableSpec, small: Experiment) -> None:
    grouped = spec.model_copy(update={"split": spec.split.model_copy(update={"group_duplicates": True})})
    frame = read_table(spec.source)
    path = Path(spec.source).with_name("twice.parquet")
    pd.concat([frame, frame]).to_parquet(path)
    split = encoded_group(Group(small, grouped.model_copy(update={"source": str(path)}), 0, "hcfe"), None)
    known = {row.tobytes() for row in split.train.X}
    assert not any(row.tobytes() in known for row in split.test.X)


def test_a_longer_limit_tries_again(spec: TableSpec, small: Experiment, tmp_path: Path) -> None:
    tight = small.model_copy(update={"time_limit": 1e-4})
    assert "OOT" in set(run_experiment(tight, {"people": spec}, jobs=0, cache_dir=tmp_path)["status"])
    assert set(run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)["status"]) == {"ok"}


def test_seeds_split_and_condense_anew(spec: TableSpec, small: Experiment) -> None:
    scores = run_experiment(small, {"people": spec}, jobs=0)
    ours = scores[(scores["method"] == "ours") & (scores["model"] == "neighbour") & (scores["ratio"] == 0.05)]
    assert ours["objective"].nunique() == 2


def test_a_one_sided_feature_is_a_variant(spec: TableSpec, small: Experiment) -> None:
    one_sided = Experiment.model_validate(
        {
            **small.model_dump(),
            "imbalance": {"columns": {"people": "insured"}, "levels": [1, 50]},
            "seeds": 1,
            "ratios": [0.05],
            "methods": ["ours"],
        }
    )
    scores = run_experiment(one_sided, {"people": spec}, jobs=0)
    assert set(scores["variant"]) == {"1:1", "50:1"}
    objective = scores.groupby("variant")["objective"].first()
    assert objective["1:1"] != objective["50:1"]


def test_scaling_condenses_growing_parts() -> None:
    grid = Experiment.model_validate(
        {
            "name": "scaling",
            "title": "Scaling",
            "ratios": [0.01],
            "methods": ["ours", "stratified"],
            "models": [],
            "seeds": 1,
            "scaling": {
                "like": "microsoft",
                "shape": {"rows": 2000, "columns": 10, "classes": [0.8, 0.2]},
                "vary": "rows",
                "shares": [1.0, 0.5],
            },
        }
    )
    scores = run_experiment(grid, {})
    assert list(scores.loc[scores["method"] == "ours", "variant"]) == ["rows=1000", "rows=2000"]
    assert list(scores.loc[scores["method"] == "ours", "rows"]) == [10, 20]
    assert np.isfinite(scores["condense_seconds"]).all()


def test_the_first_seed_names_the_splits(spec: TableSpec, small: Experiment) -> None:
    """Later seeds alone find what they found among others, on splits that are not those of the first."""
    quick = small.model_copy(update={"models": ("neighbour",), "ratios": (0.05,)})
    both = run_experiment(quick, {"people": spec}, jobs=0)
    second = run_experiment(quick.model_copy(update={"seeds": 1, "first_seed": 1}), {"people": spec}, jobs=0)
    expected = both[both["seed"] == 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(second.drop(columns=TIMES), expected.drop(columns=TIMES))


def test_validation_rows_can_be_judged_on_instead_of_test_rows(spec: TableSpec, small: Experiment) -> None:
    changes = {"models": ("neighbour",), "judged_on": "validation", "seeds": 1}
    chosen = small.model_copy(update=changes)
    scores = run_experiment(chosen, {"people": spec}, jobs=0)
    split = encoded_group(Group(chosen, spec, 0, "hcfe"), None)
    on = {
        name: trial_module.run_trial(
            make_model("neighbour", seed=0), split.train, getattr(split, name), classes=split.classes
        ).value.scores.accuracy
        for name in ("validation", "test")
    }
    assert on["validation"] != on["test"]
    assert scores.loc[scores["method"] == "whole", "accuracy"].tolist() == [on["validation"]]


def test_the_pull_changes_weights_and_nothing_else(spec: TableSpec, small: Experiment) -> None:
    split = encoded_group(Group(small, spec, 0, "hcfe"), None)

    def rows(**settings: Any) -> LabelledRows:
        contender = Contender(method="ours", settings=settings)
        made = contest.condense_split(contender, split, 0.05, 0, time_limit=60, memory_limit=8).value
        assert made.rows is not None
        return made.rows

    by_default, by_source = rows(), rows(pull=1.0)
    np.testing.assert_array_equal(by_default.X, by_source.X)
    assert by_source.weights is not None
    shares = np.bincount(by_source.codes, weights=by_source.weights) / by_source.weights.sum()
    np.testing.assert_allclose(shares, np.bincount(split.train.codes) / len(split.train))
    assert by_default.weights is not None
    assert not np.allclose(by_default.weights, by_source.weights)
