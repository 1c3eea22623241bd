"""The same table in every format gives the same rows; what is wrong, strange or damaged gives one sentence."""

from __future__ import annotations

import gzip
import http.server
import io
import itertools
import sys
import uuid
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from c2tc_pipeline.cli.main import main
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources import csv_files
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline_tests.sources.kinds import check_source, to_delta, to_hive, to_iceberg, to_packed, to_parts
from c2tc_pipeline_tests.storage.s3_server import BUCKET, KEY, SECRET, S3Server
from c2tc_pipeline_tests.tools.command_line import Run
from c2tc_pipeline_tests.tools.made_tables import data_hashes
from c2tc_pipeline_tests.tools.serving import serving


def made_table() -> pd.DataFrame:
    """Integers, gaps, fractions, words, leading zeros, flags and moments; sorted by two columns to be divided by."""
    rng = np.random.default_rng(0)
    rows = 90
    return pd.DataFrame(
        {
            "count": rng.integers(-9, 10**6, rows),
            "gaps": pd.array([None if row % 7 == 0 else row for row in range(rows)], dtype="Int64"),
            "share": np.where(rng.random(rows) < 0.1, np.nan, rng.random(rows).round(6)),
            "word": [["cook", None, "a, b", "größe", "x"][row % 5] for row in range(rows)],
            "zip": [f"{row % 13:05d}" for row in range(rows)],
            "flag": rng.random(rows) < 0.5,
            "since": (pd.Timestamp("2020-01-01 03:04:05") + pd.to_timedelta(rng.integers(0, 10**6, rows), "s")).as_unit(
                "us"
            ),
            "income": np.where(rng.random(rows) < 0.4, "high", "low"),
            "year": np.repeat([2023, 2024, 2025], rows // 3),
        }
    ).astype({"word": "str"})


def to_json_lines(frame: pd.DataFrame) -> bytes:
    """Write JSON lines; keys without a value are left out, as programs do that write them row by row."""
    lines = frame.assign(since=frame["since"].dt.strftime("%Y-%m-%d %H:%M:%S")).to_json(orient="records", lines=True)
    return "\n".join(line.replace('"word":null,', "") for line in lines.splitlines()).encode()


def to_excel(frame: pd.DataFrame, path: Path) -> str:
    frame.to_excel(path, index=False, engine="openpyxl")
    return str(path)


def to_arrow(frame: pd.DataFrame, path: Path) -> str:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    if path.suffix == ".feather":
        feather.write_feather(table, str(path), compression="zstd", chunksize=40)
    else:
        make = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=40)
    return str(path)


def csv_parts(frame: pd.DataFrame, folder: Path) -> str:
    folder.mkdir()
    for number in range(3):
        frame[number * 30 : number * 30 + 30].to_csv(folder / f"part-{number}.csv", index=False)
    return str(folder)


def renamed(path: str, name: str) -> str:
    return str(Path(path).rename(Path(path).with_name(name)))


Writer = Callable[[pd.DataFrame, Path], str]


def csv_bytes(frame: pd.DataFrame, sep: str = ",") -> bytes:
    return frame.to_csv(index=False, sep=sep).encode()


def packed_csv(packing: str, frame: pd.DataFrame, here: Path) -> str:
    return to_packed(csv_bytes(frame), here / f"t.csv{packing}")


FORMATS: dict[str, Writer] = {
    "csv": lambda frame, here: to_packed(csv_bytes(frame), here / "t.csv"),
    "tsv": lambda frame, here: to_packed(csv_bytes(frame, sep="\t"), here / "t.tsv"),
    **{f"csv{packing}": partial(packed_csv, packing) for packing in (".gz", ".bz2", ".zst", ".zip")},
    "jsonl": lambda frame, here: to_packed(to_json_lines(frame), here / "t.jsonl"),
    "jsonl.gz": lambda frame, here: to_packed(to_json_lines(frame), here / "t.jsonl.gz"),
    "parquet": lambda frame, here: str(frame.to_parquet(here / "t.parquet") or here / "t.parquet"),
    "feather": lambda frame, here: to_arrow(frame, here / "t.feather"),
    "arrow": lambda frame, here: to_arrow(frame, here / "t.arrow"),
    "arrows": lambda frame, here: to_arrow(frame, here / "t.arrows"),
    "excel": lambda frame, here: to_excel(frame, here / "t.xlsx"),
    "parquet parts": lambda frame, here: to_parts(frame, here / "parts"),
    "csv parts": lambda frame, here: csv_parts(frame, here / "parts"),
    "hive parquet": lambda frame, here: to_hive(frame, here / "hive", "year"),
    "hive csv": lambda frame, here: to_hive(frame, here / "hive", "year", ".csv"),
    "delta": lambda frame, here: to_delta(frame, here / "delta"),
    "iceberg": lambda frame, here: to_iceberg(frame, here / "iceberg"),
    "parquet named csv": lambda frame, here: renamed(FORMATS["parquet"](frame, here), "t.csv"),
    "csv.gz named csv": lambda frame, here: renamed(FORMATS["csv.gz"](frame, here), "t.csv"),
    "excel named csv": lambda frame, here: renamed(FORMATS["excel"](frame, here), "t.csv"),
    "jsonl named csv": lambda frame, here: renamed(FORMATS["jsonl"](frame, here), "t.csv"),
    "arrow named parquet": lambda frame, here: renamed(FORMATS["arrow"](frame, here), "t.parquet"),
    "csv named parquet": lambda frame, here: renamed(FORMATS["csv"](frame, here), "t.parquet"),
    "csv with another ending": lambda frame, here: renamed(FORMATS["csv"](frame, here), "t.CSV2"),
    "csv without an ending": lambda frame, here: renamed(FORMATS["tsv"](frame, here), "nameless"),
    "csv named csv.gz": lambda frame, here: renamed(FORMATS["csv"](frame, here), "t.csv.gz"),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_table_in_every_format(tmp_path: Path, kind: str) -> None:
    frame = made_table()
    address = FORMATS[kind](frame, tmp_path)
    # JSON has no dates, and stays as it is until a column is read as a whole.
    expected = frame.assign(since=frame["since"].astype("str")) if "jsonl" in kind else frame
    read = Blocks.of_source(address)
    pd.testing.assert_frame_equal(pd.concat(read.frames()), expected)
    check_source(address, frame)
    told = [notice.kind for notice in read.notices]
    assert told == (["wrong_ending"] if " named " in kind and "csv.gz" not in kind else [])


def test_new_commits_are_new_versions(tmp_path: Path) -> None:
    import deltalake
    from pyiceberg.catalog.sql import SqlCatalog

    frame = made_table()
    address = to_delta(frame, tmp_path / "delta")
    before = open_source(address).version()
    deltalake.DeltaTable(address).delete("year = 2024")
    assert before != open_source(address).version()
    left = frame[frame["year"] != 2024]
    assert sorted(read_table(address)["count"]) == sorted(left["count"])
    address = to_iceberg(frame, tmp_path / "iceberg")
    before = open_source(address).version()
    folder = tmp_path / "iceberg"
    catalogue = SqlCatalog("made", uri=f"sqlite:///{folder}/catalogue.db", warehouse=f"file://{folder}")
    catalogue.load_table("made.people").delete("year = 2024")
    assert before != open_source(address).version()
    assert sorted(read_table(address)["count"]) == sorted(left["count"])


def test_lakehouse_tables_and_folders_on_s3(bucket: S3Server, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    frame, folder = made_table(), f"s3://{BUCKET}/{uuid.uuid4().hex}"
    files = fsspec.filesystem("s3", **bucket.access, skip_instance_cache=True)
    for path in (to_delta(frame, tmp_path / "delta.parquet"), to_hive(frame, tmp_path / "hive", "year")):
        files.put(path, f"{folder}/{Path(path).name}", recursive=True)
    settings = {"s3.endpoint": bucket.endpoint_url, "s3.access-key-id": KEY, "s3.secret-access-key": SECRET}
    catalogue = SqlCatalog("made", uri=f"sqlite:///{tmp_path}/catalogue.db", warehouse=folder, **settings)
    catalogue.create_namespace("made")
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    catalogue.create_table("made.people", schema=table.schema).append(table)
    for name in ("delta.parquet/", "hive", "made/people"):
        pd.testing.assert_frame_equal(read_table(f"{folder}/{name}"), frame, obj=name)
        assert open_source(f"{folder}/{name}").version() == open_source(f"{folder}/{name}").version()
    with pytest.raises(InputError, match="is a Delta Lake table"):
        read_table(f"{folder}/delta.parquet")


def test_folders_named_after_values(tmp_path: Path) -> None:
    frame = pd.DataFrame({"place": ["a b", "x/y", None], "n": [1, 2, 3]})
    read = read_table(to_hive(frame, tmp_path / "t", "place")).sort_values("n", ignore_index=True)
    pd.testing.assert_frame_equal(read, frame[["n", "place"]].astype({"place": "str"}))
    months = tmp_path / "months"
    for month in ("01", "02"):
        to_hive(frame[["n"]].assign(year=2024), months / f"month={month}", "year")
    assert read_table(months)["month"].tolist() == ["01"] * 3 + ["02"] * 3
    assert read_table(months)["year"].tolist() == [2024] * 6
    batches = open_source(months).batches(["month", "year"])
    assert sum(batch.num_rows for batch in batches) == 6


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, 90), max_size=3), block=st.sampled_from([1 << 12, 1 << 22]))
def test_types_are_those_of_all_parts(tmp_path_factory: Any, cuts: list[int], block: int) -> None:
    frame, folder = made_table(), tmp_path_factory.mktemp("parts")
    edges = [0, *sorted(cuts), len(frame)]
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        frame[start:stop].to_csv(folder / f"{number}.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_files, "BLOCK_BYTES", block)
        patch.setattr(csv_files, "KEPT_BYTES", block)
        pd.testing.assert_frame_equal(read_table(folder), frame)


ROW = b'{"a": 1, "b": "x"}\n'


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return packed.getvalue()


def arrow_bytes(**columns: list[Any]) -> bytes:
    stream = io.BytesIO()
    table = pa.table(columns)
    with pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


WRONG: dict[str, tuple[str, bytes, str]] = {
    "nested JSON": ("t.jsonl", ROW + b'{"a": {"deep": 1}, "b": 2}\n', "Column 'a' .* nested JSON in line 2"),
    "a broken line": ("t.jsonl", ROW * 3 + b'{"a": 1, "b"\n' + ROW, "Line 4 .* not valid JSON"),
    "JSON that is not UTF-8": ("t.jsonl", ROW + b'{"a": "caf\xe9"}\n', "Line 2"),
    "no JSON": ("t.jsonl", b"\n\n", "is empty"),
    "an empty CSV": ("t.csv.zst", pa.Codec("zstd").compress(b"", asbytes=True), "is empty"),
    "a truncated gzip file": ("t.csv.gz", gzip.compress(b"a,b\n1,2\n" * 5_000)[:-20], "not a whole gzip file"),
    "a truncated archive": ("t.csv.zip", archive(a=b"a,b\n1,2\n" * 999)[:-30], "not a whole zip file"),
    "a damaged archive": ("t.csv.zip", archive(a=b"a,b\n1,2\n" * 99).replace(b"1,2\n", b"1,3\n", 1), "not a whole zip"),
    "two files": ("t.csv.zip", archive(a=b"a\n1\n", b=b"a\n1\n"), "holds 2 files"),
    "no workbook": ("t.xlsx", archive(**{"docProps/app.xml": b"<x/>"}), "not a whole Excel file"),
    "an empty workbook": ("t.xlsx", b"", "not a whole Excel file"),
    "a truncated Arrow file": ("t.feather", arrow_bytes(a=list(range(999)))[:-300], "not a whole Arrow"),
    "an empty Arrow file": ("t.arrow", b"", "not a whole Arrow"),
    "Arrow text that is none": ("t.arrow", arrow_bytes(a=["xxxx"]).replace(b"xxxx", b"\xff\xfexx"), "Column 'a'"),
    "a page": ("t.csv", b"\n<!DOCTYPE HTML>\n<p>a, b</p>\n", "an HTML page; give the address of the file"),
    "an array of objects": ("t.json", b'[{"a": 1, "b": 2}, {"a": 2, "b": 3}]', "a JSON array; write one object a line"),
    "an array of lines": ("t.jsonl", b'[\n{"a": 1},\n{"a": 2}]', "a JSON array; write one object a line"),
    "no table": ("t.xyz", b"hello", "kind of file .* not known"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_is_said_in_one_sentence(tmp_path: Path, wrong: str) -> None:
    name, content, told = WRONG[wrong]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=told) as caught:
        read_table(tmp_path / name)
    message = str(caught.value)
    assert name in message
    assert "\n" not in message
    assert message.endswith(".")


def test_what_is_wrong_with_folders_and_lakehouse_tables(tmp_path: Path) -> None:
    frame = made_table()

    def refused(folder: Path, told: str) -> None:
        with pytest.raises(InputError, match=told):
            read_table(folder)

    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "without parts")
    mixed = tmp_path / "mixed"
    csv_parts(frame, mixed)
    frame.to_parquet(mixed / "more.parquet")
    refused(mixed, "several kinds")
    (mixed / "more.parquet").unlink()
    frame.drop(columns="zip").to_csv(mixed / "part-3.csv", index=False)
    refused(mixed, r"part-3.csv .* no column 'zip'")
    hive = Path(to_hive(frame, tmp_path / "hive", "year"))
    (hive / "a.parquet").write_bytes((hive / "year=2023" / "a.parquet").read_bytes())
    refused(hive, "lies in other folders")
    (hive / "a.parquet").unlink()
    frame.to_parquet(hive / "year=2023" / "a.parquet")
    frame.to_parquet(hive / "year=2024" / "a.parquet")
    frame.to_parquet(hive / "year=2025" / "a.parquet")
    refused(hive, "'year'")
    delta = Path(to_delta(frame, tmp_path / "delta"))
    next(delta.glob("*.parquet")).unlink()
    refused(delta, "Delta Lake table .* can't be read")
    iceberg = Path(to_iceberg(frame, tmp_path / "iceberg"))
    next((iceberg / "data").glob("*.parquet")).unlink()
    refused(iceberg, "Iceberg table .* can't be read")


def test_several_sheets_are_chosen_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        pd.DataFrame({"a": [1.5, 2]}).to_excel(book, sheet_name="one", index=False)
        pd.DataFrame({"b": ["x"]}).to_excel(book, sheet_name="two", index=False)
    with pytest.raises(InputError, match="'one', 'two'"):
        read_table(path)
    assert read_table(f"{path}?table=two")["b"].tolist() == ["x"]
    with pytest.raises(InputError, match="no sheet"):
        read_table(f"{path}?table=three")


class _Pages(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, whole, with a time but without ranges; what is secret is refused."""

    def do_GET(self) -> None:
        self.send_error(403) if "secret" in self.path else super().do_GET()

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def web(tmp_path: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(tmp_path)))
    with serving(server) as port:
        yield f"http://127.0.0.1:{port}"


def test_files_on_the_web(tmp_path: Path, web: str) -> None:
    frame = made_table()
    for kind in ("csv.gz", "parquet", "feather", "excel", "jsonl"):
        path = Path(FORMATS[kind](frame, tmp_path))
        local, remote = read_table(path), read_table(f"{web}/{path.name}")
        pd.testing.assert_frame_equal(local, remote, obj=kind)
        assert open_source(f"{web}/{path.name}").header() == open_source(path).header()
    # Without an ending the content tells.
    (tmp_path / "download").write_bytes((tmp_path / "t.parquet").read_bytes())
    pd.testing.assert_frame_equal(read_table(f"{web}/download?id=5&token=abc"), frame)
    assert "abc" not in open_source(f"{web}/download?id=5&token=abc").shown
    (tmp_path / "named.csv").write_bytes((tmp_path / "t.parquet").read_bytes())
    (tmp_path / "t.xml").write_bytes(b"<html><body>a, b</body></html>")
    pd.testing.assert_frame_equal(read_table(f"{web}/named.csv"), frame)
    with pytest.raises(InputError, match=r"t\.xml is an HTML page"):
        read_table(f"{web}/t.xml")
    version = open_source(f"{web}/t.csv.gz").version()
    assert version == open_source(f"{web}/t.csv.gz").version()
    to_packed(b"a,b\n1,2\n", tmp_path / "t.csv.gz")
    assert version != open_source(f"{web}/t.csv.gz").version()
    with pytest.raises(InputError, match="There is no file"):
        read_table(f"{web}/none.csv")
    with pytest.raises(InputError, match="refused"):
        read_table(f"{web}/secret.csv")
    with pytest.raises(ConnectionError, match="could not be reached"):
        read_table("http://127.0.0.1:9/t.csv")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    content = Path(FORMATS[kind](made_table(), tmp_path)).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    pd.testing.assert_frame_equal(read_table("-"), made_table())


def test_the_command_reads_standard_input(run: Run, tmp_path: Path) -> None:
    options = ["--label", "income", "--rows", "8", "--quiet", "--no-cache", "--out"]
    command = ["condense", "-", *options, str(tmp_path / "out")]
    done = CliRunner().invoke(main, command, input=csv_bytes(made_table()))
    assert done.exit_code == 0, done.output
    (tmp_path / "t.csv").write_bytes(csv_bytes(made_table()))
    run(*command[:1], tmp_path / "t.csv", *command[2:-1], tmp_path / "same")
    assert data_hashes(tmp_path / "out") == data_hashes(tmp_path / "same")
    empty = CliRunner().invoke(main, command, input=b"")
    assert empty.exit_code == 2
    assert "standard input is empty" in empty.output
