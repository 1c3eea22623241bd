"""Canary secrets, and a search for them in files and output.

Searched are the plain, percent-encoded, JSON-escaped, base64, hexadecimal and UTF-16 forms, also inside Parquet and
gzip.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

import pyarrow as pa
import pyarrow.parquet as pq

# Characters that addresses encode, as AWS secrets have them.
_TAIL = "/+%"


class Canaries:
    """Secrets by name of the place where they enter.

    >>> canaries = Canaries()
    >>> word = canaries.make("webhook")
    >>> canaries.found_in(f"posted to http://host/{word}".encode()), canaries.found_in(b"posted to the webhook")
    (['webhook'], [])
    """

    def __init__(self) -> None:
        self._forms: dict[str, list[bytes]] = {}

    def make(self, name: str, *, plain: bool = False) -> str:
        """Return a new secret for a place; a plain one has letters, digits and dashes only."""
        word = f"canary-{name.replace('_', '-').lower()}-7f3a9c" + ("" if plain else _TAIL)
        self.add(name, word)
        return word

    def add(self, name: str, word: str) -> None:
        """Search for a secret that exists already."""
        self._forms[name] = list(dict.fromkeys(forms_of(word)))

    def found_in(self, content: bytes) -> list[str]:
        """Return the places whose secret occurs in some bytes."""
        return [name for name, forms in self._forms.items() if any(form in content for form in forms)]

    def found_among(self, contents: Mapping[str, bytes]) -> dict[str, list[str]]:
        """Return places by name of the file in which their secret occurs."""
        found = {name: self.found_in(_unpacked(name, content)) for name, content in contents.items()}
        return {name: places for name, places in found.items() if places}

    def found_below(self, *folders: Path, without: Iterable[Path] = ()) -> dict[str, list[str]]:
        """Return places by path, searching files below some folders and their names."""
        left_out = {path.resolve() for path in without}
        found: dict[str, list[str]] = {}
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file() and path.resolve() not in left_out:
                    places = self.found_in(_unpacked(path.name, path.read_bytes()) + b"\n" + bytes(path))
                    found |= {str(path): places} if places else {}
        return found


def forms_of(word: str) -> Iterable[bytes]:
    """Yield the forms in which programs write a word."""
    raw = word.encode()
    # A part of it counts too.
    yield raw.rstrip(_TAIL.encode())
    yield raw
    yield quote(word, safe="").encode()
    yield quote_plus(word).encode()
    yield json.dumps(word)[1:-1].encode()
    yield binascii.hexlify(raw)
    yield word.encode("utf-16-le")
    for before in range(3):
        # Without the characters that depend on the bytes before and after.
        encoded = base64.b64encode(b"\0" * before + raw)
        start = -(-8 * before // 6)
        yield encoded[start : len(encoded) // 4 * 4 - 4]
        yield base64.urlsafe_b64encode(b"\0" * before + raw)[start : len(encoded) // 4 * 4 - 4]


def _unpacked(name: str, content: bytes) -> bytes:
    """Return the bytes of a file and of its decompressed content."""
    if content[:4] == b"PAR1":
        try:
            table = pq.read_table(io.BytesIO(content))
        except (pa.ArrowException, OSError):
            return content
        return content + repr(table.to_pydict()).encode("utf-8", "replace") + repr(table.schema).encode()
    if content[:2] == b"\x1f\x8b":
        try:
            return content + gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return content
    return content
