"""Where things are when nobody says otherwise; relative to where a command is given."""

from __future__ import annotations

from pathlib import Path

CATALOGUE = Path("data") / "catalog.yaml"
STORAGE = Path("runs") / "store"
DAGSTER_HOME = Path("runs") / "dagster"
RESULTS = Path("runs") / "results"
BENCH = Path("runs") / "bench"
