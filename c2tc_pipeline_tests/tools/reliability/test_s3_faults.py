"""S3 that is busy, slow, silent or gone: tried again within bounds, published once, and never torn."""

from __future__ import annotations

import http.client
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from c2tc_pipeline_tests.storage.places import damages, fetched, files_of, leftovers, publish, store_at
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server, running_process
from c2tc_pipeline_tests.tools.serving import serving

pytestmark = pytest.mark.faults

BUSY_ANSWER = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
# A request that is busy is answered 503 and not handed on, a slow one waits, and of a silent one the server does what
# it is asked, but the client never gets the answer.
BUSY, SLOW, SILENT = "busy", "slow", "silent"
Rule = Callable[[int, str], str | None]
"""How a request is treated, by its number from 0 on and its method."""


class Proxy(ThreadingHTTPServer):
    """Hands requests on to a server, headers unchanged, since they are signed."""

    daemon_threads = True

    def __init__(self, server: S3Server, rule: Rule) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.target, self.rule = urlsplit(server.endpoint_url).netloc, rule
        self.treated: list[str | None] = []
        self._lock = threading.Lock()
        self.seen = S3Server(f"http://127.0.0.1:{self.server_address[1]}")

    def treat(self, method: str) -> str | None:
        with self._lock:
            self.treated.append(self.rule(len(self.treated), method))
            return self.treated[-1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that went away."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        treatment = self.server.treat(self.command)
        if treatment == BUSY:
            self._answer(503, [("Content-Type", "application/xml")], BUSY_ANSWER)
            return
        if treatment == SLOW:
            time.sleep(0.3)
        connection = http.client.HTTPConnection(self.server.target, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if treatment == SILENT:
            self.close_connection = True
            return
        dropped = ("transfer-encoding", "connection") + (() if self.command == "HEAD" else ("content-length",))
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped]
        self._answer(answer.status, headers, content)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        has_body = self.command != "HEAD"
        for name, value in [*headers, *([("Content-Length", str(len(content)))] if has_body else [])]:
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _hand_on

    def log_message(self, *arguments: object) -> None:
        """Log nothing."""


@contextmanager
def proxied(server: S3Server, rule: Rule) -> Iterator[Proxy]:
    """Stand between clients and a server as long as the block lasts."""
    proxy = Proxy(server, rule)
    with serving(proxy):
        yield proxy


@pytest.fixture
def root() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tries than in earnest: what is tested is that they end, and how."""
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 2)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")


def every_other_put_silent() -> Rule:
    puts: list[int] = []

    def rule(number: int, method: str) -> str | None:
        puts.extend([number] * (method == "PUT"))
        return SILENT if method == "PUT" and len(puts) % 2 else None

    return rule


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        (lambda number, method: BUSY if number % 2 == 0 else None, 4),
        (lambda number, method: SLOW, 4),
        (every_other_put_silent(), 4),
    ],
    ids=["every other answer is 503", "slow", "answers to puts get lost"],
)
def test_each_version_is_published_once_and_read_whole(s3_server: S3Server, root: str, rule: Rule, least: int) -> None:
    with proxied(s3_server, rule) as proxy:
        store = store_at(root, proxy.seen.access)
        published = [publish(store, text) for text in ("first", "second", "third")]
        assert fetched(store) == files_of("third")
    direct = store_at(root, s3_server.access)
    assert [version.version for version in published] == direct.versions("art") == [1, 2, 3]
    assert (leftovers(direct), damages(direct)) == ([], {})
    assert len(proxy.treated) - proxy.treated.count(None) >= least


def test_a_server_that_stays_busy_is_an_error_that_may_pass(s3_server: S3Server, root: str, impatient: None) -> None:
    direct = store_at(root, s3_server.access)
    publish(direct)
    with (
        proxied(s3_server, lambda number, method: BUSY) as proxy,
        pytest.raises(OSError, match=r"request rate|could not be reached"),
    ):
        publish(store_at(root, proxy.seen.access), "new")
    assert (direct.versions("art"), damages(direct)) == ([1], {})
    assert publish(direct, "newer").version == 2


def test_the_server_is_killed_and_restarted(tmp_path: Path, root: str, impatient: None) -> None:
    with running_process(tmp_path) as process:
        store = store_at(root, process.server.access)
        publish(store)
        upload, uploaded = store.backend.write_file, list[str]()

        def upload_and_kill(path: str, source: Path) -> None:
            upload(path, source)
            uploaded.append(path)
            process.kill()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store.backend, "write_file", upload_and_kill)
            with pytest.raises(OSError, match="could not be reached"):
                publish(store, "new")
        assert len(uploaded) == 1
        with pytest.raises(OSError, match="could not be reached"):
            fetched(store)
        process.start()
        again = store_at(root, process.server.access)
        assert fetched(again) == files_of("old")
        assert (again.versions("art"), damages(again), leftovers(again)) == ([1], {}, uploaded)
        assert publish(again, "newer").version == 2
        assert fetched(again) == files_of("newer")
