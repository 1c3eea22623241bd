"""Default paths, and checks of settings that the command line and the catalogue share."""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.common.errors import InputError

# Relative to the working directory.
CATALOGUE = Path("data") / "catalog.yaml"
STORAGE = Path("runs") / "store"
DAGSTER_HOME = Path("runs") / "dagster"
RESULTS = Path("runs") / "results"
BENCH = Path("runs") / "bench"


def checked_ratio(ratio: float) -> float:
    """Return the ratio, or raise InputError if it is not in (0, 1]."""
    if not 0 < ratio <= 1:
        raise InputError(f"Ratio is {ratio:g}, but must be above 0 and at most 1 (0.001 keeps one row in a thousand).")
    return ratio
