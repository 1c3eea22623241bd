"""A rival and a model are added from outside by one registry line each, and the package works without the bench."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import c2tc_pipeline
from c2tc_pipeline.bench.experiments.grid import Experiment
from c2tc_pipeline.bench.experiments.runner import run_experiment
from c2tc_pipeline.bench.rivals import RIVALS, ClassRival, CondensedClass
from c2tc_pipeline.evaluation.models import MODELS
from c2tc_pipeline.tables.spec import TableSpec

PACKAGE = Path(c2tc_pipeline.__file__).parent
WITHOUT_BENCH = """
import importlib, sys
from pathlib import Path
# An editable install would find the bench of the original.
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in getattr(finder, "__module__", "")]
import pandas as pd
from click.testing import CliRunner
import c2tc_pipeline
package = Path(c2tc_pipeline.__file__).parent
assert package == Path(sys.argv[1]) / "c2tc_pipeline" and not (package / "bench").exists()
for path in sorted(package.rglob("*.py")):
    if path.stem != "__main__":
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        importlib.import_module(name.removesuffix(".__init__"))
from c2tc_pipeline.definitions import build_defs
assert len(build_defs().resolve_all_asset_keys()) > 3
frame = pd.DataFrame({"x": range(200), "word": ["red", "rust", "blue", "navy"] * 50, "y": ["a", "b"] * 100})
assert len(c2tc_pipeline.condense(frame, "y", rows=6).X) == 6
from c2tc_pipeline.cli.main import main
assert CliRunner().invoke(main, ["bench"]).exit_code == 2
"""


class FirstRows(ClassRival):
    """Keep the first rows of each class."""

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        return CondensedClass(chosen=np.arange(count))


class CommonestClass:
    """Predict the most frequent class."""

    def get_params(self) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CommonestClass:
        self.commonest_ = np.bincount(y).argmax()
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.commonest_)


def test_a_rival_and_a_model_from_outside(spec: TableSpec, small: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RIVALS, "first", FirstRows)
    monkeypatch.setitem(MODELS, "commonest", CommonestClass)
    changes = {"methods": ["ours", "first"], "models": ["commonest"], "seeds": 1}
    experiment = Experiment.model_validate({**small.model_dump(), **changes})
    scores = run_experiment(experiment, {"people": spec}, jobs=0)
    assert set(scores["status"]) == {"ok"}
    assert set(scores["method"]) == {"ours", "first", "whole"}
    assert set(scores["model"]) == {"commonest"}


@pytest.mark.slow
def test_the_package_works_without_the_bench(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("bench", "__pycache__")
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=ignored)
    for name in ("data", "pyproject.toml"):
        source = PACKAGE.parent / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_BENCH, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "", "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
