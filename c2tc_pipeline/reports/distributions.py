"""Distributions of columns in the source and in rows drawn from its condensed table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.reports import wording
from c2tc_pipeline.tables.kinds import Kind, to_numbers, to_text
from c2tc_pipeline.tables.statistics import as_numbers

MAX_COLUMNS = 9
_BINS = 24
_CATEGORIES = 6
# The shares of a column's values that a histogram shows; those beyond are in its first and last bar.
_SHOWN = (0.005, 0.995)


@dataclass(frozen=True)
class Distribution:
    """Shares of a column's values in the source and in drawn rows, by bins between ``edges`` or by categories.

    ``missing`` are the shares of missing values before and after; those of the values are of what is present.
    """

    column: str
    source: np.ndarray
    drawn: np.ndarray
    edges: np.ndarray | None = None
    categories: tuple[str, ...] = ()
    missing: tuple[float, float] = (0.0, 0.0)
    is_moment: bool = False


def column_distributions(table: CondensedTable) -> list[Distribution]:
    """Return the distributions of the most important columns for the label, or of the first where that is not known.

    Rows are drawn with the classes of the source. The distribution of the source is that of the training rows, from the
    encoder's quantiles and from the shares of categories. Numbers that are scaled by their limits alone are left out.
    """
    importance = (table.summary.get("column_weights") or {}).get("importance") or {}
    names = [str(name) for name in table.original_rows.columns if name != table.label_name]
    names.sort(key=lambda name: -importance.get(name, 0.0))
    drawn, _, weight = table.expand(class_mix="source")
    found: list[Distribution] = []
    numbers = _source_numbers(table)
    for name in names:
        if len(found) == MAX_COLUMNS:
            break
        if name in table.spread.shares:
            found.append(_of_categories(table, name, drawn[name], weight.to_numpy()))
        elif name in numbers:
            found += _of_numbers(table, name, *numbers[name], drawn[name], weight.to_numpy())
    return found


def _source_numbers(table: CondensedTable) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return values and their shares in the source, of each column that is scaled by its quantiles."""
    if table.encoder.get_params().get("numeric") != "quantile":
        return {}
    missing = {mark.column: mark for mark in table.encoder.missing_marks()}
    rows = (table.X.to_numpy() if table.spread.means is None else table.spread.means).astype(np.float64)
    # The first two moments of the encoded columns over the source.
    squares = rows**2 + table.spread.deviation.astype(np.float64) ** 2
    moments = np.stack([table.weight @ rows, table.weight @ squares]) / table.weight.sum()
    place = {name: number for number, name in enumerate(table.X.columns)}
    found = {}
    for part in table.encoder.parts_:
        if isinstance(part, NumericPart):
            for name, knots, heights in zip(part.columns, part.knots, part.heights, strict=True):
                own = moments[:, place[name]]
                if (mark := missing.get(place[name])) is not None and (share := moments[0, mark.mark]) < 1:
                    own = (own - share * np.array([mark.height, mark.height**2])) / (1 - share)
                found[name] = knots, _shares(heights, own)
    return found


def _shares(heights: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return the share of each value, given the heights of all values (the middles of their steps) and their moments.

    Neighbouring shares add up to twice the distance of their heights, which leaves one unknown; the moments give it by
    least squares. Heights of a selection of the values get the distance between the middles of their neighbours.
    """
    alternating = np.where(np.arange(len(heights)) % 2, -1.0, 1.0)
    fixed = alternating * np.append(0.0, np.cumsum(-alternating[:-1] * 2 * np.diff(heights)))
    low, high = (-fixed[::2]).max(), fixed[1::2].min(initial=np.inf)
    off = np.stack([heights - moments[0], heights**2 - moments[1]])
    slopes = off @ alternating
    if low > high + 1e-9 or not slopes.any():
        return np.diff(np.concatenate([heights[:1], (heights[1:] + heights[:-1]) / 2, heights[-1:]]))
    first = np.clip(-(slopes @ (off @ fixed)) / (slopes @ slopes), low, high)
    shares = np.maximum(fixed + alternating * first, 0)
    return np.asarray(shares / shares.sum())


def _of_numbers(
    table: CondensedTable, name: str, values: np.ndarray, shares: np.ndarray, drawn: pd.Series[Any], weight: np.ndarray
) -> Iterator[Distribution]:
    """Yield the distribution of a column of numbers; nothing where all are equal."""
    role: dict[str, Any] = dict(table.roles.set_index("column").loc[name])
    after = as_numbers(to_numbers(drawn).values).astype(np.float64)
    present = ~np.isnan(after)
    low, high = values[np.searchsorted(np.cumsum(shares), _SHOWN).clip(0, len(values) - 1)]
    if low == high:
        low, high = values[0], values[-1]
    if low == high or not present.any():
        return
    if role["kind"] == Kind.INTEGER:
        # Bins of as many integers each.
        low, high = round(low) - 0.5, round(high) + 0.5
        step = max(1, -(-int(high - low) // _BINS))
        edges = low + step * np.arange(-(-int(high - low) // step) + 1)
    else:
        edges = np.linspace(low, high, _BINS + 1)
    inside = np.nextafter(edges[0], edges[1]), np.nextafter(edges[-1], edges[0])
    before_counts, _ = np.histogram(np.clip(values, *inside), edges, weights=shares)
    after_counts, _ = np.histogram(np.clip(after[present], *inside), edges, weights=weight[present])
    missing = float(role["missing"]) / int(table.weight.sum()), float(1 - weight[present].sum() / weight.sum())
    yield Distribution(
        name,
        before_counts / before_counts.sum(),
        after_counts / after_counts.sum(),
        edges=edges,
        missing=missing,
        is_moment=role["kind"] == Kind.MOMENT,
    )


def _of_categories(table: CondensedTable, name: str, drawn: pd.Series[Any], weight: np.ndarray) -> Distribution:
    """Return the shares of the most frequent categories, and of all others; a missing value is a category."""
    shares = table.spread.shares[name]
    whole = slice(shares.starts[-2], shares.starts[-1])
    before = pd.Series(shares.shares[whole].astype(np.float64), _texts(shares.values.iloc[whole]))
    before = before.groupby(level=0, sort=False).sum().sort_values(ascending=False, kind="stable")
    shown = before.iloc[: _CATEGORIES if len(before) > _CATEGORIES + 1 else len(before)]
    after = pd.Series(weight / weight.sum(), _texts(drawn)).groupby(level=0).sum().reindex(shown.index, fill_value=0.0)
    names, source, found = list(shown.index), list(shown), list(after)
    if (rest := max(0.0, 1 - sum(source))) > 5e-4:
        names, source, found = [*names, "others"], [*source, rest], [*found, max(0.0, 1 - sum(found))]
    return Distribution(name, np.array(source), np.array(found), categories=tuple(names))


def _texts(values: pd.Series[Any]) -> pd.Index[Any]:
    return pd.Index([wording.MISSING if pd.isna(value) else str(value) for value in to_text(values)])
