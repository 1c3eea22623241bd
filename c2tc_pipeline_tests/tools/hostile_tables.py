"""A table of injection attempts, and a server that records requests which must not happen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd

from c2tc_pipeline_tests.tools.serving import serving

MARK = "takenover"
"""Set by an injected script, in the window and in the title."""


class Listener:
    """A local server; ``asked`` lists the requested paths."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[str] = []


@contextmanager
def listening() -> Iterator[Listener]:
    """Serve on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listener.asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()
            self.wfile.write(f"window.{MARK}=1".encode())

        do_POST = do_PUT = do_HEAD = do_GET

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        listener = Listener(port)
        yield listener


def hostile_texts(url: str) -> list[str]:
    """Return texts that a page must show as text: run or rendered, they set the mark or request the address."""
    run = f"window.{MARK}=1;document.title='{MARK}'"
    return [
        f"<script>{run}</script>",
        f'"><img src="{url}/picture" onerror="{run}">',
        f"' onmouseover='{run}",
        f"</title></style></script><script src={url}/script></script>",
        f"<svg onload={run}><iframe src={url}/frame></svg>",
        f"![picture]({url}/markdown.png)",
        f"[click](javascript:{run})",
        f"[reference]: {url}/reference",
        f"<{url}/autolink>",
        f"{url}/bare and www.example.com and ann@example.com",
        f"| a | b |\n|---|---|\n| ![x]({url}/table.png) | c |",
        f"`code` **bold** ~~gone~~ $x^2$ # head\n\n<meta http-equiv=refresh content=0;url={url}/refresh>",
        f"{{{{{run}}}}} ${{{run}}} {{% {run} %}}",
        '=HYPERLINK("http://example.com")',
        "@SUM(1+1)*cmd|' /C calc'!A0",
        "\x1b]0;title\x07\x1b[31m red \u202e reversed \u0000 nul",
        "../../../etc/passwd",
        "..\\..\\windows\\system32",
    ]


def hostile_table(url: str, rows: int = 240) -> tuple[pd.DataFrame, str]:
    """Return a table with hostile names, classes and cells, and its label."""
    texts = hostile_texts(url)
    rng = np.random.default_rng(0)
    label = f"label <b>{texts[0]}</b> {texts[5]}"
    classes = np.array(texts[:6], dtype=object)
    codes = np.arange(rows) % len(classes)
    # Numbers that depend on the class, so that there is something to learn.
    columns = {f"{number} {text}": rng.normal(codes, 1.0) for number, text in enumerate(texts)}
    cells = {f"cells {number}": rng.choice(np.array(texts, dtype=object), rows) for number in range(2)}
    return pd.DataFrame({**columns, **cells, label: classes[codes]}), label
