"""The sections of the report, in the order of the page.

What belongs here: which values a section shows and the sentences that explain them. How values are worded is
in ``wording.py``, how they become HTML in ``markup.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.class_styles import class_styles
from c2tc_pipeline.reports.figures import MOST_DISCS, class_shares, projection, stage_seconds
from c2tc_pipeline.reports.markup import Column, Markup, element, picture, swatch, table
from c2tc_pipeline.reports.search_figures import allocation_trace, loss_curves
from c2tc_pipeline.reports.subject import ReportSubject

MOST_ROWS = 50
MOST_COLUMNS = 100


def headline_section(subject: ReportSubject) -> Markup:
    """Return the numbers that most people come for."""
    summary = subject.summary
    rows_in, rows_out = int(summary["rows_in"]), int(summary["rows_out"])
    bound, gap = summary.get("bound"), summary.get("gap")
    if bound is None:
        quality = f"no lower bound is known for allocation by {subject.allocation.method}"
    else:
        quality = f"lower bound {wording.number(bound)}, gap {wording.share(gap)}"
    singletons = int((subject.weight == 1).sum())
    stages = summary.get("seconds", {})
    tiles = [
        ("Rows", f"{wording.count(rows_in)} → {wording.count(rows_out)}", wording.one_in(rows_in, rows_out)),
        ("Objective", wording.number(summary.get("objective")), quality),
        (
            "Singletons",
            wording.count(singletons),
            f"{'repeats' if singletons == 1 else 'repeat'} a real record"
            if singletons
            else "all rows stand for several",
        ),
        ("Time", wording.seconds(sum(stages.values())), wording.counted(len(stages), "stage", "stages")),
    ]
    sentences = [
        "A singleton is a condensed row that stands for a single source row.",
        "The objective adds up, over the classes, the squared distances of the source rows to their "
        "condensed rows, divided by (rows of the class) to the power "
        f"{wording.number(subject.allocation.gamma)}; smaller is better.",
    ]
    if bound is not None:
        sentences.append(
            "No way of sharing out the same number of rows has an objective below the lower bound on the "
            "same loss curves; the gap is (objective - bound) / objective."
        )
    return element(
        "section",
        element("dl", *(_tile(*tile) for tile in tiles), css="tiles"),
        element("p", " ".join(sentences), css="faint"),
    )


def _tile(title: str, value: str, remark: str) -> Markup:
    return element(
        "div",
        element("dt", title),
        element("dd", element("div", value, css="value"), element("div", remark, css="faint")),
        css="tile",
    )


def notices_section(subject: ReportSubject) -> Markup:
    """Return what was noticed about the input; nothing when all was well."""
    if not subject.notices:
        return Markup("")
    items = [element("li", str(notice)) for notice in subject.notices]
    return element("section", element("h2", "Notices"), element("ul", *items, css="notices"))


def classes_section(subject: ReportSubject) -> Markup:
    """Return the classes before and after."""
    rows, counts = np.asarray(subject.class_rows), np.asarray(subject.allocation.counts)
    columns = [
        Column(subject.label_name),
        Column("source rows", True),
        Column("share", True),
        Column("condensed rows", True),
        Column("share", True),
        Column("source rows behind one", True),
    ]
    styles = class_styles(subject.classes, subject.class_rows)
    body = [
        (
            element("div", swatch(style.colour), element("span", wording.shortened(style.label, 120)), css="keyed"),
            wording.count(before),
            wording.share(before / rows.sum()),
            wording.count(after),
            wording.share(after / counts.sum()),
            f"{before / after:,.1f}",
        )
        for style, before, after in zip(styles, rows, counts, strict=True)
    ]
    return element(
        "section",
        element("h2", "Classes"),
        table(columns, body),
        element(
            "p",
            "The last column is the mean number of source rows that one condensed row stands for.",
            css="faint",
        ),
    )


def pictures_section(subject: ReportSubject) -> Markup:
    """Return the pictures that this table has something to show in."""
    styles = class_styles(subject.classes, subject.class_rows)
    allocation, counts = subject.allocation, [int(count) for count in subject.allocation.counts]
    changes = ", ".join(
        f"{style.short} from {wording.share(before / sum(subject.class_rows))} to {wording.share(after / sum(counts))}"
        for style, before, after in zip(styles[:5], subject.class_rows, counts, strict=False)
    )
    parts = [
        element("h2", "Pictures"),
        element("h3", "Class shares"),
        picture(
            class_shares(styles, subject.class_rows, counts),
            f"Bars of the share of each class before and after: {changes}.",
            "Each class's share of the source rows (pale) and of the condensed rows (full colour). "
            "When the shares differ widely the axis is logarithmic: compare the ends of the bars, "
            "not their lengths.",
        ),
        element("h3", "The table in two dimensions"),
        picture(
            projection(styles, subject.projection),
            f"Scatter plot of {wording.counted(len(subject.weight), 'condensed row', 'condensed rows')} "
            "among a sample of the source rows.",
            "The encoded rows on their first two principal components. Specks are a sample of the source "
            "rows, discs are condensed rows; the more source rows a disc stands for, the larger it is. "
            f"At most {wording.count(MOST_DISCS)} condensed rows are drawn.",
        ),
    ]
    if subject.curves is not None:
        parts += [
            element("h3", "Loss curves"),
            picture(
                loss_curves(styles, subject.curves, counts, allocation.gamma),
                "Curves of each class's term in the objective, falling with its number of condensed rows.",
                "What each class adds to the objective, by the number of condensed rows it gets. The large "
                "dot is the number it got. A class with a loss of zero there has no dot.",
            ),
        ]
    if len(allocation.trace) > 1:
        parts += [
            element("h3", "Search for the allocation"),
            picture(
                allocation_trace(allocation),
                f"The best objective falls from {wording.number(allocation.trace[0].best)} "
                f"to {wording.number(allocation.trace[-1].best)} "
                f"in {wording.counted(len(allocation.trace) - 1, 'iteration', 'iterations')}.",
                f"Each iteration of {allocation.method} proposes another way to share out the condensed rows "
                "and keeps it when the objective falls. The search cost "
                f"{wording.counted(allocation.evaluations, 'k-means run', 'k-means runs')}.",
            ),
        ]
    if stages := subject.summary.get("seconds"):
        longest = max(stages, key=stages.__getitem__)
        parts += [
            element("h3", "Time by stage"),
            picture(
                stage_seconds(stages),
                f"Bars of the time of each stage, the longest being {longest} with {wording.seconds(stages[longest])}.",
                "Wall-clock time, in the order in which the stages ran.",
            ),
        ]
    return element("section", *parts)


def columns_section(subject: ReportSubject) -> Markup:
    """Return what each column was taken for and how it was encoded."""
    columns = [
        Column("column"),
        Column("role"),
        Column("encoding"),
        Column("reason"),
        Column("distinct", True),
        Column("missing", True),
    ]
    body = [
        (
            wording.shortened(row["column"], 160),
            wording.cell(row["role"]),
            wording.cell(row["encoding"]),
            wording.cell(row["reason"], limit=300),
            wording.count(row["distinct"]),
            wording.count(row["missing"]),
        )
        for row in subject.roles.to_dict("records")
    ]
    return element(
        "section",
        element("h2", "Columns"),
        element(
            "p",
            "What each column was taken for and how it was encoded. Roles can be set by hand.",
            css="faint",
        ),
        table(columns, body),
    )


def rows_section(subject: ReportSubject) -> Markup:
    """Return the first condensed rows in the original schema."""
    original, label = subject.original, subject.label_name
    features = [name for name in original.columns if name != label]
    shown = original[[label, *features[:MOST_COLUMNS]]].iloc[:MOST_ROWS]
    columns = [Column("stands for", True)]
    columns += [Column(wording.shortened(name, 40), dtype.kind in "iuf") for name, dtype in shown.dtypes.items()]
    body = [
        (wording.count(weight), *(wording.cell(value) for value in row))
        for weight, row in zip(subject.weight.iloc[:MOST_ROWS], shown.itertuples(index=False), strict=True)
    ]
    extent = wording.counted(len(original), "row", "rows")
    extent = f"All {extent}" if len(shown) == len(original) else f"The first {len(shown)} of {extent}"
    if len(features) > MOST_COLUMNS:
        extent += f", the first {MOST_COLUMNS} of {wording.count(len(features))} columns"
    return element(
        "section",
        element("h2", "Condensed rows"),
        element(
            "p",
            f"{extent}, in the units and categories of the source table. "
            "The first column is the row's weight: how many source rows it stands for.",
            css="faint",
        ),
        element("div", table(columns, body), css="rows"),
    )


def provenance_section(subject: ReportSubject) -> Markup:
    """Return the settings and versions that lead to the same table again."""
    summary = subject.summary
    settings = {"seed": summary.get("seed"), "ratio": summary.get("ratio"), **summary.get("settings", {})}
    pair = [
        element("div", element("h3", title), table([Column("name"), Column("value")], body))
        for title, body in (
            ("Settings", list(_flat(settings))),
            ("Versions", list(_flat(summary.get("versions", {})))),
        )
    ]
    return element(
        "section",
        element("h2", "Settings and versions"),
        element("p", "The same source, settings, seed and versions give the same condensed table.", css="faint"),
        element("div", *pair, css="pair"),
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Return nested settings as dotted names and JSON values."""
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"{prefix}{name}", wording.shortened(text, 200)
