"""The tables of ``docs/reliability.md``, made from what a run saw; the text around them is written by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from c2tc_pipeline_tests.tools.reliability.kill_matrix import PLACES
from c2tc_pipeline_tests.tools.reliability.moments import MOMENTS
from c2tc_pipeline_tests.tools.reliability.rows import Row, read_rows

KILLS_NAME, FAULTS_NAME = "kills.json", "faults.jsonl"


def kills_table(chains: Sequence[Mapping[str, Any]]) -> str:
    """Return the kill matrix: a line for each moment and place, and their sums."""
    lines = [
        "| killed | storage | kills | files that differ | torn | lost | leftovers collected | versions made twice |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]

    def numbers(of: Sequence[Mapping[str, Any]]) -> str:
        counted = [sum(chain["kills"] for chain in of)]
        counted += [sum(len(chain[name]) for chain in of) for name in ("differing", "torn", "lost")]
        counted += [sum(chain[name] for chain in of) for name in ("leftovers", "versions_ahead")]
        return " | ".join(map(str, counted))

    # Chains that ran side by side ended in any order.
    ordered = sorted(chains, key=lambda chain: (PLACES.index(chain["place"]), [*MOMENTS].index(chain["moment"])))
    lines += [f"| {chain['moment']} | {chain['place']} | {numbers([chain])} |" for chain in ordered]
    return "\n".join([*lines, f"| **all** | | {numbers(chains)} |"])


def faults_table(rows: Sequence[Row]) -> str:
    """Return the other faults, a line each."""
    lines = ["| fault | injected how | expected | seen |", "|---|---|---|---|"]
    lines += [f"| {row.fault} | {row.injected} | {row.expected} | {row.seen} |" for row in rows]
    return "\n".join(lines)


def with_table(text: str, name: str, table: str) -> str:
    """Return a document in which the table of a name is this one.

    Examples
    --------
    >>> print(with_table("<!-- begin kills -->\\n<!-- end kills -->\\nMore.", "kills", "new"))
    <!-- begin kills -->
    new
    <!-- end kills -->
    More.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"The document has no place for the table {name!r}.")
    return f"{before}{begin}\n{table}\n{end}{after}"


def write_document(results: Path, document: Path) -> None:
    """Put what was seen into a document, as far as it was looked for."""
    text = document.read_text(encoding="utf-8")
    if (results / KILLS_NAME).exists():
        text = with_table(text, "kills", kills_table(json.loads((results / KILLS_NAME).read_text(encoding="utf-8"))))
    if (results / FAULTS_NAME).exists():
        text = with_table(text, "faults", faults_table(read_rows(results / FAULTS_NAME)))
    document.write_text(text, encoding="utf-8")
