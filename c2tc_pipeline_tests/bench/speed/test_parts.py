"""Every part on tables small enough for a test: that it measures what it says, not how fast."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c2tc_pipeline.bench.speed.autoencoder import measure_autoencoder
from c2tc_pipeline.bench.speed.bench import Bench
from c2tc_pipeline.bench.speed.network_training import time_training
from c2tc_pipeline.bench.speed.noise import NoiseProbe
from c2tc_pipeline.bench.speed.rivals import measure_rivals
from c2tc_pipeline.bench.speed.row import SpeedRow
from c2tc_pipeline.bench.speed.search import AUTHORS, geometric_mean, measure_search
from c2tc_pipeline.bench.speed.stages import measure_stages
from c2tc_pipeline.bench.speed.tables import SpeedTable
from c2tc_pipeline.bench.speed.throughput import StepShape, measure_throughput
from c2tc_pipeline.bench.speed.whole import measure_whole
from c2tc_pipeline.cli.job import condense_to_directory
from c2tc_pipeline.common.memory import peak_growth
from c2tc_pipeline.common.optimisers import Sgd
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.models.network import MlpClassifier
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table


@pytest.fixture
def bench() -> Bench:
    return Bench(repeats=2, probe=NoiseProbe(lambda: None))


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
    stages = ["read", "validate", "prepare", "encode", "curves", "allocate", "cluster", "decode", "write"]
    assert list(seconds) == [*stages, "from file to files"]
    assert all(row.repeats == 2 for row in rows[:-1])
    # The median of two is their mean, so that what is within the whole is less than the whole.
    assert sum(seconds[name] for name in stages if name != "validate") <= seconds["from file to files"]
    memory = rows[-1]
    assert memory.unit == "times the encoded matrix"
    assert memory.amount is not None
    assert memory.holds == (memory.amount <= 1.5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made.parquet"]


def test_the_search_is_compared_with_both_references(tmp_path: Path, bench: Bench) -> None:
    rows = list(measure_search([made_table(tmp_path)], bench, ratios=(0.05, 0.1)))
    single, means = rows[:-4], rows[-4:]
    assert len(single) == 2 * len(AUTHORS) * 4
    for row in single:
        complete(row)
        assert not row.at_least
        assert row.objective is not None
        assert row.reference_objective is not None
    # Without a cap and with one that no class reaches it is the same search.
    objectives = {row.reference: row.reference_objective for row in single if row.ratio == 0.05}
    assert len(objectives) == 2
    assert len(set(objectives.values())) == 1
    for mean in means:
        named = [r for r in single if f"{r.what}, geometric mean" == mean.what and r.reference == mean.reference]
        product = math.prod(row.times_faster or math.nan for row in named)
        assert mean.times_faster == pytest.approx(product ** (1 / len(named)))
        assert mean.aim


def test_a_search_that_is_cut_off_is_a_lower_bound(tmp_path: Path) -> None:
    ticks = iter(range(10**6))
    bench = Bench(repeats=1, time_limit=1.5, clock=lambda: next(ticks), probe=NoiseProbe(lambda: None))
    rows = list(measure_search([made_table(tmp_path)], bench, ratios=(0.05,)))
    assert all(row.at_least for row in rows)
    assert rows[0].reference_objective is None
    assert "stopped after 0 of its proposals, 1 k-means runs" in rows[0].note
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
    adult, diabetes, dense = measure_autoencoder(tables, bench, epochs=2)
    assert (adult.reference_seconds, diabetes.reference_seconds) == (6.8, 46.3)
    assert dense.table == "diabetes130us"
    complete(dense)
    assert dense.amount is not None
    assert dense.amount == diabetes.amount
    assert dense.reference_amount is not None
    assert "did 2 of 2 epochs" in dense.note
    # The same training but for rounding, which does not lead far in two epochs.
    first = re.search(r"losses of the first epoch: (\S+) and (\S+);", dense.note)
    assert first is not None
    assert float(first[1]) == pytest.approx(float(first[2]), rel=2e-2)
    others = re.search(r"sums in other orders ends at ([^;]+);", dense.note)
    assert others is not None
    assert [float(loss) for loss in others[1].split(", ")] == pytest.approx([dense.amount] * 3, rel=2e-2)


def test_the_throughput_is_the_work_by_the_time(bench: Bench) -> None:
    [row] = measure_throughput(bench, steps=[StepShape(4, 10, rows=500, least_share=0.6)])
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
        assert row.aim == f"{aim} x"
    _, default, paper = rows
    assert default.reference.endswith("recipe default")
    assert default.note.startswith("100 epochs, 400 steps of up to 64 rows; reading")
    assert paper.reference.endswith("recipe paper")
    assert paper.note.startswith("100 epochs, 100 steps of up to 2,048 rows; 3 epochs were timed, the others reckoned")


def test_epochs_that_are_not_timed_count_as_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that counts a second for a step and one for a start, the sum is what the whole training takes."""
    seconds = 0.0

    def spend(method: Callable[..., Any]) -> Callable[..., Any]:
        def spent(*arguments: Any, **settings: Any) -> Any:
            nonlocal seconds
            seconds += 1
            return method(*arguments, **settings)

        return spent

    monkeypatch.setattr(Sgd, "step", spend(Sgd.step))
    monkeypatch.setattr(MlpClassifier, "build", spend(MlpClassifier.build))
    bench = Bench(repeats=1, clock=lambda: seconds, probe=NoiseProbe(lambda: None))
    # Three steps an epoch.
    X, codes = np.random.default_rng(0).random((5_000, 2)), np.arange(5_000) % 2
    reckoned = time_training(bench, X, codes, recipe="paper", epochs=2)
    assert seconds == 1 + 1 + 2 * 3
    whole = time_training(bench, X, codes, recipe="paper")
    assert reckoned.seconds == whole.seconds == 1 + 100 * 3
    assert "reckoned" in reckoned.done
    assert "reckoned" not in whole.done
    with pytest.raises(ValueError, match="does not end with its epochs"):
        time_training(bench, X[:100], codes[:100], recipe="default", epochs=2)


def test_rivals_are_stopped_at_the_limit(tmp_path: Path) -> None:
    table = made_table(tmp_path)
    patient = Bench(repeats=1, probe=NoiseProbe(lambda: None))
    through_each = list(measure_rivals(table, patient, ratio=0.05, names=["dm"], steps=2))
    assert [row.reference for row in through_each] == ["DM, relay FT-Transformer, as in the paper", "DM, relay MLP"]
    for done in through_each:
        complete(done)
        assert not done.at_least
    hasty = Bench(repeats=1, time_limit=1e-9, probe=NoiseProbe(lambda: None))
    [stopped] = measure_rivals(table, hasty, ratio=0.05, names=["dm"], relays=["mlp"])
    assert stopped.at_least
    assert stopped.holds is not False
    assert "took longer than its limit" in stopped.note


def test_a_rival_without_memory_has_no_time(tmp_path: Path, bench: Bench) -> None:
    [row] = measure_rivals(made_table(tmp_path), bench, ratio=0.05, names=["dm"], relays=["mlp"], memory_limit=1.0)
    assert row.times_faster is None
    assert row.holds is None
    assert "more than its limit" in row.note


def test_peak_memory_sees_what_was_freed_again() -> None:
    _, grown = peak_growth(lambda: float(np.ones(20_000_000).sum()))
    assert 100_000_000 < grown < 400_000_000
