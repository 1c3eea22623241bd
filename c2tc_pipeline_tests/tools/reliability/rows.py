"""What a test of a fault saw, as a row of the document: injected how, expected what, seen what."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

FILE_VARIABLE = "C2TC_RELIABILITY_ROWS"
"""Names the file to which rows are added; without it none are."""


@dataclass(frozen=True)
class Row:
    """One fault.

    Parameters
    ----------
    fault, injected, expected, seen : str
        What happened, how it was made to happen, what has to come of it, and what did: with the numbers of this run.
    """

    fault: str
    injected: str
    expected: str
    seen: str


def saw(fault: str, *, injected: str, expected: str, seen: str) -> None:
    """Write a row down; the test has asserted it."""
    path = os.environ.get(FILE_VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(Row(fault, injected, expected, seen))) + "\n")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
