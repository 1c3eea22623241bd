"""Equal values give equal tables, wherever they come from: the same rows, the same digest, the same condensed bytes."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pytest

from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table
from c2tc_pipeline_tests.sources.kinds import check_source, to_duckdb, to_parts, to_postgresql, to_sqlite
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, PostgresServer
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import data_hashes, mixed_table

pytestmark = pytest.mark.usefixtures("server", "bucket")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Numbers, words, a flag, a moment, leading zeros, and gaps in some of them."""
    table = mixed_table(240)
    table["zip"] = [f"{number % 17:05d}" for number in range(len(table))]
    table["since"] = table["since"].dt.as_unit("us")
    table.loc[3::11, "amount"] = None
    table.loc[5::13, "job"] = None
    table["day"] = table["day"].astype("Int64")
    table.loc[7::19, "day"] = None
    return table


@pytest.fixture(scope="module")
def addresses(
    frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory, postgresql: PostgresServer, s3_server: S3Server
) -> dict[str, str]:
    here = tmp_path_factory.mktemp("equal")
    frame.to_csv(here / "people.csv", index=False)
    frame.to_csv(here / "packed.csv.gz", index=False)
    frame.to_parquet(here / "people.parquet")
    files = fsspec.filesystem("s3", **s3_server.access, skip_instance_cache=True)
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    parts = to_parts(frame, here / "parts")
    sqlite = to_sqlite(frame, here / "people.sqlite")
    for path in [here / "people.csv", here / "people.sqlite", *Path(parts).iterdir()]:
        files.put_file(str(path), f"{folder}/{path.relative_to(here)}")
    return {
        "csv": str(here / "people.csv"),
        "csv.gz": str(here / "packed.csv.gz"),
        "parquet": str(here / "people.parquet"),
        "parts": parts,
        "postgresql": to_postgresql(frame, postgresql, "people"),
        "s3 csv": f"{folder}/people.csv",
        "s3 parts": f"{folder}/parts",
        "s3 sqlite": f"{folder}/people.sqlite?table=people",
        "sqlite": sqlite,
        "duckdb": to_duckdb(frame, here / "people.duckdb"),
        "sqlalchemy": f"sqlite+pysqlite:///{here}/people.sqlite?query=SELECT+*+FROM+people",
    }


def test_one_table_from_every_kind_of_source(
    run: Run, frame: pd.DataFrame, addresses: dict[str, str], tmp_path: Path
) -> None:
    first: Any = None
    for kind, address in addresses.items():
        table = read_table(address)
        if kind == "sqlalchemy":
            # A query has no declared types: flags and moments are what SQLite keeps them as.
            pd.testing.assert_frame_equal(table[["amount", "job"]], frame[["amount", "job"]])
            continue
        pd.testing.assert_frame_equal(table, frame, obj=kind)
        check_source(address, frame)
        if kind not in ("csv", "postgresql", "s3 csv"):
            # Equal frames condense to equal bytes; a file, a database and a bucket stand for the others.
            continue
        out = tmp_path / "out" / kind
        result = run("condense", address, "--label", "outcome", "--rows", 12, "--out", out, "--split", "--quiet")
        assert result.exit_code == 0, result.output
        written = data_hashes(out)
        summary = json.loads((out / "summary.json").read_text())
        for told in ("source", "source_digest", "seconds"):
            summary.pop(told, None)
        first = first or (written, summary)
        assert (written, summary) == first, kind
        shown = "".join(path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())
        for secret in (PASSWORD, KEY, SECRET):
            assert secret not in shown


def test_databases_with_equal_values_have_one_digest(addresses: dict[str, str]) -> None:
    digests = {kind: open_source(addresses[kind]).digest() for kind in ("postgresql", "sqlite", "s3 sqlite", "duckdb")}
    assert len(set(digests.values())) == 1, digests
