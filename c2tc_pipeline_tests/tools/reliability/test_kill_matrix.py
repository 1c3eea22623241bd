"""A part of the kill matrix; all of it is ``make reliability``, whose result is in ``docs/reliability.md``."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline_tests.tools.reliability.__main__ import kills_table
from c2tc_pipeline_tests.tools.reliability.kill_matrix import ALL_JOBS, LOCAL, S3, Chain, run_chain, undisturbed_run
from c2tc_pipeline_tests.tools.reliability.moments import LEAVES_A_VERSION

SHORT = {
    "raw_table": "before the read",
    "validated_table": "half through the work",
    "encoder": "in the middle of writing",
    "encoded_table": "between data and manifest",
}
LONG = (pytest.mark.slow, pytest.mark.faults)
INGEST, ALL = ["ingest_job"], [*ALL_JOBS]


@pytest.mark.parametrize(
    ("moment", "jobs", "kills", "leftovers"),
    [
        (SHORT, INGEST, 4, 2),
        pytest.param("in the middle of writing", ALL, 9, 9, marks=LONG),
        pytest.param("between manifest and event", ALL, 9, 0, marks=LONG),
        pytest.param("in the middle of writing to the cache", INGEST, 1, 1, marks=LONG),
    ],
    ids=["short", "writing", "event", "cache"],
)
def test_kills_lose_nothing(
    tmp_path: Path, moment: str | dict[str, str], jobs: list[str], kills: int, leftovers: int
) -> None:
    chain = run_chain(tmp_path / "rig", moment, undisturbed_run(tmp_path / "undisturbed", jobs), jobs=jobs)
    assert (chain.differing, chain.torn, chain.lost) == ([], [], [])
    assert (chain.kills, chain.leftovers) == (kills, leftovers)
    # A version that was visible when its run died is made once more, with the same bytes.
    assert chain.versions_ahead == (kills if chain.moment in LEAVES_A_VERSION else 0)


def test_the_table_adds_up() -> None:
    chains = [
        Chain(S3, "before the read", kills=9, differing=["a", "b"], torn=["c"], leftovers=3, versions_ahead=1),
        Chain(LOCAL, "before the read", kills=11),
    ]
    assert kills_table([vars(chain) for chain in chains]).splitlines()[2:] == [
        "| before the read | local, nothing there | 11 | 0 | 0 | 0 | 0 | 0 |",
        "| before the read | S3, nothing there | 9 | 2 | 1 | 0 | 3 | 1 |",
        "| **all** | | 20 | 2 | 1 | 0 | 3 | 1 |",
    ]
