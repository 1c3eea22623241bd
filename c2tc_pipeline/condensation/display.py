"""Short descriptions of a condensed table, as text and as an HTML card for notebooks."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.table import CondensedTable

_CLASSES_SHOWN = 6
_ROWS_SHOWN = 5
_COLUMNS_SHOWN = 7

# Overrides the table styles of notebooks, so that the card is the same in all of them, light or dark.
_STYLE = """<style>
.c2tc-card table {border-collapse: collapse; margin: 0 0 0.8em 0; font-size: 90%}
.c2tc-card th, .c2tc-card td {text-align: right; padding: 0.15em 0 0.15em 1.2em; white-space: nowrap}
.c2tc-card th:first-child, .c2tc-card td:first-child {text-align: left; padding-left: 0}
.c2tc-card thead {border-bottom: 1px solid #888}
.c2tc-card p {margin: 0 0 0.6em 0}
</style>"""


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
    """Return an HTML fragment: size, verdict if the table was evaluated, classes, and the heaviest rows of each."""
    classes = pd.DataFrame(
        {
            table.label_name: [str(value) for value in table.classes],
            "source rows": [f"{rows:,}" for rows in table.class_rows],
            "condensed rows": table.allocation.counts,
        }
    ).sort_values("condensed rows", ascending=False, kind="stable")
    hidden = len(classes) - _CLASSES_SHOWN
    verdict = str(table.summary.get("verdict") or "")
    parts = [
        f"<p><b>CondensedTable {escape(_name(table))}</b>: {_rows_in(table):,} rows &rarr; {len(table):,}</p>",
        f"<p>{escape(verdict)}</p>" if verdict else "",
        classes.head(_CLASSES_SHOWN).to_html(index=False, border=0),
        f"<p>and {hidden:,} more classes</p>" if hidden > 0 else "",
        heaviest_rows(table).to_html(index=False, border=0, na_rep=""),
    ]
    return f'{_STYLE}<div class="c2tc-card" style="overflow-x: auto">{"".join(parts)}</div>'


def heaviest_rows(table: CondensedTable) -> pd.DataFrame:
    """Return the rows that stand for most source rows, in turn of each of the largest classes, the label first."""
    codes = np.repeat(np.arange(len(table.classes)), table.allocation.counts)
    order = pd.DataFrame({"code": codes, "weight": table.weight.to_numpy()}).sort_values("weight", ascending=False)
    order["class_rows"] = order.groupby("code")["weight"].transform("sum")
    order["turn"] = order.groupby("code").cumcount()
    first = order.sort_values(["turn", "class_rows"], ascending=[True, False], kind="stable").head(_ROWS_SHOWN)
    first = first.sort_values(["class_rows", "code", "turn"], ascending=[False, True, True], kind="stable")
    rows = table.original_rows.iloc[first.index]
    columns = [table.label_name, *rows.columns.drop(table.label_name)[:_COLUMNS_SHOWN]]
    shown = pd.DataFrame({name: shown_values(rows[name], table.original_rows[name]) for name in columns})
    more = rows.shape[1] - shown.shape[1]
    shown.insert(
        1, "stands for", [f"{weight:,} rows" for weight in table.weight.loc[rows.index]], allow_duplicates=True
    )
    return shown.assign(**{f"and {more} more columns": "..."}) if more else shown


def shown_values(values: pd.Series[Any], column: pd.Series[Any]) -> pd.Series[Any]:
    """Return some values of a column with numbers and times as text, to a hundredth of the column's range.

    Digits are grouped in columns that reach 10,000, so that years stay years. Other values are returned as they are.

    Examples
    --------
    >>> prices = pd.Series([211.658, 1050.7525])
    >>> shown_values(prices, prices).tolist()
    ['212', '1051']
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        by_days = column.max() - column.min() >= pd.Timedelta(days=100) or (column == column.dt.normalize()).all()
        return values.dt.strftime("%Y-%m-%d" if by_days else "%Y-%m-%d %H:%M")
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column) or not column.notna().any():
        return values
    low, high = float(column.min()), float(column.max())
    largest = max(abs(low), abs(high))
    size = high - low or largest or 1.0
    if not (size > 1e-6 and largest < 1e12):
        return values
    decimals = 0 if pd.api.types.is_integer_dtype(column) else max(0, 2 - math.floor(math.log10(size)))
    form = f"{{:{',' if largest >= 10_000 else ''}.{decimals}f}}"
    # Adding zero turns -0.0 into 0.0.
    return values.map(lambda value: form.format(round(float(value), decimals) + 0.0), na_action="ignore")


def _name(table: CondensedTable) -> str:
    return repr(table.summary.get("table", "table"))


def _rows_in(table: CondensedTable) -> int:
    return int(table.weight.sum())


def _drawn(table: CondensedTable) -> int:
    from c2tc_pipeline.condensation.expand import default_rows

    return default_rows(table.weight.to_numpy())
