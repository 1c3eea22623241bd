"""The default table fits its README, its catalogue entry and the script that makes it."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path
from types import ModuleType

import pandas as pd
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
