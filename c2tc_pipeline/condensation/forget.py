"""Remove source rows from a condensed table, under the same clusters of all others.

Only the condensed rows that stand for a forgotten row are computed again; the others stay as they are, to the bit. The
rows that remain go through the same steps as any table: encode, summarise the members, look for repeated rows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.clustering.sums import cluster_sums, nearest_members, own_distances
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.condensation.clusters import Clusters, equal_but_for_rounding, singleton_message
from c2tc_pipeline.condensation.column_weights import ColumnWeights
from c2tc_pipeline.condensation.encoded import ClassCursor
from c2tc_pipeline.condensation.spread import spliced_spread, without_few_numbers
from c2tc_pipeline.condensation.steps import encode, gather_members, member_spread, repeated_rows
from c2tc_pipeline.condensation.summary import project
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.storage import without_unused_strings
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.frames import as_pandas
from c2tc_pipeline.tables.roles import ColumnRole, Role
from c2tc_pipeline.tables.statistics import TableStatistics, gather_statistics
from c2tc_pipeline.tables.table import Table, known_codes

# Notices that describe the rows as they are, and are written anew.
_OWN_NOTICES = ("singletons", "repeated_rows", "forgotten")
_ANOTHER_SOURCE = "The table to forget rows of was made from another source; give the one that was condensed."


@dataclass(frozen=True)
class Forgotten:
    """A table without some source rows, and what that took."""

    table: CondensedTable
    rows: int
    recomputed: int = 0
    disappeared: int = 0
    merged: int = 0
    strings_removed: int = 0
    strings_kept: int = 0

    def counts(self) -> dict[str, int]:
        """Return the numbers by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "table"}


def forget_rows(table: CondensedTable, source: Any, rows: np.ndarray) -> Forgotten:
    """Return a condensed table without some source rows, under the same clusters of the others.

    Every number, category, weight and count that such a row went into is computed again from the other rows. What the
    encoder learnt from it stays: scales, class shares, the weights of the network, and strings that the codes of others
    depend on. So do loss curves and the choice of gamma.

    Parameters
    ----------
    table : CondensedTable
        What was condensed; not changed.
    source : DataFrame, Table or Blocks
        The source table that it was made from, with all its rows.
    rows : ndarray of int
        Positions in ``source``; those that no condensed row stands for change nothing.

    Raises
    ------
    InputError
        When ``source`` is not the table's source, or when too little would be left.

    See Also
    --------
    CondensedTable.membership : The condensed row of every source row.

    Examples
    --------
    >>> from c2tc_pipeline import condense
    >>> frame = pd.DataFrame({"x": [1.0, 2.5, 7.0, 8.0, 3.5, 6.0], "y": ["a", "a", "b", "b", "a", "b"]})
    >>> small = condense(frame, label="y", rows=2)
    >>> without = forget_rows(small, frame, np.array([4])).table
    >>> small.original["x"].round(2).tolist(), without.original["x"].tolist(), without.weight.tolist()
    ([2.33, 7.0], [1.75, 7.0], [2, 3])
    """
    membership = table.membership
    source_rows, condensed_rows = membership["source_row"].to_numpy(), membership["condensed_row"].to_numpy()
    kept = ~np.isin(source_rows, rows)
    if kept.all():
        return Forgotten(table, 0)
    old_codes = np.repeat(np.arange(len(table.classes)), table.allocation.counts)
    if len(np.unique(old_codes[condensed_rows[kept]])) < 2:
        raise InputError("Rows of one class only would be left, but a table needs two; delete the table instead.")
    blocks = source if isinstance(source, Blocks) else Blocks.of_frame(as_pandas(source)[0])
    blocks = blocks.read_as(table.encoder.readings_, blocks.columns)
    remaining = _remaining(table, blocks, source_rows, condensed_rows, kept)
    settings = table.summary.get("settings", {})
    encoded = encode(table.encoder, remaining)
    X = encoded.X
    chosen = table.summary.get("column_weights")
    # Rows in the space of weighted distances, in which they were clustered.
    weighted = X if chosen is None else ColumnWeights.from_dict(chosen).scaled(RowSource.of(X)).read()
    # Where the remaining rows stand in the order of classes, in which they are encoded.
    places = ClassCursor(encoded.edges).places(remaining.codes[source_rows[kept]])
    members = np.concatenate([np.empty(len(places), dtype=condensed_rows.dtype), condensed_rows[~kept]])
    members[places] = condensed_rows[kept]
    is_kept = np.arange(len(members)) < len(places)
    least = settings.get("min_rows_per_condensed_row", 1)
    thinned = thin_clusters(weighted, members, is_kept, old_codes, least, table.classes)
    size, codes, labels = len(thinned.old), old_codes[thinned.old], thinned.labels
    # Summed in the order of classes, as when the table was made.
    means = cluster_sums(X, labels, size).means()
    gaps = own_distances(weighted, labels, cluster_sums(weighted, labels, size).means())
    nearest = nearest_members(labels, gaps, size)
    medoids = settings.get("representative") == "medoid"
    losses = np.bincount(codes[labels], gaps, len(table.classes))
    class_rows = np.bincount(codes[labels], minlength=len(table.classes))
    present = np.unique(codes)
    allocation = _allocation(table, codes, class_rows, losses, present)
    # The classes that are left, numbered anew.
    narrowed = _narrowed(remaining, present)
    clusters = Clusters(allocation, means.astype(X.dtype), np.bincount(labels, minlength=size), labels, nearest)
    hidden = max(least, settings.get("min_category_rows", 1))
    gathered = gather_members(narrowed, clusters, medoids=medoids, min_category_rows=hidden, min_rows=least)
    edges = np.concatenate([[0], np.cumsum(narrowed.class_rows)])
    now = member_spread(
        dataclasses.replace(encoded, edges=edges), clusters, gathered.votes, least, hidden, medoids=medoids
    )
    recomputed = X[nearest] if medoids else clusters.centers
    recomputed, now = without_few_numbers(recomputed, now, clusters.weights, table.encoder.missing_marks(), least)
    touched = thinned.touched
    centers = table.X.to_numpy()[thinned.old].copy()
    centers[touched] = recomputed[touched]
    y = table.y.iloc[thinned.old].reset_index(drop=True)
    columns = [
        _spliced(table.original_rows[str(now.name)].iloc[thinned.old].reset_index(drop=True), now, touched)
        for now in gathered.columns
    ]
    original = pd.concat([*columns, y], axis=1)
    trimmed = without_unused_strings(table.encoder, _distinct_values(remaining))
    result = dataclasses.replace(
        table,
        X=pd.DataFrame(centers, columns=table.X.columns),
        y=y,
        weight=pd.Series(clusters.weights, name="weight"),
        original_rows=original,
        spread=spliced_spread(table.spread, now, thinned.old, touched),
        members=pd.DataFrame({"source_row": source_rows[kept], "condensed_row": labels[places].astype(np.int32)}),
        encoder=trimmed.encoder,
        allocation=allocation,
        classes=[table.classes[code] for code in present],
        class_rows=[int(class_rows[code]) for code in present],
        curves=[table.curves[code] for code in present],
        projection=project(X, edges, centers, clusters, narrowed, table.summary.get("seed", 0)),
    )
    repeated = repeated_rows(narrowed, result, clusters).found(
        encoded=int(equal_but_for_rounding(X[nearest], centers).sum()), medoids=medoids
    )
    found = Forgotten(
        result,
        rows=int((~kept).sum()),
        recomputed=int(touched.sum()),
        disappeared=thinned.disappeared,
        merged=thinned.merged,
        strings_removed=trimmed.removed,
        strings_kept=trimmed.kept,
    )
    _update_summary(found, repeated.to_dict(), repeated.notices(size))
    return found


def _remaining(
    table: CondensedTable, blocks: Blocks, source_rows: np.ndarray, condensed_rows: np.ndarray, kept: np.ndarray
) -> Table:
    """Return the rows that remain as a table with the roles of the condensed one; refuse another source."""
    roles = {
        row["column"]: ColumnRole(row["column"], Role(row["role"]), row["reason"], row["distinct"], row["missing"])
        for row in table.roles.to_dict("records")
    }
    if any(name not in blocks.columns for name in (*roles, table.label_name)):
        raise InputError(_ANOTHER_SOURCE)
    if getattr(table.encoder, "noise", 0):
        raise InputError("The table was encoded with noise, which can't be repeated for some rows; condense it anew.")
    classes = np.array(table.classes, dtype=object if isinstance(table.classes[0], str) else None)
    labels = (frame[table.label_name] for frame in blocks.frames([table.label_name]))
    codes = np.concatenate([known_codes(own, classes) for own in labels])
    if len(codes) <= source_rows.max():
        raise InputError(_ANOTHER_SOURCE)
    # Every row must be of the class that its condensed row has.
    own = known_codes(table.y, classes)[condensed_rows]
    if (codes[source_rows] != own).any():
        raise InputError(_ANOTHER_SOURCE)
    sides = np.full(len(codes), -1, dtype=np.int8)
    sides[source_rows[kept]] = 0
    nothing = TableStatistics.of(pd.DataFrame(index=range(1)))
    unknown = Table(blocks, table.label_name, classes, table.y.dtype, codes, sides, nothing, {})
    given = {name: role.role for name, role in roles.items()}
    # Kinds are those of all rows, the forgotten ones among them, so that a column keeps its type.
    everything = dataclasses.replace(unknown, sides=np.where(np.isin(np.arange(len(codes)), source_rows), 0, -1))
    kinds = gather_statistics(everything.rows(), list(roles), given, classes=len(classes)).kinds
    statistics = gather_statistics(unknown.rows(), list(roles), given, classes=len(classes))
    statistics = dataclasses.replace(statistics, roles=roles, kinds=kinds)
    shown = {name for name in table.original_rows.columns if name != table.label_name}
    dropped = tuple(name for name in roles if name not in shown)
    return dataclasses.replace(unknown, statistics=statistics, given=dropped)


def _narrowed(table: Table, present: np.ndarray) -> Table:
    """Return a table of the classes that are left, numbered anew."""
    if len(present) == len(table.classes):
        return table
    number = np.full(len(table.classes) + 1, -1)
    number[present] = np.arange(len(present))
    statistics = dataclasses.replace(table.statistics, class_rows=table.class_rows[present])
    return dataclasses.replace(table, classes=table.classes[present], codes=number[table.codes], statistics=statistics)


def _distinct_values(table: Table) -> dict[str, pd.Series[Any]]:
    """Return the different values of each string and code column, as they were read."""
    values: dict[str, pd.Series[Any]] = {}
    names = [name for name in table.statistics.kept if table.roles[name].role is not Role.NUMERIC]
    for block in table.rows("train", names):
        for name in names:
            own = block.frame[name].drop_duplicates()
            values[name] = own if name not in values else pd.concat([values[name], own]).drop_duplicates()
    return values


def _spliced(before: pd.Series[Any], now: pd.Series[Any], touched: np.ndarray) -> pd.Series[Any]:
    """Return the values of ``now`` in recomputed rows, of ``before`` elsewhere, in a type that holds both."""
    if touched.all() or not touched.any():
        return now if touched.all() else before
    return pd.concat([before[~touched], now[touched]]).sort_index().rename(before.name)


def _allocation(
    table: CondensedTable, codes: np.ndarray, class_rows: np.ndarray, losses: np.ndarray, present: np.ndarray
) -> Any:
    """Return the split of the rows as it is now; the search stays, but its bound was for other rows."""
    before = table.allocation
    counts = np.bincount(codes, minlength=len(table.classes))[present]
    objective = float((losses[present] / class_rows[present].astype(np.float64) ** before.gamma).sum())
    trace = tuple(
        dataclasses.replace(step, counts=tuple(step.counts[code] for code in present)) for step in before.trace
    )
    return dataclasses.replace(before, counts=counts, objective=objective, bound=None, trace=trace)


def _update_summary(found: Forgotten, repeated: dict[str, int], notices: list[Notice]) -> None:
    """Bring the summary and the notices of the new table up to date."""
    table = found.table
    rows_in, rows_out = len(table.membership), len(table)
    singletons = int((table.weight == 1).sum())
    earlier = table.summary.get("forgotten", {"rows": 0, "times": 0})
    forgotten = {"rows": earlier["rows"] + found.rows, "times": earlier["times"] + 1}
    table.summary = {
        **table.summary,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "ratio": rows_out / rows_in,
        "objective": table.allocation.objective,
        "bound": None,
        "gap": None,
        "singletons": singletons,
        "repeated_rows": repeated,
        "forgotten": forgotten,
    }
    rows = "source row was" if forgotten["rows"] == 1 else "source rows were"
    text = (
        f"{forgotten['rows']:,} {rows} forgotten after condensing; what the encoder learnt stays, and so do loss curves"
        + (" and scores, which were measured before." if "scores" in table.summary else ".")
    )
    table.notices = [
        *(notice for notice in table.notices if notice.kind not in _OWN_NOTICES),
        *([Notice("singletons", singleton_message(singletons, rows_out))] if singletons else []),
        *notices,
        Notice("forgotten", text),
    ]


@dataclass(frozen=True)
class ThinnedClusters:
    """The new condensed row of each remaining row, and how the new condensed rows relate to the old ones.

    ``old`` has the old number of each new condensed row, ``touched`` tells whether its members changed; ``disappeared``
    condensed rows have no rows left, ``merged`` had too few and were merged with a neighbour.
    """

    labels: np.ndarray
    old: np.ndarray
    touched: np.ndarray
    disappeared: int
    merged: int


def thin_clusters(
    X: np.ndarray, membership: np.ndarray, kept: np.ndarray, codes: np.ndarray, least: int, classes: list[Any]
) -> ThinnedClusters:
    """Keep some rows of each cluster, and merge clusters of fewer than ``least`` rows with the nearest of their class.

    ``X`` has the encoded rows that remain, ``membership`` the condensed row of all rows before, ``kept`` which of them
    remain, ``codes`` the class of each condensed row. An ``InputError`` refuses to leave a single class, or a class
    with fewer rows than ``least``.
    """
    size = len(codes)
    labels = membership[kept].astype(np.int64)
    touched = np.zeros(size, dtype=bool)
    touched[membership[~kept]] = True
    sums = cluster_sums(X, labels, size)
    counts, totals = sums.counts.copy(), sums.sums.copy()
    goes_to = np.arange(size)
    merged = 0
    while len(small := np.flatnonzero((counts > 0) & (counts < least))):
        cluster = int(small[counts[small].argmin()])
        others = np.flatnonzero((codes == codes[cluster]) & (counts > 0))
        others = others[others != cluster]
        if not len(others):
            raise InputError(
                f"Class {classes[codes[cluster]]!r} would be left with {int(counts[cluster])} rows, fewer than "
                f"min_rows_per_condensed_row={least}; condense the table anew without these rows and this class."
            )
        center = totals[cluster] / counts[cluster]
        gaps = ((totals[others] / counts[others, None] - center) ** 2).sum(axis=1)
        target = int(others[gaps.argmin()])
        totals[target] += totals[cluster]
        counts[target] += counts[cluster]
        counts[cluster] = 0
        goes_to[goes_to == cluster] = target
        touched[target] = True
        merged += 1
    old = np.flatnonzero(counts > 0)
    return ThinnedClusters(
        labels=np.searchsorted(old, goes_to[labels]),
        old=old,
        touched=touched[old],
        disappeared=size - len(old) - merged,
        merged=merged,
    )
