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
from c2tc_pipeline.tables.blocks import peek_table, read_table
from c2tc_pipeline_tests.sources.kinds import to_duckdb, to_parts, to_postgresql, to_sqlite
from c2tc_pipeline_tests.sources.postgresql_server import PASSWORD, PostgresServer
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import data_hashes, mixed_table


@pytest.fixture
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


@pytest.fixture
def addresses(frame: pd.DataFrame, tmp_path: Path, server: PostgresServer, bucket: S3Server) -> dict[str, str]:
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_csv(tmp_path / "packed.csv.gz", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    files = fsspec.filesystem("s3", endpoint_url=bucket.endpoint_url, key=KEY, secret=SECRET, skip_instance_cache=True)
    folder = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    parts = to_parts(frame, tmp_path / "parts")
    for path in [tmp_path / "people.csv", *Path(parts).iterdir()]:
        files.put_file(str(path), f"{folder}/{'parts/' if path.parent.name == 'parts' else ''}{path.name}")
    sqlite = to_sqlite(frame, tmp_path / "people.sqlite")
    files.put_file(str(tmp_path / "people.sqlite"), f"{folder}/people.sqlite")
    return {
        "csv": str(tmp_path / "people.csv"),
        "csv.gz": str(tmp_path / "packed.csv.gz"),
        "parquet": str(tmp_path / "people.parquet"),
        "parts": parts,
        "postgresql": to_postgresql(frame, server, "people"),
        "s3 csv": f"{folder}/people.csv",
        "s3 parts": f"{folder}/parts",
        "s3 sqlite": f"{folder}/people.sqlite?table=people",
        "sqlite": sqlite,
        "duckdb": to_duckdb(frame, tmp_path / "people.duckdb"),
        "sqlalchemy": f"sqlite+pysqlite:///{tmp_path}/people.sqlite?query=SELECT+*+FROM+people",
    }


def test_one_table_from_every_kind_of_source(
    run: Run, frame: pd.DataFrame, addresses: dict[str, str], tmp_path: Path
) -> None:
    first: Any = None
    for kind, address in addresses.items():
        if kind == "sqlalchemy":
            # A query has no declared types: flags and moments are what SQLite keeps them as.
            table = read_table(address)
            pd.testing.assert_frame_equal(table[["amount", "job"]], frame[["amount", "job"]])
            continue
        table = read_table(address)
        pd.testing.assert_frame_equal(table, frame, obj=kind)
        assert peek_table(address).columns == tuple(frame.columns)
        assert peek_table(address).rows in (None, len(frame))
        if kind in ("parts", "s3 sqlite", "csv.gz", "s3 parts"):
            # Equal frames condense to equal bytes; the kinds that are left stand for the others.
            continue
        out = tmp_path / "out" / kind
        result = run("condense", address, "--label", "outcome", "--rows", 12, "--out", out, "--split", "--quiet")
        assert result.exit_code == 0, result.output
        written = data_hashes(out)
        summary = json.loads((out / "summary.json").read_text())
        for told in ("source", "source_digest", "seconds"):
            summary.pop(told, None)
        first = first or (written, summary)
        assert written == first[0], kind
        assert summary == first[1], kind
        shown = "".join(path.read_text(errors="replace") for path in out.rglob("*") if path.is_file())
        for secret in (PASSWORD, KEY, SECRET):
            assert secret not in shown


def test_databases_with_equal_values_have_one_digest(addresses: dict[str, str]) -> None:
    digests = {kind: open_source(addresses[kind]).digest() for kind in ("postgresql", "sqlite", "s3 sqlite", "duckdb")}
    assert len(set(digests.values())) == 1, digests


def test_batches_are_bounded_chosen_and_of_one_schema(frame: pd.DataFrame, addresses: dict[str, str]) -> None:
    for kind, address in addresses.items():
        batches = list(open_source(address).batches(["job", "amount"], rows=50))
        assert {batch.schema for batch in batches} == {batches[0].schema}, kind
        assert batches[0].schema.names == ["job", "amount"], kind
        assert max(batch.num_rows for batch in batches) <= 50, kind
        jobs = [cell for batch in batches for cell in batch.column("job").to_pylist()]
        assert jobs == frame["job"].astype(object).where(frame["job"].notna(), None).tolist(), kind


def test_versions_tell_states_apart(addresses: dict[str, str], server: PostgresServer, frame: pd.DataFrame) -> None:
    for kind, address in addresses.items():
        version = open_source(address).version()
        assert version == open_source(address).version(), kind
        assert version.replace("-", "").isalnum(), kind
        assert len(version) <= 63, kind
