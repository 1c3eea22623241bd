"""Run ``c2tc`` in a subprocess, and write catalogues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import Result

import c2tc_pipeline

Run = Callable[..., Result]
"""Runs ``c2tc`` with the given arguments; see the fixture ``run``."""


def write_catalogue(**tables: dict[str, Any]) -> None:
    """Write ``data/catalog.yaml`` in the working directory; JSON is YAML."""
    Path("data").mkdir(exist_ok=True)
    Path("data/catalog.yaml").write_text(json.dumps({"tables": tables}), encoding="utf-8")


def run_process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run ``c2tc`` in a subprocess, with changes to the environment."""
    root = str(Path(c2tc_pipeline.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-m", "c2tc_pipeline", *map(str, arguments)],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": root, **environment},
        check=False,
    )
