"""A part of the kill matrix; all of it is ``make reliability``, whose result is in ``docs/reliability.md``."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig
from c2tc_pipeline_tests.tools.reliability.document import kills_table
from c2tc_pipeline_tests.tools.reliability.kill_matrix import ALL_JOBS, LOCAL, S3, Chain, run_chain, undisturbed_run
from c2tc_pipeline_tests.tools.reliability.moments import LEAVES_A_VERSION

SHORT = {
    "raw_table": "before the read",
    "validated_table": "half through the work",
    "encoder": "in the middle of writing",
    "encoded_table": "between data and manifest",
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return undisturbed_run(tmp_path_factory.mktemp("undisturbed") / "rig")


def check(chain: Chain, kills: int) -> None:
    assert (chain.differing, chain.torn, chain.lost) == ([], [], [])
    assert chain.kills == kills
    # A version that was visible when its run died is made once more, with the same bytes.
    assert chain.versions_ahead == (kills if chain.moment in LEAVES_A_VERSION else 0)


def test_the_ingest_in_short(tmp_path: Path) -> None:
    undisturbed = undisturbed_run(tmp_path / "undisturbed", ["ingest_job"])
    chain = run_chain(tmp_path / "rig", SHORT, undisturbed, jobs=["ingest_job"])
    check(chain, 4)
    assert chain.leftovers == 2


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("moment", ["in the middle of writing", "between manifest and event"])
def test_every_asset(tmp_path: Path, undisturbed: Rig, moment: str) -> None:
    chain = run_chain(tmp_path / "rig", moment, undisturbed)
    check(chain, sum(map(len, ALL_JOBS.values())))
    assert chain.leftovers == (chain.kills if moment == "in the middle of writing" else 0)


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize(
    ("moment", "kills"), [("half through the work", 4), ("in the middle of writing to the cache", 1)]
)
def test_the_ingest(tmp_path: Path, undisturbed: Rig, moment: str, kills: int) -> None:
    check(run_chain(tmp_path / "rig", moment, undisturbed, jobs=["ingest_job"]), kills)


def test_the_table_adds_up() -> None:
    chains = [
        Chain(LOCAL, "before the read", kills=11),
        Chain(S3, "before the read", kills=9, differing=["a", "b"], torn=["c"], leftovers=3, versions_ahead=1),
    ]
    assert kills_table([vars(chain) for chain in chains]).splitlines()[2:] == [
        "| before the read | local, nothing there | 11 | 0 | 0 | 0 | 0 | 0 |",
        "| before the read | S3, nothing there | 9 | 2 | 1 | 0 | 3 | 1 |",
        "| **all** | | 20 | 2 | 1 | 0 | 3 | 1 |",
    ]
