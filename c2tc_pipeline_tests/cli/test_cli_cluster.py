"""``c2tc condense --engine``: the same files from a cluster, and one sentence where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from c2tc_pipeline_tests.clustering.dask_cluster import running_cluster
from c2tc_pipeline_tests.tools.command_line import Run


@pytest.fixture
def cluster() -> Iterator[str]:
    with running_cluster() as address:
        yield address


@pytest.mark.faults
@pytest.mark.parametrize("blocks", [(), ("--blocks",)], ids=["in memory", "in blocks"])
def test_the_same_files_from_a_cluster(run: Run, people: Path, cluster: str, blocks: tuple[str, ...]) -> None:
    for out, engine in ("here", "local"), ("there", cluster):
        done = run("condense", people, "--label", "outcome", "--out", out, "--engine", engine, "--no-cache", *blocks)
        assert done.exit_code == 0, done.output
    for name in ("condensed", "condensed_original", "membership", "projection"):
        assert Path(f"here/{name}.parquet").read_bytes() == Path(f"there/{name}.parquet").read_bytes()
    assert Path("here/summary.json").read_bytes() == Path("there/summary.json").read_bytes()


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("dask://127.0.0.1:9", "No Dask scheduler answers at 'dask://127.0.0.1:9'"),
        ("spark://127.0.0.1:9", "The engine 'spark://127.0.0.1:9' is unknown"),
        ("dask://127.0.0.1", "The engine 'dask://127.0.0.1' is unknown"),
    ],
)
def test_no_such_cluster(run: Run, people: Path, engine: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c2tc_pipeline.clustering.dask_engine._CONNECT_SECONDS", 0.5)
    done = run("condense", people, "--label", "outcome", "--out", "small", "--engine", engine)
    assert done.exit_code == 2
    assert message in done.output
    assert not Path("small").exists()
