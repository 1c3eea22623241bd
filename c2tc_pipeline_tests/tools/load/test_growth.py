"""What grows with the catalogue grows in proportion, and a step does not notice how many other tables there are.

Counted are operations, not seconds: calls, statements to the database and records that it hands out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.tables import catalogue as catalogues
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline_tests.pipeline.toy_pipeline import record_everything, toy_catalogue
from c2tc_pipeline_tests.tools.load.catalogues import Tick, make_catalogue, sensor_ticks, step_begin

SIZES = (1, 2, 4)
STEPS = ("encoded_table", "condensed_table", "evaluation_scores")

Looks = dict[str, Tick]


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> list[Looks]:
    """What is asked of instances in which everything was made, for catalogues of growing size."""
    found = []
    for size in SIZES:
        folder = tmp_path_factory.mktemp("tables")
        catalogue = toy_catalogue(folder, *(f"table_{number}" for number in range(size)), ratios=(0.1,))
        with dg.DagsterInstance.ephemeral() as instance:
            record_everything(instance, catalogue)
            asked = [
                *sensor_ticks(instance, catalogue),
                *(step_begin(instance, catalogue, asset) for asset in STEPS),
            ]
        assert not any(tick.requested for tick in asked)
        found.append({tick.name: tick for tick in asked})
    return found


def in_proportion(counts: list[int]) -> bool:
    """Tell whether something grows by at most twice as much when the growth of the catalogue doubles."""
    few, more, many = counts
    return many - more <= 2 * (more - few)


@pytest.mark.parametrize("kind", ["statements", "records"])
def test_ticks_ask_in_proportion_to_the_catalogue(looks: list[Looks], kind: str) -> None:
    wrong = {
        name: counts for name in looks[0] if not in_proportion(counts := [getattr(each[name], kind) for each in looks])
    }
    assert wrong == {}


def test_a_tick_without_news_asks_as_much_of_a_large_catalogue_as_of_a_small_one(looks: list[Looks]) -> None:
    quiet = [name for name in looks[0] if name.startswith(("source_sensor, later", "out_of_date_sensor, later"))]
    assert len(quiet) == 2
    for name in quiet:
        assert len({each[name].statements for each in looks}) == 1


@pytest.mark.parametrize("asset", STEPS)
def test_a_step_asks_for_its_own_table_only(looks: list[Looks], asset: str) -> None:
    asked = {(each[f"step of {asset}"].statements, each[f"step of {asset}"].records) for each in looks}
    [(statements, records)] = asked
    assert statements > 0
    assert records > 0


@contextmanager
def calls() -> Iterator[Callable[[], int]]:
    """Count the calls of Python functions in this thread."""
    so_far = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal so_far
        so_far += event == "call"

    sys.setprofile(count)
    try:
        yield lambda: so_far
    finally:
        sys.setprofile(None)


def test_definitions_load_in_proportion_to_the_catalogue(tmp_path: Path) -> None:
    counts = []
    for size in (1, 3, 6, 12):  # the first one fills caches of Dagster
        make_catalogue(tmp_path / str(size), size)
        # As in a new process, which has not parsed it yet.
        catalogues._parsed.cache_clear()
        with calls() as number:
            catalogue = load_catalogue(tmp_path / str(size) / "catalog.yaml")
            build_defs(catalogue, storage=str(tmp_path / "store")).get_repository_def().get_all_jobs()
            counts.append(number())
    few, more, many = counts[1:]
    assert more - few > 100
    # A little more than in proportion: dictionaries and lists grow by leaps.
    assert many - more <= 2.1 * (more - few), counts
