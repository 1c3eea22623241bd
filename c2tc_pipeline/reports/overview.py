"""The overview of operations: one page over all tables, the worst first, with a filter by text."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.html import render_page

STATES = ("failed", "late", "missing", "running", "fresh")
"""States of a table, the worst first: the last run failed; older than allowed; never made; being made; up to date."""
# The page's only script; its policy names the hash, so that the browser runs no other.
_SCRIPT = """
const box = document.querySelector('input'), found = document.querySelector('output');
const rows = [...document.querySelectorAll('tbody tr')];
const texts = rows.map(row => row.textContent.toLowerCase());
const filter = () => {
  const words = box.value.toLowerCase().split(/\\s+/);
  rows.forEach((row, place) => { row.hidden = !words.every(word => texts[place].includes(word)); });
  found.textContent = rows.filter(row => !row.hidden).length.toLocaleString('en');
};
box.addEventListener('input', filter);
for (const button of document.querySelectorAll('button')) {
  button.addEventListener('click', () => { box.value = button.value; filter(); });
}
document.querySelector('form').hidden = false;
"""


@dataclass(frozen=True)
class TableState:
    """What an operator has to know of a table."""

    table: str
    state: str  # one of STATES
    age_seconds: float | None = None  # since the results in force were made
    rows_in: int | None = None  # of the training side
    rows_out: Sequence[int] = ()  # condensed rows at each ratio
    verdict: str = ""  # on the results in force
    row_worth: str = ""  # as verdict.worth_number returns it
    kept: float | None = None  # share of the whole table's score, the lowest over the ratios
    seconds: float | None = None  # over all steps, as is CPU time
    cpu_seconds: float | None = None
    peak_memory_mb: float | None = None  # the largest growth of memory in one step
    failure: str = ""  # why the last run of something that is not made yet failed
    warnings: Sequence[str] = ()  # of checks that stop nothing
    report: str = ""  # http, https or relative to the page; others are not linked


def render_overview(rows: Sequence[TableState], *, moment: str = "") -> str:
    """Return one self-contained HTML page over all tables; ``moment`` says as of when.

    By state, the worst first; in a state those that keep the least of the whole table's score, then the oldest.

    Examples
    --------
    >>> page = render_overview([TableState("flights", "fresh"), TableState("people", "failed", failure="Disk full.")])
    >>> page.index("people") < page.index("flights")
    True
    """
    counts = Counter(row.state for row in rows)
    if unknown := set(counts) - set(STATES):
        raise ValueError(f"The states {sorted(unknown)} are unknown; use {', '.join(STATES)}.")
    digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
    return render_page(
        "overview.html",
        "Overview of tables",
        "",
        script=_SCRIPT,
        script_digest=digest,
        verdict=_verdict(counts),
        moment=moment,
        total=wording.count(len(rows)),
        counts=[(state, wording.count(counts[state])) for state in STATES if counts[state]],
        rows=[_shown(row) for row in sorted(rows, key=_severity)],
    )


def _verdict(counts: Counter[str]) -> str:
    total = wording.counted(counts.total(), "table", "tables")
    bad = [f"{wording.count(counts[state])} {state}" for state in STATES[:3] if counts[state]]
    if not bad:
        return f"{total}: nothing failed, is late or missing."
    return f"{total}: {', '.join(bad)}."


def _severity(row: TableState) -> tuple[int, float, float, str]:
    kept = float("inf") if row.kept is None else row.kept
    return STATES.index(row.state), kept, -(row.age_seconds or 0.0), row.table


def _shown(row: TableState) -> dict[str, Any]:
    rows_in = wording.MISSING if row.rows_in is None else wording.count(row.rows_in)
    rows_out = ", ".join(wording.count(rows) for rows in sorted(row.rows_out))
    return {
        "table": wording.shortened(row.table, 80),
        "link": row.report if urlsplit(row.report).scheme in ("", "http", "https") else "",
        "state": row.state,
        "age": wording.MISSING if row.age_seconds is None else wording.seconds(row.age_seconds),
        "rows": f"{rows_in} → {rows_out}" if rows_out else rows_in,
        "kept": wording.MISSING if row.kept is None else wording.share(round(row.kept, 3)),
        "worth": row.row_worth or wording.MISSING,
        "seconds": wording.MISSING if row.seconds is None else wording.seconds(row.seconds),
        "cpu": wording.MISSING if row.cpu_seconds is None else wording.seconds(row.cpu_seconds),
        "memory": wording.MISSING if row.peak_memory_mb is None else f"{wording.count(round(row.peak_memory_mb))} MB",
        "failure": wording.shortened(row.failure, 300),
        "warnings": [wording.shortened(text, 300) for text in row.warnings],
        "verdict": wording.shortened(row.verdict, 400),
    }
