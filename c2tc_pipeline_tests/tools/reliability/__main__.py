"""Run the kill matrix and the tests of all other faults, and write the kills into ``docs/reliability.md``.

The parts ``kills``, ``faults`` and ``write`` can be run alone; the kills are kept in ``runs/reliability``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from c2tc_pipeline_tests.storage.s3_server import running_server
from c2tc_pipeline_tests.tools.reliability.kill_matrix import PLACES, Chain, run_matrix
from c2tc_pipeline_tests.tools.reliability.moments import MOMENTS

ROOT = Path(__file__).parents[3]


def kills(path: Path, jobs: int, places: list[str], moments: list[str]) -> None:
    """Run the kill matrix in some of its places and at some of its moments; results for others are kept."""
    known = json.loads(path.read_text()) if path.exists() else []
    seen = {(chain["place"], chain["moment"]): chain for chain in known}

    def report(chain: Chain) -> None:
        seen[chain.place, chain.moment] = vars(chain)
        print(f"{chain.place}, {chain.moment}: {chain.kills} kills, {len(chain.differing)} differences", flush=True)
        path.write_text(json.dumps([*seen.values()], indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="c2tc-kills-") as name:
        folder = Path(name)
        (folder / "s3").mkdir()
        with running_server(folder / "s3") as server:
            os.environ.update(server.environment)
            run_matrix(folder, server, jobs=jobs, report=report, places=places, moments=moments)


def faults() -> int:
    """Run the tests of all other faults."""
    here = Path(__file__).parent
    chosen = [str(here), f"--ignore={here / 'test_kill_matrix.py'}", "-p", "no:cacheprovider", "-q"]
    return subprocess.run([sys.executable, "-m", "pytest", *chosen], cwd=ROOT, check=False).returncode


def kills_table(chains: Sequence[Mapping[str, Any]]) -> str:
    """Return the kill matrix: a line for each moment and place, and their sums."""

    def numbers(of: Sequence[Mapping[str, Any]]) -> str:
        counted = [sum(chain["kills"] for chain in of)]
        counted += [sum(len(chain[name]) for chain in of) for name in ("differing", "torn", "lost")]
        counted += [sum(chain[name] for chain in of) for name in ("leftovers", "versions_ahead")]
        return " | ".join(map(str, counted))

    # Chains that ran side by side ended in any order.
    ordered = sorted(chains, key=lambda chain: (PLACES.index(chain["place"]), [*MOMENTS].index(chain["moment"])))
    head = "killed | storage | kills | files that differ | torn | lost | leftovers collected | versions made twice"
    return "\n".join(
        [
            f"| {head} |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
            *(f"| {chain['moment']} | {chain['place']} | {numbers([chain])} |" for chain in ordered),
            f"| **all** | | {numbers(chains)} |",
        ]
    )


def main() -> int:
    """Run the chosen parts."""
    parser = argparse.ArgumentParser(prog="python -m c2tc_pipeline_tests.tools.reliability", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], "kills", "faults", "write"], help="all by default")
    parser.add_argument("--jobs", type=int, default=2, help="chains of kills side by side")
    parser.add_argument("--place", action="append", choices=PLACES, help="only kills there; repeatable")
    parser.add_argument("--moment", action="append", choices=[*MOMENTS], help="only kills then; repeatable")
    parser.add_argument("--out", type=Path, default=Path("runs") / "reliability")
    chosen = parser.parse_args()
    parts = chosen.parts or ["kills", "faults", "write"]
    chosen.out.mkdir(parents=True, exist_ok=True)
    results, document = chosen.out / "kills.json", ROOT / "docs" / "reliability.md"
    if "kills" in parts:
        kills(results, chosen.jobs, chosen.place or [*PLACES], chosen.moment or [*MOMENTS])
    code = faults() if "faults" in parts else 0
    if "write" in parts:
        table = kills_table(json.loads(results.read_text(encoding="utf-8")))
        text = document.read_text(encoding="utf-8")
        marked = re.compile(r"(?<=<!-- begin kills -->\n).*(?=\n<!-- end kills -->)", re.DOTALL)
        document.write_text(marked.sub(lambda _: table, text), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
