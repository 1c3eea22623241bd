"""Between a client and an S3 server: slow, busy, or silent at the wrong moment."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from c2tc_pipeline_tests.storage.s3_server import S3Server

BUSY = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Mood(StrEnum):
    """How a request is treated."""

    WELL = "well"
    BUSY = "busy"
    SLOW = "slow"
    SILENT = "silent"


Rule = Callable[[int, str], Mood]
"""Told the number of a request, from 0 on, and its method, it says how the request is treated."""


class Proxy(ThreadingHTTPServer):
    """Hands requests on, headers unchanged, since they are signed.

    Parameters
    ----------
    server : S3Server
        The real one.
    rule : callable
        See ``Rule``. Busy requests are answered 503 and never reach the server; slow ones take a while; of silent ones
        the server does what it is asked, but the client never hears of it.
    pause : float
        Seconds that a slow request takes longer.
    """

    daemon_threads = True

    def __init__(self, server: S3Server, rule: Rule, pause: float) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.target = urlsplit(server.endpoint_url).netloc
        self.rule, self.pause = rule, pause
        self.moods: list[Mood] = []
        self._lock = threading.Lock()

    def treat(self, method: str) -> Mood:
        with self._lock:
            self.moods.append(self.rule(len(self.moods), method))
            return self.moods[-1]

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""

    @property
    def seen(self) -> S3Server:
        """The server as clients see it."""
        return S3Server(f"http://127.0.0.1:{self.server_address[1]}")


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        mood = self.server.treat(self.command)
        if mood is Mood.BUSY:
            self._answer(503, [("Content-Type", "application/xml")], BUSY)
            return
        if mood is Mood.SLOW:
            time.sleep(self.server.pause)
        connection = http.client.HTTPConnection(self.server.target, timeout=60)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if mood is Mood.SILENT:
            self.close_connection = True
            return
        dropped = ("transfer-encoding", "connection") + (() if self.command == "HEAD" else ("content-length",))
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped]
        self._answer(answer.status, headers, content)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _hand_on

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def proxied(server: S3Server, rule: Rule, *, pause: float = 0.3) -> Iterator[Proxy]:
    """Stand between clients and a server as long as the block lasts."""
    with Proxy(server, rule, pause) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            proxy.shutdown()
            thread.join()
