"""Built distributions install and work outside of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from c2tc_pipeline_tests.tools.made_tables import mixed_table

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "c2tc_pipeline"


def run(*command: object, cwd: Path) -> str:
    """Run a command that sees neither the repository nor this environment, and return what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["C2TC_CACHE_DIR"] = str(cwd / "cache")
    done = subprocess.run([*map(str, command)], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built from a source distribution of this repository."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source, cwd=folder)
    assert len([*folder.glob("*.tar.gz")]) == 1
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    expected = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    expected = {name for name in expected if not name.endswith(".pyc")}
    assert len(expected) > 100
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == expected


@pytest.mark.slow
def test_a_wheel_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    home, here = tmp_path / "environment", tmp_path / "here"
    here.mkdir()
    venv.create(home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=here)
    # The dependencies are those of this environment; an editable install of the package there is not seen.
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=here).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))

    imported = run(python, "-c", "import c2tc_pipeline; print(c2tc_pipeline.__file__)", cwd=here).strip()
    assert Path(imported).is_relative_to(site)
    assert "condense" in run(home / "bin" / "c2tc", "--help", cwd=here)
    mixed_table().to_csv(here / "people.csv", index=False)
    command = ["condense", "people.csv", "--label", "outcome", "--ratio", "0.05", "--out", "small"]
    run(home / "bin" / "c2tc", *command, cwd=here)
    assert (here / "small" / "report.html").is_file()
    assert "overall" in run(home / "bin" / "c2tc", "bench", cwd=here)
    run(python, "-m", "compileall", "-q", site / PACKAGE.name, cwd=here)
