"""The numbers that most people come for, of one condensed table or of several ratios side by side.

What belongs here: sizes, objective and bound, rows that repeat a record, and the sentences that explain them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.markup import Column, Markup, element, link, table
from c2tc_pipeline.reports.subject import ReportSubject

REPEATED = (
    "A condensed row repeats a record when it equals a source row in every column: because it stands for that row "
    "alone (a singleton) or for equal rows, because it was picked (a medoid), or by coincidence."
)
OBJECTIVE = (
    "The objective adds up, over the classes, the squared distances of the source rows to their condensed rows, "
    "divided by (rows of the class) to the power {gamma}; smaller is better."
)
BOUND = (
    "No way of sharing out the same number of rows has an objective below the lower bound on the same loss curves; the "
    "gap is (objective - bound) / objective."
)


def tiles_section(subject: ReportSubject, *further: Markup) -> Markup:
    """Return the headline numbers of one condensed table as tiles, further tiles after them."""
    summary = subject.summary
    rows_in, rows_out = int(summary["rows_in"]), int(summary["rows_out"])
    bound, gap = summary.get("bound"), summary.get("gap")
    if bound is None:
        quality = f"no lower bound is known for allocation by {subject.allocation.method}"
    else:
        quality = f"lower bound {wording.number(bound)}, gap {wording.share(gap)}"
    tiles = [
        tile("Rows", f"{wording.count(rows_in)} → {wording.count(rows_out)}", wording.one_in(rows_in, rows_out)),
        tile("Objective", wording.number(summary.get("objective")), quality),
        tile("Rows that repeat a record", wording.count(_repeated(subject)), _reasons(subject)),
    ]
    return element("section", element("dl", *tiles, *further, css="tiles"))


def ratios_section(tables: Mapping[float, ReportSubject], anchors: Mapping[float, str]) -> Markup:
    """Return the headline numbers of each ratio of a table, one row a ratio, with a link to what is said about it."""
    columns = [
        Column("ratio"),
        *(Column(title, True) for title in ("rows in", "rows out", "kept")),
        *(Column(title, True) for title in ("objective", "lower bound", "gap", "singletons", "repeated")),
    ]
    body = []
    for ratio, subject in tables.items():
        summary = subject.summary
        rows_in, rows_out = int(summary["rows_in"]), int(summary["rows_out"])
        body.append(
            (
                link(anchors[ratio], wording.ratio(ratio)),
                wording.count(rows_in),
                wording.count(rows_out),
                wording.one_in(rows_in, rows_out),
                wording.number(summary.get("objective")),
                wording.number(summary.get("bound")),
                wording.share(summary.get("gap")),
                wording.count(_singletons(subject)),
                wording.count(_repeated(subject)),
            )
        )
    return element("section", table(columns, body))


def explanation(tables: Iterable[ReportSubject]) -> Markup:
    """Return what the headline numbers of these tables mean."""
    tables = list(tables)
    gammas = dict.fromkeys(wording.number(subject.allocation.gamma) for subject in tables)
    sentences = [REPEATED, OBJECTIVE.format(gamma=" or ".join(gammas))]
    if any(subject.summary.get("bound") is not None for subject in tables):
        sentences.append(BOUND)
    return element("p", " ".join(sentences), css="faint")


def time_tile(stages: Mapping[str, float]) -> Markup:
    """Return how long everything took, as a tile."""
    return tile("Time", wording.seconds(sum(stages.values())), wording.counted(len(stages), "stage", "stages"))


def tile(title: str, value: str, remark: str) -> Markup:
    """Return a number with its name above and a remark below."""
    return element(
        "div",
        element("dt", title),
        element("dd", element("div", value, css="value"), element("div", remark, css="faint")),
        css="tile",
    )


def _singletons(subject: ReportSubject) -> int:
    return int((subject.weight == 1).sum())


def _repeated(subject: ReportSubject) -> int:
    return int(_counts(subject)["total"])


def _counts(subject: ReportSubject) -> Mapping[str, int]:
    """Return the counts of repeated rows; a table that was stored before there were any has its singletons."""
    alone = {"total": _singletons(subject), "singletons": _singletons(subject)}
    return subject.summary.get("repeated_rows", alone)


def _reasons(subject: ReportSubject) -> str:
    names = {
        "singletons": ("singleton", "singletons"),
        "equal_rows": ("for equal rows", "for equal rows"),
        "medoids": ("medoid", "medoids"),
        "coincidences": ("by coincidence", "by coincidence"),
    }
    counts = _counts(subject)
    parts = [wording.counted(counts[name], *forms) for name, forms in names.items() if counts.get(name)]
    return ", ".join(parts) or "none equals a source row"
