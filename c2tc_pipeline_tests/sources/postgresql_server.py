"""A real PostgreSQL server for tests: its own data directory, on loopback, on a free port.

The server refuses to run as root, so that under root it runs as another user of the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from c2tc_pipeline_tests.storage.s3_server import free_ports

USER, DATABASE = "reader", "postgres"
# A word that occurs nowhere else, so that a leak of it is found by searching for it.
PASSWORD = "canary-password-6e2b"


class PostgresServer:
    """A server that can be stopped and started again."""

    def __init__(self, programs: Path, folder: Path, account: str | None) -> None:
        self.programs, self.folder, self.account = programs, folder, account
        self.port = free_ports(1)[0]

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder / "data"), *arguments]
        quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run(command, user=self.account, cwd=self.folder, check=True, timeout=60, **quiet)

    def make(self) -> None:
        word = self.folder / "word"
        word.write_text(PASSWORD)
        if self.account is not None:
            for path in (self.folder, word):
                shutil.chown(path, self.account)
        self.run("initdb", "-U", USER, "-A", "scram-sha-256", f"--pwfile={word}", "-E", "UTF8", "--no-sync")

    def start(self) -> None:
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self.run("pg_ctl", "-w", "-l", str(self.folder / "log.txt"), "-o", settings, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-w", "-m", "immediate", "stop")

    @property
    def address(self) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    def table(self, name: str) -> str:
        return f"{self.address}?table={name}"

    def query(self, sql: str) -> str:
        return f"{self.address}?query={quote(sql)}"

    @property
    def environment(self) -> dict[str, str]:
        return {"PGPASSWORD": PASSWORD}

    @property
    def dsn(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{DATABASE}"

    @contextmanager
    def connected(self) -> Iterator[Any]:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.dsn, autocommit=True) as connection, connection.cursor() as cursor:
            yield cursor

    def execute(self, *statements: str) -> None:
        with self.connected() as cursor:
            for statement in statements:
                cursor.execute(statement)


@contextmanager
def running_postgresql() -> Iterator[PostgresServer]:
    """Start a server, and end it with the block; skip where its programs are absent."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    found = str(programs[-1]) if programs else shutil.which("initdb")
    if found is None:
        pytest.skip("the programs of PostgreSQL are not on this machine")
    account = _account() if os.geteuid() == 0 else None
    # Not below pytest's own folder, which no other user may enter.
    folder = Path(tempfile.mkdtemp(prefix="c2tc-postgresql-"))
    server = PostgresServer(Path(found).parent, folder, account)
    try:
        server.make()
        server.start()
        yield server
    finally:
        with suppress(subprocess.CalledProcessError):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _account() -> str:
    users = {user.pw_name for user in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in users:
            return name
    pytest.skip("PostgreSQL does not run as root, and there is no other user")
