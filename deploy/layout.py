"""The folder of a stack: ports, secrets, data and logs, and the environment variables of its services.

Secrets are made once, are in one file that only its owner may read, and reach the services by their environment; they
are in no command line and in no other file of ours but the one that SeaweedFS insists on.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HOST = "127.0.0.1"
BUCKET = "c2tc"
PORTS = ("postgres", "s3", "s3_grpc", "code", "dashboard", "dask", "dask_http", *(f"weed_{n}" for n in range(6)))
SECRETS = (
    "C2TC_POSTGRES_ADMIN_PASSWORD",
    "C2TC_POSTGRES_PASSWORD",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
)
_SETTINGS_NAME = "up.json"
# What every process needs of the caller's environment. Only those that read tables get all of it.
PLAIN = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Layout:
    """The absolute paths of a stack's folder and of its catalogue, and the workers of Dask."""

    folder: Path
    catalogue: Path
    workers: int = 2
    memory: str = "2GB"

    @classmethod
    def recorded(cls, folder: Path) -> Layout:
        """Return the layout with which the stack in a folder was started last."""
        found = json.loads((folder / _SETTINGS_NAME).read_text())
        return cls(folder, Path(found["catalogue"]), found["workers"], found["memory"])

    def make(self, chosen: Mapping[str, int]) -> None:
        """Make the folder, choose ports (free ones unless given and not 0), and make secrets unless they exist."""
        for path in (self.folder, self.logs, self.home, self.s3, self.dask, self.cache, self.temporary):
            path.mkdir(parents=True, exist_ok=True)
        write_private(self._secrets_file, "".join(f"{name}={secrets.token_urlsafe(24)}\n" for name in SECRETS))
        ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
        ports |= {name: port for name, port in chosen.items() if port}
        self._ports_file.write_text(json.dumps(ports, indent=2))
        settings = {"catalogue": str(self.catalogue), "workers": self.workers, "memory": self.memory}
        (self.folder / _SETTINGS_NAME).write_text(json.dumps(settings))
        (self.folder / "stack.env").write_text("".join(f"{k}={v}\n" for k, v in self.addresses.items()))

    @property
    def logs(self) -> Path:
        """One log per service."""
        return self.folder / "logs"

    @property
    def home(self) -> Path:
        """``DAGSTER_HOME``."""
        return self.folder / "dagster"

    @property
    def postgres(self) -> Path:
        """The database's own folder."""
        return self.folder / "postgres"

    @property
    def s3(self) -> Path:
        """The volumes of the object store."""
        return self.folder / "s3"

    @property
    def dask(self) -> Path:
        """The folder into which Dask workers spill."""
        return self.folder / "dask"

    @property
    def cache(self) -> Path:
        """Weights, loss curves and scores."""
        return self.folder / "cache"

    @property
    def temporary(self) -> Path:
        """Temporary files of the services, so that none is left elsewhere."""
        return self.folder / "tmp"

    @property
    def _secrets_file(self) -> Path:
        return self.folder / "secrets.env"

    @property
    def _ports_file(self) -> Path:
        return self.folder / "ports.json"

    @cached_property
    def ports(self) -> dict[str, int]:
        """The port of each service."""
        found: dict[str, int] = json.loads(self._ports_file.read_text())
        return found

    @cached_property
    def secrets(self) -> dict[str, str]:
        """All secrets by the name of their variable."""
        return dict(line.split("=", 1) for line in self._secrets_file.read_text().splitlines())

    @property
    def addresses(self) -> dict[str, str]:
        """The environment by which a program finds the stack, without a secret in it."""
        return {
            "DAGSTER_HOME": str(self.home),
            "C2TC_CATALOGUE": str(self.catalogue),
            "C2TC_STORAGE": f"s3://{BUCKET}/store",
            "C2TC_CACHE_DIR": str(self.cache),
            "C2TC_POSTGRES_HOST": HOST,
            "C2TC_POSTGRES_PORT": str(self.ports["postgres"]),
            "C2TC_POSTGRES_USER": "dagster",
            "C2TC_POSTGRES_DATABASE": "dagster",
            "C2TC_CODE_HOST": HOST,
            "C2TC_CODE_PORT": str(self.ports["code"]),
            "C2TC_UI_URL": f"http://{HOST}:{self.ports['dashboard']}",
            "C2TC_DASK": f"dask://{HOST}:{self.ports['dask']}",
            "AWS_ENDPOINT_URL_S3": f"http://{HOST}:{self.ports['s3']}",
            "TMPDIR": str(self.temporary),
            "no_proxy": HOST,
        }

    def environment(self, *names: str, outer: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a service, with these secrets and no others."""
        taken = {name: os.environ[name] for name in PLAIN if name in os.environ} if outer is None else outer
        return {**taken, **self.addresses, **{name: self.secrets[name] for name in names}}


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, unless it is there already."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "w") as stream:
        stream.write(text)


def free_ports(count: int) -> list[int]:
    """Return ports that are free now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
