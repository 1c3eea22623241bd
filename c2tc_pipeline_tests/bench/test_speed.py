"""The parts of the speed benchmark, its references, a run as a whole, and its document, table and figures."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.bench.experiments.spaces import string_categories
from c2tc_pipeline.bench.reports.speed import speed_markdown, write_speed
from c2tc_pipeline.bench.speed import search
from c2tc_pipeline.bench.speed.autoencoder import measure_autoencoder, train_dense
from c2tc_pipeline.bench.speed.measuring import Bench, SpeedRow, reaches, spread, to_frame
from c2tc_pipeline.bench.speed.run import (
    SpeedRun,
    SpeedTable,
    StepShape,
    measure_rivals,
    measure_stages,
    measure_throughput,
    measure_whole,
    time_training,
)
from c2tc_pipeline.bench.speed.search import AUTHORS, cold_loss, geometric_mean, measure_search, printed_search
from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.common.optimisers import Sgd
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings
from c2tc_pipeline.evaluation.models.network import MlpClassifier
from c2tc_pipeline.evaluation.training import RECIPES
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table


def ticking(durations: Iterable[float]) -> Callable[[], float]:
    """Return a clock on which the calls of a stopwatch last as long as given, one after the other."""
    times = [0.0]
    for duration in durations:
        times += [times[-1] + duration, times[-1] + duration]
    told = iter(times)
    return lambda: next(told)


def test_the_median_is_taken() -> None:
    calls = itertools.count(1)
    timed = Bench(repeats=3, clock=ticking([5.0, 1.0, 2.0])).time(lambda: next(calls))
    assert timed.value == 3
    assert timed.times == pytest.approx((5.0, 1.0, 2.0))
    assert timed.seconds == pytest.approx(2.0)
    assert list(spread(timed.times).values()) == pytest.approx([3, 2.0, 1.0, 5.0])


def test_an_aim_that_a_cut_off_reference_may_still_reach_is_not_missed() -> None:
    told = [reaches(*given) for given in ((41, 40, True), (39, 40, True), (39, 40, False), (None, 40, False))]
    assert told == [True, None, False, None]


@pytest.fixture
def classes() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.random((n, 3)) for n in (120, 40, 9)]


def squared_distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return ((rows[:, None] - centres[None]) ** 2).sum(axis=2)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_follows_the_printed_rules(classes: list[np.ndarray], seed: int) -> None:
    sizes, budget, gamma = np.array([120, 40, 9]), 14, 0.25

    def objective(counts: np.ndarray) -> float:
        total = 0.0
        for rows, k in zip(classes, counts, strict=True):
            fitted = KMeans(int(k), n_init=1, max_iter=100, random_state=seed).fit(rows)
            total += squared_distances(rows, fitted.cluster_centers_).min(axis=1).sum() / len(rows) ** gamma
        return total

    upper = np.minimum(budget - 2, sizes)
    rng = np.random.default_rng(seed)
    visited = [proportional_counts(sizes, budget, upper)]
    values = [objective(visited[0])]
    limit = max(int(np.std(visited[0])), 1)
    for _ in range(10):
        # From wherever the search stands, better or worse; the step shrinks when a proposal is the best so far.
        following = HfilsAllocator().propose(visited[-1], upper, limit, rng)
        assert following is not None
        value = objective(following)
        if value < min(values):
            limit = max(limit // 2, 1)
        visited.append(following)
        values.append(value)
    found = printed_search(classes, budget, gamma, seed=seed)
    assert found.objective == pytest.approx(min(values))
    assert found.counts.tolist() == visited[int(np.argmin(values))].tolist()
    assert found.proposals == 10
    assert found.finished
    assert found.runs == len({(c, k) for counts in visited for c, k in enumerate(counts.tolist())})


def test_the_capped_search_trains_on_few_rows_and_is_judged_on_all(
    classes: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[tuple[int, int, Any]] = []

    class Watched(KMeans):
        def fit(self, X: np.ndarray, y: Any = None, sample_weight: Any = None) -> Any:
            fits.append((self.n_clusters, len(X), self))
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(search, "KMeans", Watched)
    assert printed_search(classes, 12, 0.25, points=4).finished
    assert all(rows <= 4 * k for k, rows, _ in fits)
    # The class of nine rows is never sampled, that of 120 always is.
    assert {rows == 4 * k for k, rows, _ in fits} == {True, False}
    fits.clear()
    loss = cold_loss(classes[0], 5, 4, 0)
    [(k, rows, model)] = fits
    assert (k, rows) == (5, 20)
    assert loss == pytest.approx(squared_distances(classes[0], model.cluster_centers_).min(axis=1).sum())


@pytest.mark.parametrize(("limit", "runs"), [(1.5, 1), (4.5, 4)])
def test_the_time_ends_it_between_two_runs(classes: list[np.ndarray], limit: float, runs: int) -> None:
    ticks = iter(range(1000))
    found = printed_search(classes, 12, 0.25, time_limit=limit, clock=lambda: next(ticks))
    assert not found.finished
    assert found.runs == runs
    # Three classes: less than three runs are no objective, and three are that of the start.
    assert (found.objective is None) == (runs < 3)
    if found.objective is not None:
        start = printed_search(classes, 12, 0.25, patience=0)
        assert found.objective == start.objective
        assert found.proposals == 0


def test_a_dense_autoencoder_learns_until_the_time_limit() -> None:
    tables = [np.eye(size, dtype=np.float32) for size in (4, 3)]
    categories = np.random.default_rng(0).integers(0, 3, (400, 2))
    settings = AutoencoderSettings(latent=2, hidden=8, epochs=8, batch_size=2)
    losses = train_dense(tables, categories, settings)
    assert len(losses) == 8
    assert losses[-1] < 0.8 * losses[0]
    ticks = iter(range(100))
    assert len(train_dense(tables, categories, settings, time_limit=3.5, clock=lambda: next(ticks))) == 3


@pytest.fixture
def bench() -> Bench:
    return Bench(repeats=2)


def made_table(folder: Path, name: str = "made", *, rows: int = 300, words: bool = False) -> SpeedTable:
    path = folder / f"{name}.parquet"
    mixed_table(rows, words=words).to_parquet(path)
    return SpeedTable(TableSpec(name=name, source=str(path), label="outcome"))


def from_file(spec: TableSpec, out: Path, ratio: float) -> CondensedTable:
    return condense_to_directory(spec, out, name=spec.name, ratio=ratio)


def complete(row: SpeedRow) -> None:
    """Assert what holds for every comparison that came to its end."""
    assert row.seconds is not None
    assert row.seconds_least is not None
    assert row.seconds_most is not None
    assert 0 < row.seconds_least <= row.seconds <= row.seconds_most
    assert row.reference_seconds is not None
    assert row.times_faster == pytest.approx(row.reference_seconds / row.seconds)


def test_the_stages_are_those_of_the_command(tmp_path: Path, bench: Bench) -> None:
    rows = list(measure_stages(made_table(tmp_path), bench, condense_file=from_file, ratio=0.05))
    seconds = {row.what: row.seconds for row in rows if row.seconds is not None}
    stages = ["read", "prepare", "encode", "weigh", "curves", "allocate", "cluster", "decode", "write"]
    assert list(seconds) == [*stages, "from file to files"]
    assert all(row.repeats == 2 for row in rows[:-1])
    # The median of two is their mean, so that what is within the whole is less than the whole.
    assert sum(seconds[name] for name in stages) <= seconds["from file to files"]
    memory = rows[-1]
    assert memory.unit == "times the encoded matrix"
    assert memory.amount is not None
    assert memory.holds == (memory.amount <= 1.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.parquet"]


def test_the_search_is_compared_with_both_references(tmp_path: Path, bench: Bench) -> None:
    rows = list(measure_search({"made": made_table(tmp_path).encoded}, bench, ratios=(0.05, 0.1)))
    assert len(rows) == 2 * len(AUTHORS) * 4 + 4
    for row in rows[:-4]:
        complete(row)
        assert not row.at_least
    # Without a cap and with one that no class reaches it is the same search.
    objectives = {row.reference: row.reference_objective for row in rows[:-4] if row.ratio == 0.05}
    assert len(objectives) == 2
    assert len(set(objectives.values())) == 1


def test_a_search_that_is_cut_off_is_a_lower_bound(tmp_path: Path) -> None:
    ticks = iter(range(10**6))
    bench = Bench(repeats=1, time_limit=1.5, clock=lambda: next(ticks))
    rows = list(measure_search({"made": made_table(tmp_path).encoded}, bench, ratios=(0.05,)))
    assert all(row.at_least for row in rows)
    assert rows[0].reference_objective is None
    assert rows[-1].holds is not True


def test_one_worse_objective_misses_the_aim() -> None:
    row = {"part": "search", "what": "optimal", "reference": "theirs", "seconds": 1.0, "reference_seconds": 99.0}
    better = SpeedRow(**row, objective=1.0, reference_objective=1.1)  # type: ignore[arg-type]
    worse = SpeedRow(**row, objective=1.2, reference_objective=1.1)  # type: ignore[arg-type]
    untold = SpeedRow(**row, objective=1.2, at_least=True)  # type: ignore[arg-type]
    assert geometric_mean([better, better], 40).holds is True
    assert geometric_mean([better, worse], 40).holds is False
    assert geometric_mean([better, untold], 40).holds is None
    assert geometric_mean([untold, worse], 40).holds is False


def test_the_autoencoder_stands_beside_the_paper_and_the_dense_one(tmp_path: Path, bench: Bench) -> None:
    tables = [made_table(tmp_path, name, words=True) for name in ("adult", "diabetes130us")]
    columns = {table.spec.name: string_categories(table.frame, table.spec) for table in tables}
    *beside_the_paper, dense = measure_autoencoder(columns, bench, epochs=2)
    assert all(row.reference_seconds for row in beside_the_paper)
    complete(dense)
    assert (dense.table, dense.amount) == ("diabetes130us", beside_the_paper[-1].amount)


def test_the_throughput_is_the_work_by_the_time(bench: Bench) -> None:
    [row] = measure_throughput(bench, steps=[StepShape(4, 10, rows=500, min_share=0.6)])
    complete(row)
    assert row.seconds is not None
    assert row.amount is not None
    assert row.reference_amount is not None
    assert row.amount * row.seconds == pytest.approx(2 * 4 * 10 * 500 / 1e9)
    assert row.holds == (row.amount >= 0.6 * row.reference_amount)


def test_the_whole_is_compared_with_centroids_and_a_network(tmp_path: Path, bench: Bench) -> None:
    table = made_table(tmp_path, rows=200)
    rows = list(measure_whole(table, bench, condense_file=from_file, ratio=0.05))
    for row, aim in zip(rows, (2, 10, 10), strict=True):
        complete(row)
        assert row.times_faster is not None
        assert row.holds == (row.times_faster >= aim)


def test_epochs_that_are_not_timed_count_as_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that counts a second for a step and one for a start, the sum is what the whole training takes."""
    seconds = 0.0

    def spend(method: Callable[..., Any]) -> Callable[..., Any]:
        def spent(*arguments: Any, **settings: Any) -> Any:
            nonlocal seconds
            seconds += 1
            return method(*arguments, **settings)

        return spent

    monkeypatch.setitem(RECIPES, "paper", dataclasses.replace(RECIPES["paper"], epochs=10))
    monkeypatch.setattr(Sgd, "step", spend(Sgd.step))
    monkeypatch.setattr(MlpClassifier, "build", spend(MlpClassifier.build))
    bench = Bench(repeats=1, clock=lambda: seconds)
    # Three steps an epoch.
    X, codes = np.random.default_rng(0).random((5_000, 2)), np.arange(5_000) % 2
    extrapolated, _, described = time_training(bench, X, codes, recipe="paper", epochs=2)
    assert seconds == 1 + 1 + 2 * 3
    whole, _, _ = time_training(bench, X, codes, recipe="paper")
    assert extrapolated == whole == 1 + 10 * 3
    assert "extrapolated" in described
    with pytest.raises(ValueError, match="default"):
        time_training(bench, X[:100], codes[:100], recipe="default", epochs=2)


def test_rivals_are_stopped_at_the_limit_or_without_memory(tmp_path: Path) -> None:
    table = made_table(tmp_path)
    through_each = list(measure_rivals(table, Bench(repeats=1), ratio=0.05, names=["dm"], steps=2))
    assert len(through_each) == 2
    for done in through_each:
        complete(done)
        assert not done.at_least
    [stopped] = measure_rivals(table, Bench(repeats=1, time_limit=1e-9), ratio=0.05, names=["dm"], relays=["mlp"])
    assert stopped.at_least
    assert stopped.holds is not False
    [row] = measure_rivals(table, Bench(repeats=1), ratio=0.05, names=["dm"], relays=["mlp"], memory_limit=1.0)
    assert row.times_faster is None
    assert row.holds is None


MACHINE = {"cores": 2, "processor": "an *abacus*", "system": "", "python": "3", "versions": {}, "torch_threads": 2}


SETTINGS = {"repeats": 3, "time_limit": 300.0}


@pytest.fixture
def done() -> SpeedRun:
    compared: dict[str, Any] = {"reference": "theirs", "reference_seconds": 30.0, "at_least": True, "aim": "40 x"}
    objectives: dict[str, Any] = {"objective": 7.0, "reference_objective": 8.0}
    rows = [
        SpeedRow(part="stages", table="covertype", what="read|it", seconds=1.5, note="cold"),
        SpeedRow(part="search", table="jannis", what="optimal", seconds=0.5, holds=True, **compared, **objectives),
        SpeedRow(part="whole", what="all", seconds=3.0, reference="MLP", reference_seconds=2.0, aim="2 x", holds=False),
        SpeedRow(part="rivals", what="ours", seconds=3.0, reference="DM", aim="100 x"),
    ]
    return SpeedRun(to_frame(rows), MACHINE, SETTINGS)


def test_the_files_say_what_holds_and_have_pictures_of_comparisons(done: SpeedRun, tmp_path: Path) -> None:
    text = speed_markdown(done)
    lines = {line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("| ") and "---" not in line}
    holds = {what: [cell.strip() for cell in line.split(" | ")][8] for what, line in lines.items()}
    assert (holds["optimal"], holds["all"], holds["ours"]) == ("yes", "no", "can't be judged")
    assert r"read\|it" in lines
    write_speed(done, tmp_path)
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {"search", "whole"}
    assert (tmp_path / "figures/search.png").read_bytes()[:4] == b"\x89PNG"
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "speed.parquet"), done.rows)
    facts = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    assert facts["machine"]["cores"] == 2
    assert "(figures/search.png)" in (tmp_path / "speed.md").read_text(encoding="utf-8")
