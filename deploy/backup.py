"""Back up and restore the database and the bucket of a stack.

The database is copied first: an artefact without its event is made again, and a step that wants to read an artefact
which only has an event says so.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from deploy.layout import BUCKET, HOST, Layout
from deploy.preparing import file_system
from deploy.services import postgresql_program

_DUMP = "database.dump"


def back_up(layout: Layout, target: Path, report: Callable[[str], object]) -> None:
    """Copy database and bucket of a running stack to a folder that is new or empty."""
    if target.exists() and any(target.iterdir()):
        raise InputError(f"The folder {target} is not empty; choose another.")
    target.mkdir(parents=True, exist_ok=True)
    _run(layout, "pg_dump", "--format=custom", f"--file={target / _DUMP}")
    files = file_system(layout)
    (target / BUCKET).mkdir()
    found = files.find(BUCKET)
    for path in found:
        copy = target / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        files.get_file(path, str(copy))
    report(f"The database and {len(found)} files of the bucket are in {target}.")


def restore(layout: Layout, source: Path, report: Callable[[str], object]) -> None:
    """Put a back-up in the place of what PostgreSQL and the bucket hold; nothing else of the stack may run."""
    if not (source / _DUMP).exists() or not (source / BUCKET).is_dir():
        raise InputError(f"There is no back-up in {source}; give a folder that `python -m deploy backup` wrote.")
    _run(layout, "pg_restore", "--clean", "--if-exists", "--no-owner", "--single-transaction", str(source / _DUMP))
    files = file_system(layout)
    kept = {path.relative_to(source).as_posix() for path in (source / BUCKET).rglob("*") if path.is_file()}
    for path in set(files.find(BUCKET)) - kept:
        files.rm_file(path)
    for path in sorted(kept):
        files.put_file(str(source / path), path)
    report(f"The database and {len(kept)} files of the bucket are restored from {source}.")


def _run(layout: Layout, program: str, *arguments: str) -> None:
    addresses = layout.addresses
    command = [
        *(str(postgresql_program(program)), "--host", HOST, "--port", str(layout.ports["postgres"])),
        *("--username", addresses["C2TC_POSTGRES_USER"], "--dbname", addresses["C2TC_POSTGRES_DATABASE"], *arguments),
    ]
    environment = {**layout.environment(), "PGPASSWORD": layout.secrets["C2TC_POSTGRES_PASSWORD"]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{program} failed: {done.stderr.strip()[-500:]}")
