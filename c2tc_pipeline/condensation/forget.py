"""Forgetting source rows: a condensed table as it would be without them, under the same partition of all others.

Only the condensed rows that a forgotten row stands behind are computed again; the others stay as they are, to the bit.
What belongs here: the values, weights and counts of a table without some rows. What does not: where the source is and
which rows are meant, which is the business of :mod:`c2tc_pipeline.cli.forgetting`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.clustering.partition import nearest_members, own_gaps, partition_sums
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.condensation.original import summarise_members
from c2tc_pipeline.condensation.partition import ClassOrder
from c2tc_pipeline.condensation.projection import project
from c2tc_pipeline.condensation.repeated import count_repeated
from c2tc_pipeline.condensation.representatives import equal_but_for_rounding, singleton_message
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.condensation.thinned import ThinnedPartition, thin_partition
from c2tc_pipeline.encoding.forget_strings import without_unused_strings
from c2tc_pipeline.tables.kinds import Kind, column_kind
from c2tc_pipeline.tables.preparation import PreparedTable, prepare_table
from c2tc_pipeline.tables.roles import ColumnRole, Role

# Notices that tell of the rows as they are, and are told anew.
_OWN_NOTICES = ("singletons", "repeated_rows", "forgotten")


@dataclass(frozen=True)
class Forgotten:
    """A table without some source rows, and what that took.

    Parameters
    ----------
    table : CondensedTable
        The table; the one before, where no condensed row stands for any of the rows.
    rows : int
        Source rows that were forgotten.
    recomputed : int
        Condensed rows that were computed again.
    disappeared : int
        Condensed rows that stood for forgotten rows only.
    merged : int
        Condensed rows that stood for too few others and were joined with their neighbour.
    strings_removed, strings_kept : int
        Strings that no remaining row has: taken out of the encoder, or left because others' codes depend on them.
    """

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


def forget_rows(table: CondensedTable, frame: pd.DataFrame, rows: np.ndarray) -> Forgotten:
    """Return a condensed table as if some source rows had not been there, under the same partition of the others.

    Every number, category, weight and count that such a row went into is made anew from the other rows. What the
    encoder learnt from it stays: scales, class shares, the weights of the network, and strings that others' codes
    depend on. So do loss curves and the choice of gamma.

    Parameters
    ----------
    table : CondensedTable
        What was condensed; not changed.
    frame : DataFrame
        The source table that it was made from, with all its rows.
    rows : ndarray of int
        Positions in ``frame``; those that stand behind no condensed row change nothing.

    Raises
    ------
    InputError
        When ``frame`` is not the table's source, or when too little would be left.

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
    source_rows = membership["source_row"].to_numpy()
    kept = ~np.isin(source_rows, rows)
    if kept.all():
        return Forgotten(table, 0)
    # Read once, where it is in a file.
    table = dataclasses.replace(table, members=membership)
    prepared = _prepared(table, frame)
    classes_of_rows = np.repeat(np.arange(len(table.classes)), table.allocation.counts)
    _refuse_another_source(table, prepared)
    X = table.encoder.encode_rows(prepared.X, np.flatnonzero(kept))
    least = table.summary.get("settings", {}).get("min_rows_per_condensed_row", 1)
    condensed_rows = membership["condensed_row"].to_numpy()
    partition = thin_partition(X, condensed_rows, kept, classes_of_rows, least, table.classes)

    remaining = _rows_of(prepared, kept)
    by_class = ClassOrder.of(remaining.y.to_numpy())
    size = len(partition.old)
    # In the order of classes, in which the table was summed up when it was made.
    means, gaps, nearest = _means_and_gaps(X, partition.labels, size, by_class.order)
    medoids = table.summary.get("settings", {}).get("representative") == "medoid"
    centers = table.X.to_numpy()[partition.old].copy()
    centers[partition.touched] = (X[nearest] if medoids else means)[partition.touched]
    original = _original(table, frame, prepared, kept, partition, nearest if medoids else None)
    y = table.y.iloc[partition.old].reset_index(drop=True)
    weight = pd.Series(np.bincount(partition.labels, minlength=size), name="weight")

    codes = classes_of_rows[partition.old]
    present = np.unique(codes)
    losses = np.bincount(codes[partition.labels], gaps, len(table.classes))
    repeated = count_repeated(
        frame,
        remaining,
        original,
        partition.labels,
        encoded=int(equal_but_for_rounding(X[nearest], centers).sum()),
        medoids=medoids,
    )
    projection = project(
        X[by_class.order],
        by_class.edges,
        centers,
        np.searchsorted(present, codes),
        weight.to_numpy(),
        table.summary.get("seed", 0),
    )
    projection["label"] = pd.Series(by_class.classes[projection["label"]]).astype(table.y.dtype)
    trimmed = without_unused_strings(table.encoder, remaining.X)
    class_rows = np.bincount(codes[partition.labels], minlength=len(table.classes))
    result = dataclasses.replace(
        table,
        X=pd.DataFrame(centers, columns=table.X.columns),
        y=y,
        weight=weight,
        original=original,
        members=pd.DataFrame({"source_row": source_rows[kept], "condensed_row": partition.labels.astype(np.int32)}),
        encoder=trimmed.encoder,
        allocation=_allocation(table, codes, class_rows, losses, present),
        classes=[table.classes[code] for code in present],
        class_rows=[int(class_rows[code]) for code in present],
        curves=None if table.curves is None else [table.curves[code] for code in present],
        projection=projection,
    )
    found = Forgotten(
        result,
        rows=int((~kept).sum()),
        recomputed=int(partition.touched.sum()),
        disappeared=partition.disappeared,
        merged=partition.merged,
        strings_removed=trimmed.removed,
        strings_kept=trimmed.kept,
    )
    _tell(found, repeated.to_dict(), repeated.notices(size))
    return found


def _prepared(table: CondensedTable, frame: pd.DataFrame) -> PreparedTable:
    """Return the rows that were condensed as they were prepared then, in the order of the membership."""
    source_rows = table.membership["source_row"].to_numpy()
    names = [str(name) for name in frame.columns]
    decided = {
        row["column"]: ColumnRole(row["column"], Role(row["role"]), row["reason"], row["distinct"], row["missing"])
        for row in table.roles.to_dict("records")
    }
    lacking = [name for name in (*decided, table.label_name) if name not in names]
    if lacking or len(frame) <= source_rows.max():
        raise InputError(_ANOTHER_SOURCE)
    if getattr(table.encoder, "noise", 0):
        raise InputError("The table was encoded with noise, which can't be repeated for some rows; condense it anew.")
    prepared = prepare_table(frame.iloc[source_rows], label=table.label_name, decided=decided)
    if len(prepared.row_ids) < len(source_rows):
        raise InputError(_ANOTHER_SOURCE)
    return PreparedTable(prepared.X, prepared.y, prepared.roles, source_rows)


_ANOTHER_SOURCE = "The table to forget rows of was made from another source; give the one that was condensed."


def _refuse_another_source(table: CondensedTable, prepared: PreparedTable) -> None:
    """Every row must be of the class that its condensed row has."""
    condensed = table.y.iloc[table.membership["condensed_row"]].astype(str).to_numpy()
    if (condensed != prepared.y.astype(str).to_numpy()).any():
        raise InputError(_ANOTHER_SOURCE)


def _rows_of(prepared: PreparedTable, kept: np.ndarray) -> PreparedTable:
    return PreparedTable(
        prepared.X.loc[kept].reset_index(drop=True),
        prepared.y.loc[kept].reset_index(drop=True),
        prepared.roles,
        prepared.row_ids[kept],
    )


def _means_and_gaps(
    X: np.ndarray, labels: np.ndarray, size: int, order: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the means of the clusters, each row's squared distance to its own, and the row next to each mean."""
    means = partition_sums(X[order], labels[order], size).means()
    gaps = own_gaps(X, labels, means)
    return means.astype(X.dtype), gaps, nearest_members(labels, gaps, size)


def _original(
    table: CondensedTable,
    frame: pd.DataFrame,
    prepared: PreparedTable,
    kept: np.ndarray,
    partition: ThinnedPartition,
    picked: np.ndarray | None,
) -> pd.DataFrame:
    """Return the condensed rows in the source's columns, those computed again among them."""
    by_name = {str(column): column for column in frame.columns}
    size = len(partition.old)
    # Rows that are gone are members of one cluster more, so that a column is of the kind that it was.
    labels = np.full(len(kept), size)
    labels[kept] = partition.labels
    columns = []
    for name in table.original.columns:
        before = table.original[name].iloc[partition.old].reset_index(drop=True)
        role = Role.DROP if name == table.label_name else prepared.roles[name].role
        if role is Role.DROP:
            # A constant, or the label: the same for all rows of a cluster.
            columns.append(before)
            continue
        source = prepared.cells_of(frame[by_name[name]])
        if column_kind(source) is Kind.MIXED and role is Role.STRING:
            source = prepared.X[name]
        if picked is not None:
            now = source[kept].iloc[picked]
        elif role is Role.NUMERIC:
            now = summarise_members(source, role, labels, size + 1).iloc[:size]
        else:
            # Who wins a tie is decided by the column's other rows: by those that remain.
            now = summarise_members(source[kept], role, partition.labels, size)
        columns.append(_spliced(before, now.reset_index(drop=True), partition.touched).rename(name))
    return pd.concat(columns, axis=1)


def _spliced(before: pd.Series[Any], now: pd.Series[Any], touched: np.ndarray) -> pd.Series[Any]:
    """Return the values of now where rows were touched, and those of before elsewhere, in a type that holds both."""
    if touched.all() or not touched.any():
        return now if touched.all() else before
    return pd.concat([before[~touched], now[touched]]).sort_index()


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


def _tell(found: Forgotten, repeated: dict[str, int], notices: list[Notice]) -> None:
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
