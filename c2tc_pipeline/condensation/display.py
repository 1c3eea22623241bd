"""Short descriptions of a condensed table, as text and as an HTML card for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.table import CondensedTable

_CLASSES_SHOWN = 6
_ROWS_SHOWN = 5


def describe(table: CondensedTable) -> str:
    """Return five lines: size, classes, columns, spread and notices."""
    counts = dict(zip(map(str, table.classes), table.allocation.counts, strict=True))
    largest = sorted(counts.items(), key=lambda entry: -entry[1])
    shown = ", ".join(f"{name} {count:,}" for name, count in largest[:_CLASSES_SHOWN])
    more = f" and {len(counts) - _CLASSES_SHOWN:,} more classes" if len(counts) > _CLASSES_SHOWN else ""
    notices = len(table.notices)
    return "\n".join(
        [
            f"CondensedTable {_name(table)}: {_rows_in(table):,} rows -> {len(table):,}",
            f"  {table.label_name}: {shown}{more}",
            f"  columns: {table.original_rows.shape[1] - 1:,} in .original, {table.X.shape[1]:,} encoded in .X",
            f"  training rows: .expand() draws {_drawn(table):,} from the rows and their spread",
            f"  notices: {notices:,} in .notices" if notices else "  notices: none",
        ]
    )


def html_card(table: CondensedTable) -> str:
    """Return an HTML fragment: size, verdict if the table was evaluated, classes, and the first rows."""
    classes = pd.DataFrame(
        {
            table.label_name: [str(value) for value in table.classes],
            "source rows": table.class_rows,
            "condensed rows": list(table.allocation.counts),
        }
    ).sort_values("condensed rows", ascending=False, kind="stable")
    hidden = len(classes) - _CLASSES_SHOWN
    verdict = str(table.summary.get("verdict") or "")
    parts = [
        f"<p><b>CondensedTable {escape(_name(table))}</b>: {_rows_in(table):,} rows &rarr; {len(table):,}</p>",
        f"<p>{escape(verdict)}</p>" if verdict else "",
        classes.head(_CLASSES_SHOWN).to_html(index=False, border=0),
        f"<p>and {hidden:,} more classes</p>" if hidden > 0 else "",
        table.original_rows.head(_ROWS_SHOWN).to_html(index=False, border=0, max_cols=12),
    ]
    return f"<div>{''.join(parts)}</div>"


def _name(table: CondensedTable) -> str:
    return repr(table.summary.get("table", "table"))


def _rows_in(table: CondensedTable) -> int:
    return int(table.weight.sum())


def _drawn(table: CondensedTable) -> int:
    from c2tc_pipeline.condensation.expand import default_rows

    return default_rows(table.weight.to_numpy())
