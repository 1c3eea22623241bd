"""The steps from a table to a condensed table: fit the encoder, encode, plan, cluster, assemble.

:func:`condense_table` takes them in one go; the pipeline's assets take them one at a time. The plan and the clustering
are methods of :class:`~c2tc_pipeline.condensation.condenser.Condenser`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from c2tc_pipeline.common.defaults import check_min_rows
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.common.processes import side_by_side
from c2tc_pipeline.common.seeds import RandomStateLike, seed_of
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.condensation.clusters import Clusters, singleton_message
from c2tc_pipeline.condensation.column_weights import choose_weights
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import ClassCursor, EncodedRows, SortedRows
from c2tc_pipeline.condensation.expand import default_rows, expand_table
from c2tc_pipeline.condensation.members import ColumnSummary, Votes, shown_columns
from c2tc_pipeline.condensation.plan import AllocationPlan
from c2tc_pipeline.condensation.repeated import RepeatedSearch
from c2tc_pipeline.condensation.spread import CategoryShares, Spread, measure_spread, without_few_numbers
from c2tc_pipeline.condensation.summary import project, roles_table, summarise
from c2tc_pipeline.condensation.table import CondensedTable, StoredMembership
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.tables.frames import in_type
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.statistics import Block
from c2tc_pipeline.tables.table import Table

# Drawn rows that are compared with the source at most: ten for each of many condensed rows would take gigabytes.
_COMPARED_DRAWS = 20_000


def condense_table(
    table: Table,
    encoder: TableEncoder,
    condenser: Condenser,
    *,
    name: str,
    clock: StageClock,
    min_category_rows: int = 1,
) -> tuple[CondensedTable, EncodedRows]:
    """Take all steps; return the condensed table, and the encoded rows for an evaluation."""
    condenser.check_classes(table.classes, table.class_rows)
    with clock.stage("encode") as tick:
        fit_encoder(encoder, table, progress=tick)
        encoded = encode(encoder, table, progress=tick)
    with clock.stage("weigh"):
        encoded = weigh_columns(encoded, encoder, condenser.column_weights, seed=condenser.random_state)
    plan = condenser.plan(encoded, clock=clock)
    clusters = condenser.cluster(encoded, plan, clock=clock)
    small = assemble(
        table, encoder, encoded, plan, clusters, condenser, name=name, clock=clock, min_category_rows=min_category_rows
    )
    return small, encoded


def make_encoder(spec: TableSpec, *, device: str | None = None, cache_dir: Path | None = None) -> HybridEncoder:
    """Return the unfitted encoder of a table's settings.

    Examples
    --------
    >>> make_encoder(TableSpec(name="t", source="t.csv", label="y")).strings
    'auto'
    """
    chosen = spec.settings
    return HybridEncoder(
        chosen.strings,
        chosen.numeric,
        device=device or chosen.device,
        cache_dir=cache_dir,
        random_state=chosen.seed,
    )


def make_condenser(
    spec: TableSpec, ratio: float, *, device: str | None = None, cache_dir: Path | None = None
) -> Condenser:
    """Return the condenser of a table's settings, for one of its ratios.

    Examples
    --------
    >>> make_condenser(TableSpec(name="t", source="t.csv", label="y"), 0.01).gamma
    0.25
    """
    chosen = spec.settings
    return Condenser(
        ratio,
        allocation=chosen.allocation,
        gamma=chosen.gamma,
        representative=chosen.representative,
        min_rows_per_condensed_row=chosen.min_rows_per_condensed_row,
        column_weights=chosen.column_weights,
        device=device or chosen.device,
        engine=chosen.engine,
        cache_dir=cache_dir,
        random_state=chosen.seed,
    )


def fit_encoder(encoder: TableEncoder, table: Table, *, progress: Progress | None = None) -> TableEncoder:
    """Fit an encoder to the statistics of a table's training rows, in place."""
    statistics = table.statistics
    encoder.set_params(roles={column: statistics.roles[column].role for column in statistics.kept})
    encoder.fit_statistics(statistics, table.classes, progress=progress)
    encoder.set_output(transform="pandas")
    if table.label in encoder.get_feature_names_out():
        raise InputError(f"The label {table.label!r} has the name of an encoded column; rename the label.")
    return encoder


def encode(encoder: TableEncoder, table: Table, *, origin: str = "", progress: Progress | None = None) -> EncodedRows:
    """Encode the training rows, sorted by class, and the validation rows beside them; large tables go to files."""
    scratch = ScratchDirectory() if table.is_large else None
    edges = np.concatenate([[0], np.cumsum(table.class_rows)])
    names = tuple(str(name) for name in encoder.get_feature_names_out())
    total, done = len(table.codes), 0
    training = encoder.for_training(table.statistics, table.classes)

    def encoded_side(side: str, edges: np.ndarray, codes_of: Callable[[Block], np.ndarray]) -> np.ndarray:
        nonlocal done
        path = None if scratch is None else Path(scratch.name) / f"{side}.npy"
        with SortedRows(path, edges, len(names)) as rows:
            for block in table.rows(side, table.statistics.kept):
                encoded = (training if side == "train" else encoder).encode_rows(block.frame, row_ids=block.row_ids)
                rows.add(encoded, codes_of(block))
                done += len(encoded)
                if progress is not None:
                    progress(done, total)
        return rows.result()

    X = encoded_side("train", edges, lambda block: block.codes)
    held = table.positions("validation")
    validation = None
    if len(held):
        one_class = np.array([0, len(held)])
        rows = encoded_side("validation", one_class, lambda block: np.zeros(len(block.codes), dtype=np.int64))
        validation = rows, table.codes[held].astype(np.int64)
    classes = tuple(str(value) for value in table.classes)
    return EncodedRows(X, edges, names, classes, validation, origin, scratch=scratch)


def weigh_columns(
    encoded: EncodedRows, encoder: TableEncoder, wanted: str | Mapping[str, float], *, seed: RandomStateLike
) -> EncodedRows:
    """Return the encoded rows with the weights of their columns in distances."""
    sources = list(encoder.sources().values())
    weights = choose_weights(
        encoded.rows, encoded.edges, sources, wanted, validation=encoded.validation, seed=seed_of(seed)
    )
    return replace(encoded, weights=weights)


def assemble(
    table: Table,
    encoder: TableEncoder,
    encoded: EncodedRows,
    plan: AllocationPlan,
    clusters: Clusters,
    condenser: Condenser,
    *,
    name: str,
    clock: StageClock,
    min_category_rows: int = 1,
) -> CondensedTable:
    """Put the condensed table together, in two passes over the training rows.

    The first pass summarises the members of each condensed row in the original columns; the second looks for
    condensed and drawn rows that repeat a source row. Categories of fewer than ``min_category_rows`` members of a
    condensed row, or of fewer than the condenser's ``min_rows_per_condensed_row``, are neither shown nor get a share of
    their own.
    """
    check_min_rows(min_category_rows, "centroid", name="min_category_rows")
    medoids = condenser.representative == "medoid"
    with clock.stage("decode") as tick:
        least = max(min_category_rows, condenser.min_rows_per_condensed_row)
        min_rows = condenser.min_rows_per_condensed_row
        gathered = gather_members(
            table, clusters, medoids=medoids, min_category_rows=least, min_rows=min_rows, progress=tick
        )
        spread = member_spread(encoded, clusters, gathered.votes, min_rows, least, medoids=medoids)
        centers = encoded.rows.take(clusters.nearest) if medoids else clusters.centers
        centers, spread = without_few_numbers(centers, spread, clusters.weights, encoder.missing_marks(), min_rows)
        y = table.labels(clusters.codes)
        small = CondensedTable(
            X=pd.DataFrame(centers, columns=encoded.names),
            y=y,
            weight=pd.Series(clusters.weights, name="weight"),
            original_rows=pd.concat([*gathered.columns, y], axis=1),
            spread=spread,
            members=gathered.membership,
            encoder=encoder,
            allocation=clusters.allocation,
            classes=table.classes.tolist(),
            class_rows=table.class_rows.tolist(),
            curves=plan.measured,
            roles=roles_table(table.roles, table.statistics.kinds, encoder),
            projection=project(encoded.X, encoded.edges, centers, clusters, table, seed_of(condenser.random_state)),
            notices=[],
            summary={},
        )
        repeated = repeated_rows(table, small, clusters).found(
            encoded=len(y) if medoids else int(clusters.repeats(encoded.rows).sum()), medoids=medoids
        )
    rows = int(table.class_rows.sum())
    small.notices = [
        *table.notices,
        *condensation_notices(encoder, condenser, plan, clusters, rows),
        *repeated.notices(len(y)),
    ]
    small.summary = summarise(
        name,
        (rows, len(table.statistics.kept)),
        encoder,
        condenser,
        plan,
        clusters,
        repeated,
        min_category_rows=min_category_rows,
        weights=encoded.weights,
        seconds=clock.seconds,
    )
    return small


class MemberValues(NamedTuple):
    """Members of condensed rows in the original columns: one value each, votes of categories, and the membership."""

    columns: list[pd.Series[Any]]
    votes: dict[str, Votes]
    membership: pd.DataFrame | StoredMembership


def gather_members(
    table: Table,
    clusters: Clusters,
    *,
    medoids: bool,
    min_category_rows: int = 1,
    min_rows: int = 1,
    progress: Progress | None = None,
) -> MemberValues:
    """Summarise the members of each cluster in the original columns, in one pass over the training rows."""
    size, edges = len(clusters.weights), np.concatenate([[0], np.cumsum(table.class_rows)])
    summaries = {
        name: ColumnSummary(table.roles[name], table.statistics.kinds[name], size)
        for name in shown_columns(table.roles, table.given)
    }
    found: list[pd.DataFrame] = []
    found_places: list[np.ndarray] = []

    def passed() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        cursor, done = ClassCursor(edges), 0
        for block in table.rows("train", list(summaries)):
            places = cursor.places(block.codes)
            members = clusters.members(places)
            member_rows = np.bincount(members, minlength=size)
            calls = [
                partial(summary.add, block.frame[name], members, member_rows)
                for name, summary in summaries.items()
                if summary.has_votes or not (medoids or summary.is_constant)
            ]
            for _ in side_by_side(calls):
                pass
            wanted = np.flatnonzero(np.isin(places, clusters.nearest)) if medoids else np.empty(0, dtype=np.int64)
            if len(wanted):
                found.append(block.frame.take(wanted))
                found_places.append(places[wanted])
            yield block.row_ids, members
            done += len(members)
            if progress is not None:
                progress(done, int(edges[-1]))

    membership: pd.DataFrame | StoredMembership
    if table.is_large:
        membership = StoredMembership.write(passed())
    else:
        parts = list(passed())
        membership = pd.DataFrame(
            {
                "source_row": np.concatenate([rows for rows, _ in parts]).astype(np.int64),
                "condensed_row": np.concatenate([members for _, members in parts]).astype(np.int32),
            }
        )
    example = table.statistics.example
    # A constant is in every row, so in the example.
    nearest = example.take(np.zeros(size, dtype=np.int64)).reset_index(drop=True)
    if medoids:
        order = np.argsort(np.concatenate(found_places))
        nearest = pd.concat(found, ignore_index=True).take(order)
        # A row may be the nearest member of one cluster only, so each is there once.
        places = np.sort(clusters.nearest)
        nearest = nearest.take(np.searchsorted(places, clusters.nearest)).reset_index(drop=True)
    columns = []
    for name, summary in summaries.items():
        if medoids or summary.is_constant:
            values = in_type(summary.form(nearest[name].astype(example[name].dtype)), example[name].dtype)
        else:
            values = summary.values(example[name], min_category_rows, min_rows)
        columns.append(values.rename(name))
    votes = {name: summary.votes(example[name]) for name, summary in summaries.items() if summary.has_votes}
    return MemberValues(columns, votes, membership)


def member_spread(
    encoded: EncodedRows,
    clusters: Clusters,
    votes: Mapping[str, Votes],
    min_rows: int,
    min_category_rows: int,
    *,
    medoids: bool,
) -> Spread:
    """Return the spread of the members, with the shares of categories that enough of them have."""
    measured = measure_spread(encoded.rows, encoded.edges, clusters.labels, clusters.centers, min_rows)
    shares = {
        name: CategoryShares.of_votes(found, clusters.weights, min_category_rows) for name, found in votes.items()
    }
    return replace(measured, shares=shares, means=clusters.centers if medoids else None)


def repeated_rows(table: Table, small: CondensedTable, clusters: Clusters) -> RepeatedSearch:
    """Look for the condensed rows, and for the rows drawn by default, 20,000 at most, among the training rows."""
    drawn_rows = min(default_rows(small.weight.to_numpy()), _COMPARED_DRAWS)
    X, y, _ = expand_table(small, drawn_rows)
    label = small.label_name
    search = RepeatedSearch(small.original_rows, pd.concat([X, y], axis=1), label, table.roles, table.statistics.kinds)
    cursor = ClassCursor(np.concatenate([[0], np.cumsum(table.class_rows)]))
    for block in table.rows("train", [name for name in small.original_rows.columns if name != label]):
        search.add(block.frame, clusters.members(cursor.places(block.codes)))
    return search


def condensation_notices(
    encoder: TableEncoder, condenser: Condenser, plan: AllocationPlan, clusters: Clusters, rows: int
) -> list[Notice]:
    """Return the notices about a condensation of this many rows."""
    notices = list(getattr(encoder, "notices_", []))
    if plan.curves_damaged:
        notices.append(
            Notice("damaged_cache", "The cached loss curves were damaged; they were measured again and replaced.")
        )
    if clusters.singletons:
        notices.append(Notice("singletons", singleton_message(clusters.singletons, len(clusters.weights))))
    asked, classes = condenser.rows or round(condenser.ratio * rows), len(clusters.allocation.counts)
    if asked < classes:
        message = f"The ratio asks for {asked:,} rows, but {classes:,} classes need one each, so there are {classes:,}."
        notices.append(Notice("rows_raised", message))
    return notices


def refuse_repeated(table: CondensedTable, spec: TableSpec) -> None:
    """Refuse a condensed table of which too many rows repeat a source row, where the settings say so."""
    allowed, repeated = spec.checks.repeated_rows, table.summary["repeated_rows"]["total"]
    if spec.checks.on_repeated_rows == "stop" and repeated > allowed * len(table):
        raise InputError(
            f"Table {spec.name!r}: {repeated} of {len(table)} condensed rows repeat a source row, more than the "
            f"{100 * allowed:g} % that checks.repeated_rows allows; choose a smaller ratio, set "
            "min_rows_per_condensed_row, or allow more."
        )
