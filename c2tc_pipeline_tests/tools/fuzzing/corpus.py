"""Valid inputs of every kind, which the fuzz targets change."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from c2tc_pipeline import condense
from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder
from c2tc_pipeline.clustering.loss_curves import LossCurve, write_curves
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import save_encoder
from c2tc_pipeline.pipeline.formats import FORMATS
from c2tc_pipeline.storage.artefact import publish_directory
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import derive_schema, schema_to_json
from c2tc_pipeline.tables.table import Table, learn_table
from c2tc_pipeline_tests.tools.made_tables import mixed_table

CSV = (
    b"age,job,since,paid\n31,cook,2020-08-09,true\n45,,2021-01-01 10:00:00,false\n",
    b"zip;price\n00501;1.234,5\n10001;7\n",
    b'\xef\xbb\xbfname\tnote\n"a ""b""\tc"\tx\r\n"two\nlines"\ty\r\n',
    b"a|b|c\n1|2.5|=1+1\n-3|1e9|@SUM(A1)\n9223372036854775808|inf|+x\n",
    "größe,日本\n1,é\nNA,NULL\n".encode(),
    b"a,b\r1,2\r3,4\r",
)
CATALOGUES = (
    b"""tables:
  people:
    source: people.parquet
    label: income
    description: Survey answers.
    ratios: [0.01, 0.001]
    roles: {zip: code, name: drop}
    split: {seed: 3, validation: 0.1, test: 0.2, group_duplicates: true}
    settings: {allocation: optimal, gamma: auto, strings: target, representative: medoid, device: cpu}
    evaluation: {models: [mlp, boosting], seeds: 3, recipe: paper}
    checks: {baseline: 2, drift: 0.1, accuracy_margin: 0.05, repeated_rows: 0.3}
""",
    b"""tables:
  a: {source: "s3://bucket/a.csv.gz", label: y}
  b: {source: {postgresql: {table: public.people, dsn_env: WAREHOUSE}}, label: y}
  c: {source: {postgresql: {host: h, port: 5432, user: u, database: d, table: t}}, label: y}
  d: {source: {openml: 1590}, label: class}
  e: {source: "mysql+pymysql://ann@host/sales?table=people", label: y}
  f: {source: {sqlite: {file: shop.db, query: "SELECT * FROM orders"}}, label: y}
""",
)
ADDRESSES = b"""people.csv
s3://bucket/tables/people.csv.gz
s3://AK:a-setting@bucket/people.csv
postgresql://ann:a-setting@db.example:5432/sales?table=public.people
postgresql://ann@db.example/sales?query=SELECT%20*%20FROM%20people&password=a-setting
mysql+pymysql://ann:a-setting@host/sales?table=people
sqlite:///people.db?table=people
people.duckdb?query=SELECT 1
openml:adult
https://host/people.csv?token=a-setting
sqlalchemy://?dsn_env=NO_SUCH_VARIABLE&table=people""".splitlines()


def make_files(kind: str, folder: Path) -> None:
    """Write the valid inputs of one kind below a new folder: files, or one folder for each input."""
    folder.mkdir(parents=True)
    made = MAKERS[kind]
    if isinstance(made, dict):
        for name, content in made.items():
            (folder / name).write_bytes(content)
    else:
        made(folder)


def make_parquet(folder: Path) -> None:
    """Write Parquet files of several codecs, encodings and types, with and without checksums."""
    frame = mixed_table(40)
    plain = pa.Table.from_pandas(frame)
    nested = pa.table({"list": [[1, 2], None], "struct": [{"a": 1}, {"a": 2}]})
    arrays = {
        "decimal": pa.array([1, None], pa.decimal128(9, 2)),
        "zone": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
        "half": pa.array([1.0, 2.0], pa.float32()).cast(pa.float16()),
        "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
        "big": pa.array([2**64 - 1, 1], pa.uint64()),
        "kind": pa.array(["x", "y"]).dictionary_encode(),
        "nothing": pa.nulls(2),
    }
    for name, table in {"nested": nested, "typed": pa.table(arrays), "empty": plain.slice(0, 0)}.items():
        pq.write_table(table, folder / name)
    indexed = (frame.set_index("age"), frame.set_axis(pd.RangeIndex(0, 80, 2, name="number")))
    for number, other in enumerate(indexed):
        pq.write_table(pa.Table.from_pandas(other.head(5)), folder / f"index{number}")
    pq.write_table(plain, folder / "zstd", compression="zstd", write_page_checksum=True)
    pq.write_table(plain, folder / "snappy", compression="snappy", row_group_size=7)
    pq.write_table(plain.slice(0, 6), folder / "plain", compression="none", use_dictionary=False)
    pq.write_table(plain.slice(0, 9), folder / "gzip2", compression="gzip", data_page_version="2.0")


def make_sqlite(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "people")) as database:
        mixed_table(30).to_sql("people", database, index=False)


def learnt(frame: pd.DataFrame) -> Table:
    return learn_table(Blocks.of_frame(frame), label="outcome")


def make_schema(folder: Path) -> None:
    (folder / "0").write_text(schema_to_json(derive_schema(learnt(mixed_table(80)))), encoding="utf-8")


def make_experiments(folder: Path) -> None:
    from c2tc_pipeline.bench.experiments import GRIDS

    for path in GRIDS.glob("*.yaml"):
        shutil.copy(path, folder)


def make_encoders(folder: Path) -> None:
    frame = mixed_table(80, words=True)
    encoders = {
        "similarity": HybridEncoder(strings="similarity", epochs=1),
        "target": HybridEncoder(strings="target", numeric="minmax"),
        "label": LabelEncoder(),
        "onehot": OneHotPcaEncoder(),
    }
    for name, encoder in encoders.items():
        save_encoder(encoder.fit(frame.drop(columns="outcome"), frame["outcome"]), folder / name)


def make_curves(folder: Path) -> None:
    def write(directory: Path) -> None:
        seeds = np.zeros((16, 3), dtype=np.float32)
        write_curves([LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100, seeds)], directory)

    publish_directory(folder / "0", write, kind="loss-curves", settings={"key": "00"})


def make_condensed(folder: Path) -> None:
    condense(mixed_table(80, words=True), label="outcome", rows=8, random_state=0).save(folder / "0")


def make_store(folder: Path) -> None:
    """Publish an artefact and rename its writer, whose random id would differ each time."""
    format_, table = FORMATS["validated_table"], learnt(mixed_table(80, words=True))
    made = ArtefactStore(folder / "0").publish(
        "validated_table/people", lambda directory: format_.write(table, directory), kind=format_.kind
    )
    place, writer = folder / "0" / "validated_table" / "people", f"W{0:032x}"
    (place / "data" / made.writer).rename(place / "data" / writer)
    [manifest] = (place / "manifests").iterdir()
    values = {**json.loads(manifest.read_bytes()), "writer": writer}
    del values["sha256"]
    manifest.write_text(json.dumps({**values, "sha256": hash_json(values)}))


def numbered(*contents: bytes) -> dict[str, bytes]:
    return {str(number): content for number, content in enumerate(contents)}


MAKERS: dict[str, dict[str, bytes] | Callable[[Path], None]] = {
    "csv": numbered(*CSV),
    "gzip": numbered(*(gzip.compress(content, mtime=0) for content in CSV)),
    "parquet": make_parquet,
    "sqlite": make_sqlite,
    "catalogue": numbered(*CATALOGUES),
    "experiment": make_experiments,
    "schema": make_schema,
    "address": numbered(*ADDRESSES),
    "encoder": make_encoders,
    "curves": make_curves,
    "condensed": make_condensed,
    "store": make_store,
}
