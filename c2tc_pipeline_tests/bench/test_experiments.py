"""Experiments from their grids to tidy tables."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.bench import job as experiment_job
from c2tc_pipeline.bench.experiments import cells, experiment_names
from c2tc_pipeline.bench.experiments.cells import ClassMix, Group, condense_split, run_group
from c2tc_pipeline.bench.experiments.grid import (
    PAPER_TABLES,
    Contender,
    Experiment,
    load_experiment,
)
from c2tc_pipeline.bench.experiments.runner import COLUMNS, run_experiment
from c2tc_pipeline.bench.experiments.spaces import SPACES, imbalanced_rows, is_test_row
from c2tc_pipeline.bench.limits import Outcome
from c2tc_pipeline.bench.rivals import RIVALS, ClassRival, CondensedClass
from c2tc_pipeline.bench.statistics.worth import worths
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.evaluation import trial as trial_module
from c2tc_pipeline.evaluation.models import MODELS, make_model
from c2tc_pipeline.evaluation.row_worth import random_set
from c2tc_pipeline.evaluation.trial import LabelledRows
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.spec import SplitSettings, TableSpec
from c2tc_pipeline.tables.table import learn_table
from c2tc_pipeline_tests.tools.made_tables import mixed_table

OURS_AUTO = Contender(method="ours", settings={"gamma": "auto"})
SAME_CLASSES = Contender(method="random_same_classes")
SMALL = "title: t\ntables: [a]\nratios: [0.1]\nmethods: [ours]\n"


SMALL_GRID = {
    "name": "small",
    "title": "Small",
    "tables": ["people"],
    "ratios": [0.05, 0.02],
    "methods": ["ours", "random"],
    "models": ["logistic", "neighbour"],
    "seeds": 2,
}


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> TableSpec:
    path = tmp_path_factory.mktemp("table") / "people.parquet"
    mixed_table(400, seed=3).to_parquet(path)
    return TableSpec(name="people", source=str(path), label="outcome")


@pytest.fixture(scope="module")
def small() -> Experiment:
    """Two methods and two quick models on one table."""
    return Experiment.model_validate(SMALL_GRID)


class Done(NamedTuple):
    """A finished experiment."""

    scores: pd.DataFrame
    cache: Path
    progress: list[tuple[float, float]]


@pytest.fixture(scope="module")
def done(spec: TableSpec, small: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Done:
    told: list[tuple[float, float]] = []
    cache = tmp_path_factory.mktemp("cache")
    scores = run_experiment(small, {"people": spec}, jobs=0, cache_dir=cache, progress=lambda *news: told.append(news))
    return Done(scores, cache, told)


def test_experiments_of_the_package_name_known_tables() -> None:
    for name in experiment_names():
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
        (("title: t", "title: t\nimbalance: {columns: {a: x}, levels: []}"), "field 'imbalance.levels'"),
        (("tables: [a]", "tables: [a, higgs]\njudged_on: validation"), "higgs"),
        (("title: t", "title: t\nspaces: [original]"), "original"),
        (("methods: [ours]", "methods: [{method: random, class_mix: ours}]"), "random_same_classes"),
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


def table(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "x": rng.random(rows), "y": rng.integers(0, 3, rows)})


@settings(max_examples=15, deadline=None)
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
    with pytest.raises(InputError, match="age"):
        imbalanced_rows(before, "y", "age", level, seed=seed)


def poisoned(spec: TableSpec, side: str, folder: Path) -> TableSpec:
    """Return the same table with nonsense in one side's rows: in every feature, and in the labels of test rows."""
    frame = read_table(spec.source)
    tested = is_test_row(frame, spec.label)
    rows = np.flatnonzero(tested)
    if side == "validation":
        split = SplitSettings(validation=1 / 8, test=0)
        table = learn_table(Blocks.of_frame(frame[~tested]), label=spec.label, split=split)
        rows = np.flatnonzero(~tested)[table.positions(side)]
    columns = list(frame.columns) if side == "test" else list(frame.columns.drop(spec.label))
    shuffled = frame.iloc[np.random.default_rng(7).permutation(rows)]
    for column in columns:
        frame.loc[rows, column] = shuffled[column].to_numpy()
    frame.loc[rows, "amount"] = 1e6
    path = folder / f"poisoned_{side}.parquet"
    frame.to_parquet(path)
    return spec.model_copy(update={"source": str(path)})


def test_test_rows_are_the_same_fifth_whatever_the_seed(spec: TableSpec, small: Experiment) -> None:
    first, second = (Group(small, spec, seed, "hcfe").encoded(None) for seed in (0, 1))
    np.testing.assert_array_equal(first.test.codes, second.test.codes)
    assert first.train.digest != second.train.digest
    frame = pd.DataFrame({"x": range(100_000), "y": 0})
    assert is_test_row(frame, "y").mean() == pytest.approx(0.2, abs=0.005)
    # Further rows do not move those that are there.
    np.testing.assert_array_equal(is_test_row(frame, "y")[:500], is_test_row(frame[:500], "y"))


@pytest.mark.parametrize("space", list(SPACES))
def test_no_encoder_sees_test_or_validation_rows(
    space: str, spec: TableSpec, small: Experiment, tmp_path: Path
) -> None:
    before = Group(small, spec, 0, space).encoded(None)
    for side in ("test", "validation"):
        after = Group(small, poisoned(spec, side, tmp_path), 0, space).encoded(None)
        assert after.train.digest == before.train.digest
        assert getattr(after, side).digest != getattr(before, side).digest


def test_nothing_that_is_condensed_or_chosen_depends_on_test_rows(small: Experiment, tmp_path: Path) -> None:
    # Fewer rows get no column weights.
    path = tmp_path / "large.parquet"
    mixed_table(2_400, seed=3).to_parquet(path)
    spec = TableSpec(name="people", source=str(path), label="outcome")
    made = []
    for described in (spec, poisoned(spec, "test", tmp_path)):
        both = small.model_copy(update={"spaces": ("hcfe", "original")})
        split = Group(both, described, 0, "hcfe").encoded(None)
        weights = split.condensed(Condenser(0.05))[0].summary["column_weights"]
        assert weights is not None
        chosen = condense_split(OURS_AUTO, split, 0.05, 0, time_limit=60, memory_limit=4)
        mix = ClassMix.of(chosen.rows["bare encoded"], split.classes)
        rival = condense_split(SAME_CLASSES, split, 0.05, 0, time_limit=60, memory_limit=4, mix=mix)
        rows = [rows.digest for one in (chosen, rival) for rows in one.rows.values()]
        made.append([split.visible, weights, chosen.objective, mix, *rows])
    assert made[0] == made[1]
    assert len(made[0]) == 4 + 4 + 2


def test_a_rival_with_our_classes_has_their_rows_and_weights(spec: TableSpec, small: Experiment) -> None:
    split = Group(small, spec, 0, "hcfe").encoded(None)
    limits: dict[str, Any] = {"time_limit": 60, "memory_limit": 8}
    ours = condense_split(Contender(method="ours"), split, 0.1, 0, **limits)
    mix = ClassMix.of(ours.rows["bare encoded"], split.classes)
    for method in ("random_same_classes", "minibatch_kmeans", "herding", "cluster_centroids"):
        made = condense_split(Contender(method=method), split, 0.1, 0, mix=mix, **limits)
        found = ClassMix.of(made.rows["encoded"], split.classes)
        assert found.counts == mix.counts, made.reason
        np.testing.assert_allclose(found.weights, mix.weights)
    experiment = Experiment.model_validate(
        {**SMALL_GRID, "methods": ["ours", "random", "herding"], "class_mix": ["own", "ours", "equal"]}
    )
    named = [(contender.method, contender.variant, contender.has_our_classes) for contender in experiment.contenders]
    assert named == [
        ("ours", "", False),
        ("random", "", False),
        ("herding", "", False),
        ("herding", "our classes", True),
        ("herding", "equal classes", False),
    ]
    grid = {**SMALL_GRID, "methods": ["herding"], "class_mix": ["equal"], "ratios": [0.1], "models": [], "seeds": 1}
    scores = run_experiment(Experiment.model_validate(grid), {"people": spec}, jobs=0)
    assert scores[["variant", "rows", "status"]].values.tolist() == [["equal classes", ours.size, "ok"]]


def test_original_columns_and_random_samples_are_scored(spec: TableSpec, tmp_path: Path) -> None:
    grid = {
        "methods": ["ours", "random_same_classes", "minibatch_kmeans"],
        "spaces": ["hcfe", "original"],
        "models": ["boosting", "neighbour"],
        "multiples": [0.5, 1, 5, 50],
        "most_multiple": {"neighbour": 1},
        "seeds": 2,
        "whole": 1,
    }
    experiment = Experiment.model_validate({**SMALL_GRID, "ratios": [0.05], **grid})
    scores = run_experiment(experiment, {"people": spec}, jobs=0, cache_dir=tmp_path)
    assert set(scores["status"]) == {"ok"}
    done = set(zip(scores["method"], scores["space"], scores["model"], strict=True))
    for method in ("ours", "random_same_classes", "random_x0.5", "random", "random_x5", "whole"):
        assert (method, "original", "boosting") in done
        assert (method, "original", "neighbour") not in done
        assert ((method, "hcfe", "neighbour") in done) == (method != "random_x5")
    # Means have no source columns, and fifty times a twentieth of the rows are not there.
    assert not {("minibatch_kmeans", "original", "boosting"), ("random_x50", "hcfe", "boosting")} & done
    assert scores.loc[scores["method"] == "whole", "seed"].unique().tolist() == [0]
    found = worths(scores, ["auc"])
    assert set(found["contender"]) == {"ours", "random_same_classes", "minibatch_kmeans"}
    assert found["share"].between(0.3, 1.5).all()


def test_training_rows_are_drawn_from_a_condensed_table(spec: TableSpec, small: Experiment) -> None:
    experiment = small.model_copy(update={"spaces": ("hcfe", "original")})
    split = Group(experiment, spec, 0, "hcfe").encoded(None)
    drawn, bare = (
        condense_split(Contender(method="ours", settings={"drawn": d}), split, 0.05, 0, time_limit=60, memory_limit=8)
        for d in (True, False)
    )
    size = round(0.05 * len(split.train))
    assert drawn.size == bare.size == size
    for kind in ("encoded", "original"):
        assert len(bare.rows[kind]) == size < len(drawn.rows[kind])
        assert drawn.rows[kind].weights is not None
        np.testing.assert_array_equal(drawn.rows[f"bare {kind}"].codes, bare.rows[kind].codes)


def test_a_trained_model_looks_at_the_test_rows_once(
    spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[tuple[str, int]] = []
    test_rows = len(Group(small, spec, 0, "hcfe").encoded(None).test)

    def watched(name: str, **settings: Any) -> Any:
        model = make_model(name, **settings)
        for what in ("fit", "predict_proba"):
            real = getattr(model, what)

            def look(X: Any, *rest: Any, what: str = what, real: Any = real, **named: Any) -> Any:
                looks.append((what, len(X)))
                return real(X, *rest, **named)

            monkeypatch.setattr(model, what, look)
        return model

    monkeypatch.setattr(cells, "make_model", watched)
    results = run_group(Group(small, spec, 0, "hcfe"), cache_dir=None)
    trained = [result for result in results if result["status"] == "ok"]
    assert len(trained) == 2 * (1 + 2 * 2)
    assert [what for what, _ in looks] == ["fit", "predict_proba"] * len(trained)
    assert {rows for what, rows in looks if what == "predict_proba"} == {test_rows}
    assert test_rows not in {rows for what, rows in looks if what == "fit"}


TIMES = ["condense_seconds", "fit_seconds"]


def test_one_row_a_trained_model(done: Done) -> None:
    scores = done.scores
    assert list(scores.columns) == list(COLUMNS)
    # Two seeds and two models of two methods at two ratios, and of the whole table.
    assert len(scores) == 2 * 2 * (2 * 2 + 1)
    assert not scores.duplicated(["method", "ratio", "model", "split"]).any()
    assert set(scores["status"]) == {"ok"}
    assert scores[["accuracy", "macro_f1"]].notna().all(axis=None)
    rows = scores.loc[scores["method"] == "whole", "rows"]
    assert rows.between(0.65 * 400, 0.75 * 400).all()
    assert scores.loc[scores["ratio"] == 0.05, "rows"].eq(round(0.05 * rows.iloc[0])).all()
    assert scores.loc[scores["method"] == "ours", "objective"].gt(0).all()
    parts = [part for part, _ in done.progress]
    assert parts == sorted(parts)
    assert parts[0] == 0
    assert parts[-1] == done.progress[-1][1]


@pytest.mark.slow
def test_processes_find_the_same(spec: TableSpec, small: Experiment, done: Done) -> None:
    short = small.model_copy(update={"models": ("neighbour",), "ratios": (0.05,)})
    here = done.scores[(done.scores["model"] == "neighbour") & (done.scores["ratio"] != 0.02)].reset_index(drop=True)
    there = run_experiment(short, {"people": spec}, jobs=2)
    pd.testing.assert_frame_equal(here.drop(columns=TIMES), there.drop(columns=TIMES))


def test_what_is_done_is_not_done_again(
    spec: TableSpec, small: Experiment, done: Done, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(cells, "run_limited", never)
    monkeypatch.setattr(trial_module, "score_predictions", never)
    again = run_experiment(small, {"people": spec}, jobs=0, cache_dir=done.cache)
    pd.testing.assert_frame_equal(done.scores, again)


def counting(monkeypatch: pytest.MonkeyPatch, stop: int = 0) -> list[int]:
    """Return a list that grows with every condensation; the one of number ``stop`` is interrupted."""
    calls: list[int] = []
    real = cells.run_limited

    def counted(*args: Any, **rest: Any) -> Any:
        calls.append(1)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return real(*args, **rest)

    monkeypatch.setattr(cells, "run_limited", counted)
    return calls


def test_an_experiment_that_was_stopped_goes_on(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = small.model_copy(update={"models": ("neighbour",)})
    calls = counting(monkeypatch, stop=4)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(short, {"people": spec}, jobs=0, cache_dir=tmp_path)
    scores = run_experiment(short, {"people": spec}, jobs=0, cache_dir=tmp_path)
    # Eight condensations in all: three were done before the stop, the fourth was lost.
    assert len(calls) == 3 + 1 + 5
    assert set(scores["status"]) == {"ok"}


@pytest.mark.parametrize("status", ["OOT", "OOM"])
def test_too_little_time_or_memory_ends_in_a_row(
    spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    short: dict[str, Any] = {"seeds": 1, "models": ("neighbour",)}
    if status == "OOT":
        short["time_limit"] = 1e-4
    else:
        monkeypatch.setattr(cells, "_condense", lambda *_: np.ones(10**10))
    scores = run_experiment(small.model_copy(update=short), {"people": spec}, jobs=0)
    ours = scores[scores["method"] == "ours"]
    assert ours["status"].tolist() == [status] * 2
    assert ours[["accuracy", "macro_f1"]].isna().all(axis=None)
    assert ours["reason"].str.len().gt(0).all()
    assert set(scores.loc[scores["method"] == "whole", "status"]) == {"ok"}


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
    spec: TableSpec, small: Experiment, done: Done, tmp_path: Path
) -> None:
    shutil.copytree(done.cache, tmp_path / "cache")
    tight = small.model_copy(update={"time_limit": 1e-9})
    scores = run_experiment(tight, {"people": spec}, jobs=0, cache_dir=tmp_path / "cache")
    assert set(scores.loc[scores["method"] != "whole", "status"]) == {"OOT"}


def test_seconds_that_count_are_not_looked_up(
    spec: TableSpec, small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counting(monkeypatch)
    timed = small.model_copy(update={"timed": True, "seeds": 1, "models": ("neighbour",)})
    for runs in (1, 2):
        run_experiment(timed, {"people": spec}, jobs=0, cache_dir=tmp_path)
        assert len(calls) == 4 * runs


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
    changes = {"models": ("neighbour",), "methods": small.methods[1:], "judged_on": "validation", "seeds": 1}
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
        return made.rows["bare encoded"]

    by_default, by_source = rows(), rows(pull=1.0)
    np.testing.assert_array_equal(by_default.X, by_source.X)
    assert by_source.weights is not None
    shares = np.bincount(by_source.codes, weights=by_source.weights) / by_source.weights.sum()
    np.testing.assert_allclose(shares, np.bincount(split.train.codes) / len(split.train))
    assert by_default.weights is not None
    assert not np.allclose(by_default.weights, by_source.weights)


# The costly rivals with as little of their cost as shows that they take part.
SHORT = {
    "dm": {"steps": 1},
    "gm": {"steps": 1},
    "mtt": {"steps": 1, "experts": 1, "epochs": 1, "last_start": 0, "ahead": 1, "student_steps": 2},
}

# These take the way of another: gamma that of decay, columns that of rows, and learnt rows that of overall.
ALIKE = {"gamma", "scaling-columns", "matching"}
# One experiment of every kind of figure; drawing the same kind again takes seconds and shows nothing new.
DRAWN = {load_experiment(name).show.figure: name for name in sorted({*experiment_names()} - ALIKE)}


def shrunk(name: str) -> Experiment:
    """Return an experiment with one small table, one ratio, one seed, two models and a recipe of a hundred steps."""
    full = load_experiment(name)
    # Every model learns in a test of its own; two quick ones show that an experiment takes several.
    models = full.models[:2] if "original" in full.spaces else ("logistic", "neighbour")[: len(full.models)]
    changes: dict[str, Any] = {"ratios": (0.1,), "seeds": 1, "recipe": "paper", "models": models}
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
@pytest.mark.parametrize("name", sorted({*experiment_names()} - ALIKE))
def test_a_small_version_of_every_experiment(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed_table(150, seed=3).to_parquet(tmp_path / "people.parquet")
    spec = TableSpec(name="people", source=str(tmp_path / "people.parquet"), label="outcome")
    experiment = shrunk(name)
    drawn = DRAWN[experiment.show.figure] == name
    if not drawn:
        monkeypatch.setattr(experiment_job, "experiment_exhibits", lambda *_: [])
    scores = run_experiment(experiment, {"people": spec}, jobs=0, cache_dir=tmp_path / "cache")
    assert set(scores["status"]) == {"ok"}, scores[["method", "reason"]]
    samples = {random_set(multiple) for multiple in experiment.multiples}
    methods = {contender.method for contender in experiment.methods}
    assert methods <= set(scores["method"]) - {"whole"} <= methods | samples
    assert set(scores["model"]) == set(experiment.models or ("",))
    out = tmp_path / "out"
    out.mkdir()
    experiment_job.write_experiment(experiment, scores, out, command=f"c2tc bench {name}", jobs=0)
    pd.testing.assert_frame_equal(pd.read_parquet(out / "scores.parquet"), scores, check_dtype=False)
    text = (out / "table.md").read_text(encoding="utf-8")
    assert experiment.title in text
    assert f"c2tc bench {name}" in text
    assert ("70 % training, 10 % validation rows" in text) == (experiment.scaling is None)
    # What was trained is shown.
    head = next(line for line in text.splitlines() if line.startswith("| table"))
    whole = "whole" in set(scores["method"])
    assert whole == (experiment.whole and bool(experiment.models))
    assert experiment.show.figure == "worth" or ("| whole " in head) == whole
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    figures = list((out / "figures").iterdir())
    assert not drawn or bool(figures) == (
        experiment.show.figure != "none" or len(set(scores["method"]) - {"whole"}) > 1
    )
    if len(methods) > 1 and experiment.models and ("ours", "") in {(c.method, c.variant) for c in experiment.methods}:
        found = pd.read_parquet(out / "statistics.parquet")
        assert {"t_p_holm", "wilcoxon_p_holm"} <= set(found.columns)


class FirstRows(ClassRival):
    """Keep the first rows of each class."""

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        return CondensedClass(chosen=np.arange(count))


class CommonestClass:
    """Predict the most frequent class."""

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CommonestClass:
        self.commonest_ = np.bincount(y).argmax()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.commonest_)


def test_a_rival_and_a_model_from_outside_need_one_line_each(spec: TableSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RIVALS, "first", FirstRows)
    monkeypatch.setitem(MODELS, "commonest", CommonestClass)
    changes = {"methods": ["ours", "first"], "models": ["commonest"], "seeds": 1}
    scores = run_experiment(Experiment.model_validate({**SMALL_GRID, **changes}), {"people": spec}, jobs=0)
    assert set(scores["status"]) == {"ok"}
    assert set(scores["method"]) == {"ours", "first", "whole"}
    assert set(scores["model"]) == {"commonest"}
