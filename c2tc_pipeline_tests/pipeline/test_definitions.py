"""What Dagster loads: that it loads, from the workspace file, without a warning and without what takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import c2tc_pipeline
from c2tc_pipeline.pipeline.instance import prepare_home

ROOT = Path(c2tc_pipeline.__file__).parents[1]


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, check=False)


def test_loading_waits_for_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from c2tc_pipeline.definitions import build_defs\n"
        "build_defs(storage='memory://unused').resolve_job_def('experiments_job')\n"
        "heavy = ('torch', 'sklearn', 'scipy', 'matplotlib', 'pandera')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = run_python("-c", code)
    assert done.stdout == "[]\n", done.stderr
    assert "Warning" not in done.stderr


@pytest.mark.slow
def test_the_workspace_file_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(prepare_home(tmp_path)))
    [entry] = yaml.safe_load((ROOT / "workspace.yaml").read_text())["load_from"]
    done = run_python("-m", "dagster", "definitions", "validate", "-w", "workspace.yaml")
    assert done.returncode == 0, done.stderr
    assert f"Validation successful for code location {entry['python_module']}." in done.stdout
    # Dagster's own command is superseded by one of another package, and says so.
    warnings = [line for line in (done.stdout + done.stderr).splitlines() if "Warning:" in line]
    assert [line for line in warnings if "SupersessionWarning" not in line] == []
