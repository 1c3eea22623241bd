"""A table that need not fit in memory, condensed in four passes over its rows.

The first pass gathers what is to be known of the table, the second encodes it into a file sorted by class, and after
the clustering the third finds out what the members of each condensed row have in the original columns. The fourth
looks for condensed rows that repeat a source row. Memory is bounded by a block and by the vocabularies, never by the
table.

The steps are those of :mod:`c2tc_pipeline.condensation.steps` for a table in memory: encoders learn from the same
statistics, clusters are found by the same code, and the condensed table is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.clustering.lloyd import Clusters
from c2tc_pipeline.clustering.rows import release_pages
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import EncodedTable
from c2tc_pipeline.condensation.membership import StoredMembership
from c2tc_pipeline.condensation.original import ColumnSummary, shown_columns
from c2tc_pipeline.condensation.projection import project
from c2tc_pipeline.condensation.repeated import RepeatedSearch
from c2tc_pipeline.condensation.representatives import condensed_of_sorted, nearest_rows
from c2tc_pipeline.condensation.sorted_rows import ClassCursor, SortedRowsFile
from c2tc_pipeline.condensation.stages import StageClock
from c2tc_pipeline.condensation.steps import condensation_notices, ready_encoder
from c2tc_pipeline.condensation.summary import roles_table, summarise
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.tables.blocks import SourceBlocks
from c2tc_pipeline.tables.overview import TableOverview, overview_of
from c2tc_pipeline.tables.preparation import typed_columns
from c2tc_pipeline.tables.roles import Role


def condense_blocks(
    blocks: SourceBlocks,
    folder: Path,
    *,
    label: str,
    roles: dict[str, Role | str],
    encoder: TableEncoder,
    condenser: Condenser,
    name: str,
    clock: StageClock,
) -> CondensedTable:
    """Condense the blocks of a table.

    Parameters
    ----------
    blocks : SourceBlocks
        The table.
    folder : path
        An empty folder for the encoded rows and the membership; it has to last as long as the result is not saved.
    label : str
        The column to predict.
    roles : dict of str to str
        Roles that override the inferred ones.
    encoder, condenser : TableEncoder, Condenser
        Unfitted; they are fitted in place.
    name : str
        What the table is called.
    clock : StageClock
        Times the stages.
    """
    if getattr(encoder, "noise", 0) > 0:
        raise InputError("Noise can't be added to a table that is condensed in blocks; use an encoder without noise.")
    with clock.stage("prepare"):
        overview = overview_of(blocks.frames(), label=label, roles=roles, seed=int(condenser.random_state))
        condenser.check_classes(overview.classes.values, overview.classes.rows)
    with clock.stage("encode") as tick:
        encoder.set_params(roles={column: overview.roles[column].role for column in overview.kept})
        ready_encoder(encoder.fit_overview(overview, progress=tick), label)
        encoded = encode_blocks(encoder, overview, blocks, folder / "encoded.npy", progress=tick)
    plan = condenser.plan_sorted(encoded.X, encoded.edges, validation=None, clock=clock)
    classes = overview.classes.values
    centers, results = condenser.partition_sorted(encoded.X, classes, encoded.edges, plan, clock=clock)
    counts = condenser.allocation_.counts
    with clock.stage("decode") as tick:
        members = _Members(overview, encoded, condenser, results, roles)
        # The clusters of all rows are in one array from here on.
        del results
        membership = StoredMembership.write(
            folder / "membership.parquet", members.gathered(overview, blocks, progress=tick)
        )
        medoids = condenser.representative == "medoid"
        if medoids:
            kept = typed_columns(members.nearest, overview.roles, np.arange(len(members.nearest)))
            centers = encoder.encode_rows(kept)
        y = pd.Series(np.repeat(classes, counts), name=label).astype(overview.classes.dtype)
        codes = np.repeat(np.arange(len(classes)), counts)
        projection = project(encoded.X, encoded.edges, centers, codes, condenser.weights_, int(condenser.random_state))
        projection["label"] = pd.Series(classes[projection["label"]]).astype(overview.classes.dtype)
        original = pd.concat([*members.columns(overview), y], axis=1)
        search = RepeatedSearch(original, label, overview.roles, overview.kinds)
        for rows, condensed in members.again(overview, encoded.edges, blocks):
            search.add(rows, condensed)
        repeated = search.found(encoded=int(condenser.repeats_.sum()), medoids=medoids)
    return CondensedTable(
        X=pd.DataFrame(centers, columns=encoded.names),
        y=y,
        weight=pd.Series(condenser.weights_, name="weight"),
        original=original,
        members=membership,
        encoder=encoder,
        allocation=condenser.allocation_,
        classes=classes.tolist(),
        class_rows=overview.classes.rows.tolist(),
        curves=condenser.curves_,
        roles=roles_table(overview.roles, encoder),
        projection=projection,
        notices=[
            *overview.notices,
            *condensation_notices(encoder, condenser, overview.rows),
            *repeated.notices(len(y)),
        ],
        summary=summarise(
            name, (overview.rows, len(overview.kept)), encoder, condenser, repeated, seconds=clock.seconds
        ),
    )


def encode_blocks(
    encoder: TableEncoder,
    overview: TableOverview,
    blocks: SourceBlocks,
    path: Path,
    *,
    progress: Progress | None = None,
) -> EncodedTable:
    """Encode a table block by block into a ``.npy`` file that is sorted by class, and return it mapped.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted to the overview.
    overview : TableOverview
        What the first pass over the blocks told.
    blocks : SourceBlocks
        The table.
    path : path
        The file to write.
    progress : callable, optional
        Called with (rows done, rows in all).
    """
    edges = np.concatenate([[0], np.cumsum(overview.classes.rows)])
    names = tuple(str(name) for name in encoder.get_feature_names_out())
    done = 0
    with SortedRowsFile(path, edges, len(names)) as file:
        for found in overview.labelled(blocks.frames([*overview.kept, overview.label])):
            file.add(encoder.encode_rows(typed_columns(found.frame, overview.roles, found.row_ids)), found.codes)
            done += len(found.codes)
            if progress is not None:
                progress(done, overview.rows)
    return EncodedTable(
        X=np.load(path, mmap_mode="r", allow_pickle=False),
        edges=edges,
        names=names,
        classes=tuple(str(value) for value in overview.classes.values),
    )


class _Members:
    """What the members of condensed rows have in the original columns, from one more pass over the blocks."""

    def __init__(
        self,
        overview: TableOverview,
        encoded: EncodedTable,
        condenser: Condenser,
        results: list[Clusters],
        chosen_drops: Collection[str],
    ) -> None:
        self._cursor = ClassCursor(encoded.edges)
        self._condensed = condensed_of_sorted(results)
        self._nearest = nearest_rows(encoded.edges, results)
        # Source rows are put aside only where they become condensed ones: a few small things from every block keep the
        # system from joining the memory that the blocks leave.
        self._medoids = condenser.representative == "medoid"
        self._found: list[pd.DataFrame] = []
        self._found_places: list[np.ndarray] = []
        self._size = len(condenser.weights_)
        self._summaries = {
            name: ColumnSummary(overview.roles[name], overview.kinds[name], self._size)
            for name in shown_columns(overview.roles, chosen_drops)
        }

    def gathered(
        self, overview: TableOverview, blocks: SourceBlocks, *, progress: Progress | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Go through the blocks, and yield the source rows and condensed rows of each."""
        done = 0
        for found in overview.labelled(blocks.frames([*self._summaries, overview.label])):
            places = self._cursor.places(found.codes)
            members = self._members(places)
            member_rows = np.bincount(members, minlength=self._size)
            for name, summary in self._summaries.items():
                if not summary.is_constant:
                    summary.add(found.frame[name], members, member_rows)
            wanted = np.flatnonzero(np.isin(places, self._nearest)) if self._medoids else ()
            if len(wanted):
                self._found.append(found.frame.take(wanted))
                self._found_places.append(places[wanted])
            yield found.row_ids, members
            done += len(members)
            if progress is not None:
                progress(done, overview.rows)

    def again(
        self, overview: TableOverview, edges: np.ndarray, blocks: SourceBlocks
    ) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
        """Go through the blocks once more, and yield the shown columns and the condensed rows of each."""
        cursor = ClassCursor(edges)
        for found in overview.labelled(blocks.frames([*self._summaries, overview.label])):
            yield found.frame, self._members(cursor.places(found.codes))

    def _members(self, places: np.ndarray) -> np.ndarray:
        """Return the condensed rows of the rows at these places, in memory."""
        members = np.asarray(self._condensed[places])
        release_pages(self._condensed)
        return members

    @property
    def nearest(self) -> pd.DataFrame:
        """The source row next to each condensed row."""
        rows = pd.concat(self._found, ignore_index=True)
        places = np.concatenate(self._found_places)
        order = np.argsort(places)
        return rows.take(order[np.searchsorted(places[order], self._nearest)]).reset_index(drop=True)

    def columns(self, overview: TableOverview) -> list[pd.Series[Any]]:
        """Return the columns of the condensed rows in the original schema."""
        # A constant is in every row, so in the first.
        shared = overview.first_rows.take(np.zeros(self._size, dtype=np.int64)).reset_index(drop=True)
        kept = self.nearest if self._medoids else shared
        shown = []
        for name, summary in self._summaries.items():
            if self._medoids or summary.is_constant:
                values = summary.form(kept[name].astype(overview.first_rows[name].dtype))
            else:
                values = summary.values(overview.first_rows[name])
            shown.append(values.rename(name))
        return shown
