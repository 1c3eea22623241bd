"""What steps are forked with: it is all there, and nothing that a fork would lose runs in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import c2tc_pipeline
from c2tc_pipeline.pipeline.jobs import step_executor
from c2tc_pipeline.pipeline.preloading import PRELOADED

# Forks itself, as the executor's process does, and tells what its copy imports to do what every step does.
FORKED = """
import importlib, os, sys, tempfile, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
assert threading.active_count() == 1, threading.enumerate()
# Arrow's allocator has one, and starts it again in a copy.
names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
assert len([name for name in names if name != "jemalloc_bg_thd"]) == 1, names
if os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
before = set(sys.modules)
import dagster as dg
from c2tc_pipeline.pipeline.instance import open_instance
with tempfile.TemporaryDirectory() as home, open_instance(home) as instance:
    instance.get_runs(limit=1)
print(len(before), *sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
"""


def test_the_executor_preloads_them() -> None:
    assert step_executor().name == "multiprocess"
    for name in PRELOADED:
        __import__(name)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads as Linux does")
def test_a_forked_step_opens_its_databases_without_imports() -> None:
    """A name that Dagster has given up would be left out without a word, and each step would import for a second."""
    root = str(Path(c2tc_pipeline.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", FORKED, *PRELOADED],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": root, "OMP_NUM_THREADS": "1", "HOME": "/nonexistent"},
    )
    assert done.returncode == 0, done.stderr
    known, *new = done.stdout.split()
    assert int(known) > 2000
    assert not {"sqlalchemy", "alembic", "pandera", "torch", "matplotlib", "structlog"} & set(new), new
