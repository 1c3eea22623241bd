"""Experiments from their grids to tidy tables."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench import job as experiment_job
from c2tc_pipeline.bench.experiments import cells
from c2tc_pipeline.bench.experiments.cells import Group, condense_split, run_group
from c2tc_pipeline.bench.experiments.grid import (
    PAPER_TABLES,
    Contender,
    Experiment,
    experiment_names,
    load_experiment,
    tables_of,
)
from c2tc_pipeline.bench.experiments.runner import COLUMNS, run_experiment
from c2tc_pipeline.bench.experiments.spaces import SPACES, imbalanced_rows
from c2tc_pipeline.bench.limits import Outcome
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation import trial as trial_module
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.trial import LabelledRows
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import learn_table
from c2tc_pipeline_tests.tools.made_tables import mixed_table

SMALL = "title: t\ntables: [a]\nratios: [0.1]\nmethods: [ours]\n"


@pytest.mark.parametrize("name", experiment_names())
def test_experiments_of_the_package_name_known_tables(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    assert set(experiment.tables) <= set(load_catalogue(PAPER_TABLES))


def test_a_sweep_is_one_contender_a_value(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace("[ours]", "[{method: ours, sweep: {gamma: [0, auto]}, settings: {decay: 0.3}}]"))
    first, second = load_experiment(str(path)).methods
    assert first == Contender(method="ours", variant="gamma=0", settings={"decay": 0.3, "gamma": 0})
    assert second.settings["gamma"] == "auto"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("methods: [ours]", "methods: [hurding]"), "hurding"),
        (("tables: [a]", "tables: []"), "tables"),
        (("ratios: [0.1]", "ratios: [2]"), "field 'ratios.0'"),
        (("title: t", "title: t\nspaces: [hcfee]"), "hcfee"),
        (("title: t", "title: t\nmodels: [mlpp]"), "mlpp"),
        (("title: t", "title: t\nrecipe: papper"), "papper"),
        (("title: t", "title: t\nseed: 3"), "field 'seed'"),
        (("methods: [ours]", "methods: ours"), "methods"),
        (("methods: [ours]", "methods: 3"), "methods"),
        (("methods: [ours]", "methods:"), "methods"),
        (("methods: [ours]", "methods: [ours, ours]"), "ours"),
        (("methods: [ours]", "methods: [{method: ours, sweep: {gamma: 0.5}}]"), "gamma"),
        (("methods: [ours]", "methods: [{method: ours, spaces: [nowhere]}]"), "nowhere"),
        (("title: t", "title: t\nimbalance: {columns: {a: x}, levels: []}"), "field 'imbalance.levels'"),
        (("title: t", "title: t\nimbalance: {columns: {}, levels: [2]}"), "'a'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace(*change))
    with pytest.raises(InputError, match=said) as caught:
        load_experiment(str(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(InputError, match="overall"):
        load_experiment("overal")


def test_restricting_to_what_is_not_there_is_refused() -> None:
    experiment = load_experiment("allocation")
    with pytest.raises(InputError, match="random"):
        experiment.restricted(methods=("random",))
    with pytest.raises(InputError, match="'x'"):
        experiment.restricted(models=("x",))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    experiment = load_experiment("allocation")
    with pytest.raises(InputError, match=r"electricity\.parquet"):
        tables_of(experiment, data=tmp_path)
    with pytest.raises(InputError, match="--data"):
        tables_of(experiment)


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "x": rng.random(rows), "y": rng.integers(0, 3, rows)})


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(20, 300), level=st.sampled_from([1, 10, 100, 1000]), seed=st.integers(0, 5))
def test_rows_and_classes_stay_and_the_feature_obeys(rows: int, level: int, seed: int) -> None:
    before = table(rows, seed)
    after = imbalanced_rows(before, "y", "sex", level, seed=seed)
    pd.testing.assert_series_equal(after["y"].value_counts().sort_index(), before["y"].value_counts().sort_index())
    for value, part in after.groupby("y"):
        kinds = before.loc[before["y"] == value, "sex"].unique()
        if len(kinds) == 2:
            assert abs((part["sex"] == "f").sum() - len(part) * level / (level + 1)) <= 1
    # Rows are real ones, each as often as the others of its kind, give or take once.
    assert set(after["x"]) <= set(before["x"])
    for _, kind in after.groupby(["y", "sex"]):
        repeats = kind["x"].value_counts()
        assert repeats.max() - repeats.min() <= 1


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(InputError, match="age"):
        imbalanced_rows(table(20, 0), "y", "age", 10, seed=0)


def garbled(spec: TableSpec, side: str, folder: Path) -> TableSpec:
    """Return the same table with every feature of one side's rows replaced by nonsense, the split as it was."""
    frame = read_table(spec.source)
    rows = learn_table(Blocks.of_frame(frame), label=spec.label, roles=spec.roles, split=spec.split).positions(side)
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
    before = Group(small, spec, 0, space).encoded(None)
    for side in ("test", "validation"):
        after = Group(small, garbled(spec, side, tmp_path), 0, space).encoded(None)
        assert after.train.digest == before.train.digest
        assert getattr(after, side).digest != getattr(before, side).digest


def test_neither_gamma_nor_a_condensed_row_depends_on_test_rows(
    spec: TableSpec, small: Experiment, tmp_path: Path
) -> None:
    contender = Contender(method="ours", settings={"gamma": "auto"})
    made = []
    for described in (spec, garbled(spec, "test", tmp_path)):
        split = Group(small, described, 0, "hcfe").encoded(None)
        made.append((split, condense_split(contender, split, 0.05, 0, time_limit=60, memory_limit=4)))
    (split, first), (other, second) = made
    assert split.visible == other.visible
    assert first.rows is not None
    assert second.rows is not None
    assert first.rows.digest == second.rows.digest


def test_a_trained_model_looks_at_the_test_rows_once(
    spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[str, int]] = []
    test_rows = len(Group(small, spec, 0, "hcfe").encoded(None).test)

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

    monkeypatch.setattr(cells, "make_model", watched)
    results = run_group(Group(small, spec, 0, "hcfe"), cache_dir=None)
    trained = [result for result in results if result["status"] == "ok"]
    assert len(trained) == 2 * (1 + 2 * 2)
    assert [what for what, _ in looks] == ["fit", "predict"] * len(trained)
    assert {rows for what, rows in looks if what == "predict"} == {test_rows}
    assert test_rows not in {rows for what, rows in looks if what == "fit"}


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

    monkeypatch.setattr(cells, "run_limited", never)
    monkeypatch.setattr(trial_module, "score_predictions", never)
    again = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    pd.testing.assert_frame_equal(first, again)


def test_an_experiment_that_was_stopped_goes_on(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    real = cells.run_limited

    def counted(*args: Any, **rest: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*args, **rest)

    monkeypatch.setattr(cells, "run_limited", counted)
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

    monkeypatch.setattr(cells, "_condense", greedy)
    check_ended(run_experiment(small.model_copy(update={"seeds": 1}), {"people": spec}, jobs=0), "OOM")


def test_who_runs_out_of_time_on_one_split_is_not_tried_on_the_others(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def endless(work: Any, **_: Any) -> Outcome[Any]:
        tried.append(1)
        return Outcome("OOT", reason="it took too long")

    monkeypatch.setattr(cells, "run_limited", endless)
    scores = run_experiment(small, {"people": spec}, jobs=0, cache_dir=tmp_path)
    own = scores[scores["method"] != "whole"]
    assert set(own["status"]) == {"OOT"}
    # Two methods at two ratios, once each; the second split was told.
    assert len(tried) == 4
    assert own["reason"].str.contains("another split").sum() == len(own) // 2


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
    real = cells.run_limited

    def counted(*args: Any, **rest: Any) -> Any:
        calls.append(1)
        return real(*args, **rest)

    monkeypatch.setattr(cells, "run_limited", counted)
    run_experiment(timed, {"people": spec}, jobs=0, cache_dir=tmp_path)
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("name", "changed"), [("PULL", 0.8), ("Condenser", functools.partial(cells.Condenser, gamma=0.75))]
)
def test_a_changed_default_is_another_key(name: str, changed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    contender = Contender(method="ours")
    before = hash_json(cells.sampler_key(contender, 0.1, 0))
    monkeypatch.setattr(cells, name, changed)
    assert hash_json(cells.sampler_key(contender, 0.1, 0)) != before


def test_a_table_that_groups_duplicates_stays_grouped(spec: TableSpec, small: Experiment) -> None:
    grouped = spec.model_copy(update={"split": spec.split.model_copy(update={"group_duplicates": True})})
    frame = read_table(spec.source)
    path = Path(spec.source).with_name("twice.parquet")
    pd.concat([frame, frame]).to_parquet(path)
    split = Group(small, grouped.model_copy(update={"source": str(path)}), 0, "hcfe").encoded(None)
    known = {row.tobytes() for row in split.train.X}
    assert not any(row.tobytes() in known for row in split.test.X)


def test_validation_rows_can_be_judged_on_instead_of_test_rows(spec: TableSpec, small: Experiment) -> None:
    changes = {"models": ("neighbour",), "judged_on": "validation", "seeds": 1}
    chosen = small.model_copy(update=changes)
    scores = run_experiment(chosen, {"people": spec}, jobs=0)
    split = Group(chosen, spec, 0, "hcfe").encoded(None)
    on = {
        name: trial_module.run_trial(
            make_model("neighbour", seed=0), split.train, getattr(split, name), classes=split.classes
        ).value.scores.accuracy
        for name in ("validation", "test")
    }
    assert on["validation"] != on["test"]
    assert scores.loc[scores["method"] == "whole", "accuracy"].tolist() == [on["validation"]]


def test_the_pull_changes_weights_and_nothing_else(spec: TableSpec, small: Experiment) -> None:
    split = Group(small, spec, 0, "hcfe").encoded(None)

    def rows(**settings: Any) -> LabelledRows:
        contender = Contender(method="ours", settings=settings)
        made = cells.condense_split(contender, split, 0.05, 0, time_limit=60, memory_limit=8)
        assert made.rows is not None
        return made.rows

    by_default, by_source = rows(), rows(pull=1.0)
    np.testing.assert_array_equal(by_default.X, by_source.X)
    assert by_source.weights is not None
    shares = np.bincount(by_source.codes, weights=by_source.weights) / by_source.weights.sum()
    np.testing.assert_allclose(shares, np.bincount(split.train.codes) / len(split.train))
    assert by_default.weights is not None
    assert not np.allclose(by_default.weights, by_source.weights)


# The costly rivals with as little of their cost as shows that they take part.
SHORT = {
    "dm": {"steps": 3},
    "gm": {"steps": 3},
    "mtt": {"steps": 3, "experts": 1, "epochs": 3, "last_start": 1, "ahead": 1, "student_steps": 2},
}

# One experiment of every kind of figure; drawing the same kind again takes seconds and shows nothing new.
DRAWN = {load_experiment(name).show.figure: name for name in reversed(experiment_names())}


def shrunk(name: str) -> Experiment:
    """Return an experiment with one small table, one ratio, one seed, two models and a recipe of a hundred steps."""
    full = load_experiment(name)
    # Every model learns in a test of its own; two show that an experiment takes several.
    changes: dict[str, Any] = {"ratios": (0.1,), "seeds": 1, "recipe": "paper", "models": full.models[:2]}
    if full.scaling is not None:
        shape = {"rows": 1500, "columns": 10, "classes": full.scaling.shape.classes}
        changes["scaling"] = {**full.scaling.model_dump(), "shape": shape, "shares": (0.5, 1.0)}
    else:
        changes["tables"] = ("people",)
    if full.imbalance is not None:
        changes["imbalance"] = {"columns": {"people": "insured"}, "levels": full.imbalance.levels[::3]}
    changes["methods"] = [
        {**contender.model_dump(), "settings": {**contender.settings, **SHORT.get(contender.method, {})}}
        for contender in full.methods
    ]
    return Experiment.model_validate({**full.model_dump(), **changes})


@pytest.mark.slow
@pytest.mark.parametrize("name", experiment_names())
def test_a_small_version_of_every_experiment(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed_table(150, seed=3).to_parquet(tmp_path / "people.parquet")
    spec = TableSpec(name="people", source=str(tmp_path / "people.parquet"), label="outcome")
    experiment = shrunk(name)
    drawn = DRAWN[experiment.show.figure] == name
    if not drawn:
        monkeypatch.setattr(experiment_job, "experiment_exhibits", lambda *_: [])
    scores = run_experiment(experiment, {"people": spec}, jobs=0, cache_dir=tmp_path / "cache")
    assert set(scores["status"]) == {"ok"}, scores[["method", "reason"]]
    assert set(scores["method"]) - {"whole"} == {contender.method for contender in experiment.methods}
    assert set(scores["model"]) == set(experiment.models or ("",))
    out = tmp_path / "out"
    out.mkdir()
    experiment_job.write_experiment(
        experiment, scores, out, command=f"c2tc bench {name}", splits={"people": spec.split}, jobs=0
    )
    pd.testing.assert_frame_equal(pd.read_parquet(out / "scores.parquet"), scores, check_dtype=False)
    text = (out / "table.md").read_text(encoding="utf-8")
    assert experiment.title in text
    assert f"c2tc bench {name}" in text
    assert ("80 % training, 10 % validation, 10 % test rows" in text) == (experiment.scaling is None)
    # What was trained is shown.
    head = next(line for line in text.splitlines() if line.startswith("| table"))
    assert ("| whole " in head) == ("whole" in set(scores["method"])) == (experiment.whole and bool(experiment.models))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    figures = list((out / "figures").iterdir())
    assert not drawn or bool(figures) == (
        experiment.show.figure != "none" or len(set(scores["method"]) - {"whole"}) > 1
    )
    if len({contender.method for contender in experiment.methods}) > 1 and experiment.models:
        found = pd.read_parquet(out / "statistics.parquet")
        assert {"t_p_holm", "wilcoxon_p_holm"} <= set(found.columns)
