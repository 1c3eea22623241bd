"""Parse a page for tests: check that tags nest, collect its words, attributes and embedded pictures."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

VOID = {"meta", "img"}
PLAIN = re.compile(
    "html|head|meta|title|style|body|main|nav|section|h[1234]|p|a|span|div|d[ltd]|ul|li|table|thead|tbody|t[rhd]|"
    "figure|figcaption|img|details|summary"
)
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "style", "src", "alt"}


class Page(HTMLParser):
    """A parsed page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open and data.strip():
            self.words.append(data.replace("\N{NO-BREAK SPACE}%", " %").strip())

    def values(self, tag: str, name: str) -> list[str]:
        """Return the values of an attribute of all elements of a kind."""
        return [value for found, attribute, value in self.attributes if (found, attribute) == (tag, name)]

    @property
    def pictures(self) -> list[tuple[str, bytes]]:
        """The embedded pictures, by their kind, ``svg+xml`` or ``png``; other sources are a mistake."""
        found = [re.fullmatch(r"data:image/(svg\+xml|png);base64,(.*)", src) for src in self.values("img", "src")]
        return [(match[1], base64.b64decode(match[2])) for match in found if match] if all(found) else []

    def check_harmless(self) -> None:
        """Check that the page loads nothing, runs nothing, and forbids both to the browser."""
        assert all(PLAIN.fullmatch(tag) for tag in self.tags)
        assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in self.values("meta", "content")
        assert {name for _, name, _ in self.attributes} <= ATTRIBUTES
        for _, name, value in self.attributes:
            if name == "style":
                assert re.fullmatch(r"background:#[0-9a-f]{6}", value)
            if name == "href":
                assert value.startswith("#")
