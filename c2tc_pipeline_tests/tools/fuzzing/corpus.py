"""Good inputs of every kind, from which bad ones are made."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from c2tc_pipeline.tables.validated import validate_table

from c2tc_pipeline.bench.experiments.grid import GRIDS
from c2tc_pipeline.clustering.loss_curves import LossCurve, write_curves
from c2tc_pipeline.condensation.api import condense
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.storage import save_encoder
from c2tc_pipeline.storage.artefact import publish_directory
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table

CSV = (
    b"age,job,since,paid\n31,cook,2020-08-09,true\n45,,2021-01-01 10:00:00,false\n",
    b"zip;price\n00501;1.234,5\n10001;7\n",
    b'\xef\xbb\xbfname\tnote\n"a ""b""\tc"\tx\r\n"two\nlines"\ty\r\n',
    b"a|b|c\n1|2.5|=1+1\n-3|1e9|@SUM(A1)\n9223372036854775808|inf|+x\n",
    "größe,日本\n1,é\nNA,NULL\n".encode(),
    b"x\n1\n2\n\n3\n",
    b"a,b\r1,2\r3,4\r",
)
CATALOGUES = (
    """\
tables:
  people:
    source: people.parquet
    label: income
    description: Those who answered.
    ratios: [0.01, 0.001]
    roles: {zip: code, name: drop}
    split: {seed: 3, validation: 0.1, test: 0.2, group_duplicates: true}
    settings: {allocation: optimal, gamma: auto, strings: target, representative: medoid, device: cpu}
    evaluation: {models: [mlp, boosting], seeds: 3, recipe: paper}
    checks: {baseline: 2, drift: 0.1, accuracy_margin: 0.05, gap: 0.2, singletons: 0.3}
  orders:
    source: {sqlite: {file: shop.db, query: "SELECT * FROM orders"}}
    label: returned
""",
    """\
tables:
  a: {source: "s3://bucket/a.csv.gz", label: y}
  b: {source: {postgresql: {table: public.people, dsn_env: WAREHOUSE}}, label: y}
  c: {source: {postgresql: {host: h, port: 5432, user: u, database: d, table: t}}, label: y}
  d: {source: {openml: 1590}, label: class}
  e: {source: "mysql+pymysql://ann@host/sales?table=people", label: y}
""",
)
ADDRESSES = (
    "people.csv",
    "data/people.parquet",
    "s3://bucket/tables/people.csv.gz",
    "s3://{key}:{secret}@bucket/people.csv",
    "postgresql://ann:{secret}@db.example:5432/sales?table=public.people",
    "postgresql://ann@db.example/sales?query=SELECT%20*%20FROM%20people&password={secret}",
    "mysql+pymysql://ann:{secret}@host/sales?table=people",
    "sqlite:///people.db?table=people",
    "people.duckdb?query=SELECT 1",
    "openml:adult",
    "memory://user:{secret}@x/y.csv",
    "https://host/people.csv?token={secret}",
    "sqlalchemy://?dsn_env=NO_SUCH_VARIABLE&table=people",
)
NAMES = (
    "people",
    "condensed_table/flights|0.001",
    "leaderboard/all",
    "a/b.c",
    "s3://bucket/prefix",
    "memory://x",
    "x_1",
)


def make_corpus(folder: Path) -> None:
    """Write all good inputs below a folder."""
    _write(folder / "csv", {f"{number}.csv": content for number, content in enumerate(CSV)})
    _write(folder / "gzip", {f"{number}.gz": gzip.compress(content, mtime=0) for number, content in enumerate(CSV)})
    _write(folder / "catalogue", {f"{number}.yaml": text.encode() for number, text in enumerate(CATALOGUES)})
    _write(folder / "experiment", {path.name: path.read_bytes() for path in sorted(GRIDS.glob("*.yaml"))})
    _write(folder / "address", {str(number): text.encode() for number, text in enumerate(ADDRESSES)})
    _write(folder / "name", {str(number): text.encode() for number, text in enumerate(NAMES)})
    _write(folder / "parquet", parquet_files())
    frame = mixed_table(80, words=True)
    _make_encoders(folder / "encoder", frame)
    _make_curves(folder / "curves" / "0")
    small = condense(frame, label="outcome", rows=8, random_state=0)
    small.save(folder / "condensed" / "0")
    spec = TableSpec(name="people", source="people.parquet", label="outcome")
    validated = validate_table(frame, spec)
    _make_store(folder / "store" / "0", validated.write_files)

    def write_weights(directory: Path) -> None:
        weights = next((folder / "encoder").glob("*/encoder.safetensors")).read_bytes()
        (directory / "weights.safetensors").write_bytes(weights)

    publish_directory(folder / "weights" / "0", write_weights, kind="autoencoder")


def parquet_files() -> dict[str, bytes]:
    """Return files of several codecs, encodings and types, with and without checksums."""
    frame = mixed_table(40)
    indexed = frame.head(5).set_index("age")
    named_range = frame.head(5).set_axis(pd.RangeIndex(0, 10, 2, name="number"))
    nested = pa.table(
        {
            "list": [[1, 2], None],
            "struct": [{"a": 1}, {"a": 2}],
            "map": pa.array([[("k", 1)]] * 2, pa.map_(pa.string(), pa.int32())),
        }
    )
    typed = pa.table(
        {
            "decimal": pa.array([1, None], pa.decimal128(9, 2)),
            "date": pa.array([1, 2], pa.date32()),
            "time": pa.array([1, 2], pa.time64("us")),
            "zone": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
            "half": pa.array([1.0, 2.0], pa.float32()).cast(pa.float16()),
            "fixed": pa.array([b"ab", b"cd"], pa.binary(2)),
            "big": pa.array([2**64 - 1, 1], pa.uint64()),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "nothing": pa.nulls(2),
        }
    )
    tables: dict[str, tuple[pa.Table, dict[str, Any]]] = {
        "zstd": (pa.Table.from_pandas(frame), {"compression": "zstd", "write_page_checksum": True}),
        "snappy": (pa.Table.from_pandas(frame), {"compression": "snappy", "row_group_size": 7}),
        "plain": (pa.Table.from_pandas(frame.head(6)), {"compression": "none", "use_dictionary": False}),
        "gzip2": (pa.Table.from_pandas(frame.head(9)), {"compression": "gzip", "data_page_version": "2.0"}),
        "index": (pa.Table.from_pandas(indexed), {}),
        "range": (pa.Table.from_pandas(named_range), {}),
        "nested": (nested, {}),
        "typed": (typed, {}),
        "empty": (pa.Table.from_pandas(frame.head(0)), {}),
    }
    written = {}
    for name, (table, options) in tables.items():
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        written[f"{name}.parquet"] = stream.getvalue()
    return written


def _make_encoders(folder: Path, frame: pd.DataFrame) -> None:
    rows, labels = frame.drop(columns="outcome"), frame["outcome"]
    encoders = {
        "similarity": HybridEncoder(strings="similarity", epochs=1),
        "target": HybridEncoder(strings="target", numeric="minmax"),
        "label": LabelEncoder(),
        "onehot": OneHotPcaEncoder(),
    }
    for name, encoder in encoders.items():
        save_encoder(encoder.fit(rows, labels), folder / name)


def _make_curves(folder: Path) -> None:
    def write(directory: Path) -> None:
        seeds = np.zeros((16, 3), dtype=np.float32)
        curve = LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100, seeds)
        write_curves([curve], directory)

    publish_directory(folder, write, kind="loss-curves", settings={"key": "00"})


def _make_store(folder: Path, write: Callable[[Path], None]) -> None:
    """Publish an artefact, and give its writer a name that is the same every time."""
    made = ArtefactStore(folder).publish("validated_table/people", write, kind="validated-table")
    place, writer = folder / "validated_table" / "people", f"W{0:032x}"
    (place / "data" / made.writer).rename(place / "data" / writer)
    [manifest] = (place / "manifests").iterdir()
    values = {**json.loads(manifest.read_bytes()), "writer": writer}
    del values["sha256"]
    manifest.write_text(json.dumps({**values, "sha256": hash_json(values)}))


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
