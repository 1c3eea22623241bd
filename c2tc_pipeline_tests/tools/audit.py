"""Known vulnerabilities of the pinned packages: ``python -m c2tc_pipeline_tests.tools.audit``.
check``.

Asked is the open database OSV. Where it can't be reached one line says so and nothing fails: a check that needs a
network would not be run without one.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
DATABASE = "https://api.osv.dev/v1/query"
REACH_SECONDS = 3.0
# A database that answers, but slowly, must not hold up the check.
LONGEST_SECONDS = 120.0


def audit(database: str = DATABASE, constraints: Path = CONSTRAINTS, longest: float = LONGEST_SECONDS) -> int:
    """Audit the pins, and return the exit code: 1 if a vulnerability is known, 0 if none is or nobody can tell.

    Parameters
    ----------
    database : str
        Where questions go to, in the manner of OSV.
    constraints : Path
        The pins.
    longest : float
        Seconds until it is given up.
    """
    if not _answers(database):
        print("pip-audit: skipped, because no database of vulnerabilities can be reached.")
        return 0
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(constraints)]
    # The pins are complete, so nothing has to be resolved or downloaded.
    plain = ["--no-deps", "--disable-pip", "--progress-spinner", "off"]
    asked = ["--vulnerability-service", "osv", "--osv-url", database, "--timeout", "10"]
    try:
        done = subprocess.run([*command, *plain, *asked], timeout=longest, check=False)
    except subprocess.TimeoutExpired:
        print(f"pip-audit: given up after {longest:g} s, because the database is too slow.")
        return 0
    return done.returncode


def _answers(database: str) -> bool:
    try:
        with urllib.request.urlopen(database, timeout=REACH_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # it wants a question, but it is there
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(audit())
