"""A program that injects every fault and writes what was seen into ``docs/reliability.md``.

It has three parts, which can be run alone: ``kills``, ``faults`` and ``write``. What the first two saw is kept in
``runs/reliability`` for the third.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from c2tc_pipeline_tests.tools.reliability.document import FAULTS_NAME, KILLS_NAME, write_document
from c2tc_pipeline_tests.tools.reliability.kill_matrix import PLACES, Chain
from c2tc_pipeline_tests.tools.reliability.moments import MOMENTS
from c2tc_pipeline_tests.tools.reliability.rows import FILE_VARIABLE

ROOT = Path(__file__).parents[2]


def kills(out: Path, jobs: int, places: list[str], moments: list[str]) -> None:
    """Run the kill matrix, in some of its places and at some of its moments; what was seen elsewhere is kept."""
    from c2tc_pipeline_tests.storage.s3_server import running_server
    from c2tc_pipeline_tests.tools.reliability.kill_matrix import run_matrix

    path = out / KILLS_NAME
    known = json.loads(path.read_text()) if path.exists() else []
    seen = {(chain["place"], chain["moment"]): chain for chain in known}

    def told(chain: Chain) -> None:
        seen[chain.place, chain.moment] = vars(chain)
        print(f"{chain.place}, {chain.moment}: {chain.kills} kills, {len(chain.differing)} differences", flush=True)
        path.write_text(json.dumps([*seen.values()], indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="c2tc-kills-") as name:
        folder = Path(name)
        (folder / "s3").mkdir()
        with running_server(folder / "s3") as server:
            os.environ.update(server.environment)
            run_matrix(folder, server, jobs=jobs, told=told, places=places, moments=moments)


def faults(out: Path) -> int:
    """Run the tests of all other faults, which write down what they see."""
    path = out / FAULTS_NAME
    path.unlink(missing_ok=True)
    here = Path(__file__).parent
    # The part of the matrix that is a test is no part of this.
    chosen = [str(here), f"--ignore={here / 'test_kill_matrix.py'}", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, FILE_VARIABLE: str(path.absolute())}
    return subprocess.run([sys.executable, "-m", "pytest", *chosen], cwd=ROOT, env=environment, check=False).returncode


def main() -> int:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m c2tc_pipeline_tests.tools.reliability", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "kills", "faults", "write"], help="all by default")
    parser.add_argument("--jobs", type=int, default=2, help="chains of kills side by side")
    parser.add_argument("--place", action="append", choices=PLACES, help="only kills there; repeatable")
    parser.add_argument("--moment", action="append", choices=[*MOMENTS], help="only kills then; repeatable")
    parser.add_argument("--out", type=Path, default=Path("runs") / "reliability")
    chosen = parser.parse_args()
    parts = chosen.parts or ["kills", "faults", "write"]
    chosen.out.mkdir(parents=True, exist_ok=True)
    code = 0
    if "kills" in parts:
        kills(chosen.out, chosen.jobs, chosen.place or [*PLACES], chosen.moment or [*MOMENTS])
    if "faults" in parts:
        code = faults(chosen.out)
    if "write" in parts:
        write_document(chosen.out, ROOT / "docs" / "reliability.md")
    return code


if __name__ == "__main__":
    sys.exit(main())
