"""The sections that a page about condensed tables is made of, whichever page it is.

What belongs here: which values a section shows and the sentences that explain them. How values are worded is in
``wording.py``, how they become HTML in ``markup.py``. ``level`` is that of the section's heading.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.reports import wording
from c2tc_pipeline.reports.class_styles import class_styles
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.markup import Column, Markup, class_name, element, table
from c2tc_pipeline.reports.subject import ReportSubject

MOST_COLUMNS = 100


def notices_section(notices: Sequence[Notice], level: int = 2) -> Markup:
    """Return what was noticed about the input; nothing when all was well."""
    if not notices:
        return Markup("")
    items = [element("li", str(notice)) for notice in notices]
    return element("section", element(f"h{level}", "Notices"), element("ul", *items, css="notices"))


def classes_section(subject: ReportSubject, level: int = 2) -> Markup:
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
            class_name(style.colour, wording.shortened(style.label, 120)),
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
        element(f"h{level}", "Classes"),
        table(columns, body),
        element(
            "p",
            "The last column is the mean number of source rows that one condensed row stands for.",
            css="faint",
        ),
    )


def exhibits_section(exhibits: Iterable[Exhibit], level: int = 2) -> Markup:
    """Return pictures, each under a heading of its own."""
    parts = [part for exhibit in exhibits for part in (element(f"h{level + 1}", exhibit.title), exhibit.html())]
    return element("section", element(f"h{level}", "Pictures"), *parts)


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


def rows_section(subject: ReportSubject, most: int, level: int = 2) -> Markup:
    """Return the first condensed rows in the original schema, at most so many."""
    original, label = subject.original, subject.label_name
    features = [name for name in original.columns if name != label]
    shown = original[[label, *features[:MOST_COLUMNS]]].iloc[:most]
    columns = [Column("stands for", True)]
    columns += [Column(wording.shortened(name, 40), dtype.kind in "iuf") for name, dtype in shown.dtypes.items()]
    body = [
        (wording.count(weight), *(wording.cell(value) for value in row))
        for weight, row in zip(subject.weight.iloc[:most], shown.itertuples(index=False), strict=True)
    ]
    extent = wording.counted(len(original), "row", "rows")
    extent = f"All {extent}" if len(shown) == len(original) else f"The first {len(shown)} of {extent}"
    if len(features) > MOST_COLUMNS:
        extent += f", the first {MOST_COLUMNS} of {wording.count(len(features))} columns"
    return element(
        "section",
        element(f"h{level}", "Condensed rows"),
        element(
            "p",
            f"{extent}, in the units and categories of the source table. "
            "The first column is the row's weight: how many source rows it stands for.",
            css="faint",
        ),
        element("div", table(columns, body), css="rows"),
    )


def provenance_section(settings: Mapping[str, Any], versions: Mapping[str, Any]) -> Markup:
    """Return the settings and versions that lead to the same table again."""
    pair = [
        element("div", element("h3", title), table([Column("name"), Column("value")], body))
        for title, body in (
            ("Settings", list(_flat(settings))),
            ("Versions", list(_flat(versions))),
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
