"""A part of the kill matrix; all of it is ``make reliability``, whose result is in ``docs/reliability.md``."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline_tests.pipeline.pipeline_rig import PARTS, Rig
from c2tc_pipeline_tests.tools.reliability.kill_matrix import run_chain, undisturbed_run

MOMENTS = {
    "raw_table": "before the read",
    "validated_table": "half through the work",
    "encoder": "in the middle of writing",
    "encoded_table": "between data and manifest",
    "cluster_allocation": "between manifest and event",
    "condensed_table": "with half a manifest written",
    "training_rows": "a quarter through the work",
    "evaluation_scores": "after the event",
    "report": "after the read",
    "leaderboard": "three quarters through the work",
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return undisturbed_run(tmp_path_factory.mktemp("undisturbed") / "rig")


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    ("moment", "jobs", "kills", "leftovers", "made_twice"),
    [
        (MOMENTS, [*PARTS], 10, 4, 2),
        ("in the middle of writing to the cache", ["ingest"], 1, 1, 0),
    ],
    ids=["mixed", "cache"],
)
def test_kills_lose_nothing(
    undisturbed: Rig,
    tmp_path: Path,
    moment: str | dict[str, str],
    jobs: list[str],
    kills: int,
    leftovers: int,
    made_twice: int,
) -> None:
    chain = run_chain(tmp_path / "rig", moment, undisturbed, jobs=jobs)
    assert (chain.differing, chain.torn, chain.lost) == ([], [], [])
    # A version that was visible when its run died is made once more, with the same bytes.
    assert (chain.kills, chain.leftovers, chain.versions_ahead) == (kills, leftovers, made_twice)
