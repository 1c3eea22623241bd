"""Audit the pinned packages for known vulnerabilities: ``python -m c2tc_pipeline_tests.tools.audit``.

Without a network it prints one line and succeeds.
"""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
DATABASE = "https://api.osv.dev/v1/query"
CONNECT_SECONDS = 3.0
AUDIT_SECONDS = 120.0


def audit(database: str = DATABASE, constraints: Path = CONSTRAINTS) -> int:
    """Return 1 if a pinned package has a known vulnerability; 0 if none has, or the database can't be reached."""
    if not _is_reachable(database):
        print("pip-audit: skipped, because no database of vulnerabilities can be reached.")
        return 0
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(constraints)]
    # The pins are complete, so nothing has to be resolved or downloaded.
    command += ["--no-deps", "--disable-pip", "--progress-spinner", "off"]
    command += ["--vulnerability-service", "osv", "--osv-url", database, "--timeout", "10"]
    try:
        return subprocess.run(command, timeout=AUDIT_SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        print(f"pip-audit: stopped after {AUDIT_SECONDS:g} s, because the database is too slow.")
        return 0


def _is_reachable(database: str) -> bool:
    try:
        with urllib.request.urlopen(database, timeout=CONNECT_SECONDS):
            return True
    except urllib.error.HTTPError:
        return True  # it answers, though only to POST
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(audit())
