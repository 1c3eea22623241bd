"""All that is to be known of a table before it is encoded, from one pass over its blocks.

A table in memory is prepared as a whole in :mod:`c2tc_pipeline.tables.preparation`, by the same rules and checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.column_facts import ColumnGatherer, NumberRange
from c2tc_pipeline.tables.kinds import Kind
from c2tc_pipeline.tables.labels import LabelClasses, LabelGatherer
from c2tc_pipeline.tables.preparation import (
    NO_ROWS,
    check_label_column,
    drop_notices,
    missing_labels_notice,
    mixed_types_notices,
    refuse_infinities,
    refuse_nothing_left,
    typed_columns,
)
from c2tc_pipeline.tables.roles import ColumnRole, Role, checked_overrides, decided_role, gatherer_of
from c2tc_pipeline.tables.row_sample import SAMPLE_CELLS, SAMPLE_ROWS, RowSample


class LabelledBlock(NamedTuple):
    """Rows that have a label.

    Parameters
    ----------
    frame : DataFrame
        The rows as they were read.
    codes : ndarray of int
        The number of each row's class.
    row_ids : ndarray of int
        Where each row stands in the source, counting from 0.
    """

    frame: pd.DataFrame
    codes: np.ndarray
    row_ids: np.ndarray


@dataclass(frozen=True)
class TableOverview:
    """What one pass over a table tells.

    Parameters
    ----------
    label : str
        The label column.
    classes : LabelClasses
        The classes and their rows.
    roles : dict of str to ColumnRole
        Every column but the label.
    kinds : dict of str to Kind
        What the columns hold.
    counts : dict of str to CategoryCounts
        Of columns that are strings or codes; those with too many categories are not there.
    ranges : dict of str to NumberRange
        Of numeric columns.
    sample : DataFrame
        Labelled rows, drawn by their numbers, in the form that roles ask for; all of them when they are few.
    sample_codes : ndarray of int
        The class numbers of these.
    first_rows : DataFrame
        The first labelled row as it was read, with the types that columns have over all rows.
    notices : list of Notice
        What was found and done.
    """

    label: str
    classes: LabelClasses
    roles: dict[str, ColumnRole]
    kinds: dict[str, Kind]
    counts: dict[str, CategoryCounts]
    ranges: dict[str, NumberRange]
    sample: pd.DataFrame
    sample_codes: np.ndarray
    first_rows: pd.DataFrame
    notices: list[Notice]

    @property
    def rows(self) -> int:
        """Rows with a label."""
        return int(self.classes.rows.sum())

    @property
    def kept(self) -> list[str]:
        """The columns that are encoded."""
        return [name for name, role in self.roles.items() if role.role is not Role.DROP]

    def labelled(self, blocks: Iterable[pd.DataFrame]) -> Iterable[LabelledBlock]:
        """Yield the labelled rows of each block of the same table, with the numbers of their classes."""
        gatherer, start = LabelGatherer(self.label), 0
        for block in blocks:
            found = _labelled(block, self.label, start, gatherer)
            start += len(block)
            if len(found.row_ids):
                yield found._replace(codes=self.classes.numbers[found.codes])


def overview_of(
    blocks: Iterable[pd.DataFrame], *, label: str, roles: Mapping[str, Role | str] | None = None, seed: int = 0
) -> TableOverview:
    """Go once through a table.

    Parameters
    ----------
    blocks : iterable of DataFrame
        Its rows, in blocks; at least one, with all columns.
    label : str
        The column to predict.
    roles : mapping of str to str, optional
        Roles that override the inferred ones.
    seed : int
        Determines the sample.

    Raises
    ------
    InputError
        When the table can't be used, as in :func:`c2tc_pipeline.tables.preparation.prepare_table`.

    Examples
    --------
    >>> blocks = [pd.DataFrame({"age": [31, 45], "y": ["no", "yes"]}), pd.DataFrame({"age": [28], "y": ["no"]})]
    >>> overview = overview_of(blocks, label="y")
    >>> overview.roles["age"].role.value, overview.classes.rows.tolist(), overview.sample["age"].tolist()
    ('numeric', [2, 1], [31, 45, 28])
    """
    gatherers: dict[str, ColumnGatherer] = {}
    given: dict[str, Role] = {}
    labels, start, row_types = LabelGatherer(label), 0, None
    sample: RowSample | None = None
    for block in blocks:
        if sample is None:
            check_label_column(label, list(block.columns))
            given = checked_overrides(list(block.columns), label, roles or {})
            gatherers = {name: gatherer_of(name, given.get(name)) for name in block.columns if name != label}
            sample = RowSample(seed, min(SAMPLE_ROWS, max(SAMPLE_CELLS // len(block.columns), 1)))
        found = _labelled(block, label, start, labels)
        start += len(block)
        for name, gatherer in gatherers.items():
            _check_given(found, name, given.get(name))
            gatherer.add(found.frame[name], found.codes, found.row_ids)
        sample.add(found.frame)
        row_types = _joined_types(row_types, found.frame.iloc[:1])
    if start == 0 or sample is None or row_types is None:
        raise InputError(NO_ROWS)
    notices: list[Notice] = []
    found_classes = labels.classes(notices)
    rows = int(found_classes.rows.sum())
    if rows < start:
        notices.insert(0, missing_labels_notice(label, start - rows))
    facts = {name: gatherer.facts() for name, gatherer in gatherers.items()}
    decided = {name: decided_role(name, facts[name], given.get(name)) for name in gatherers}
    notices += drop_notices(decided, overridden=roles or {}, rows=rows)
    refuse_nothing_left(decided)
    kept = [name for name, role in decided.items() if role.role is not Role.DROP]
    kinds = {name: found.kind for name, found in facts.items()}
    strings = [name for name in kept if decided[name].role is Role.STRING]
    notices += mixed_types_notices(name for name in strings if kinds[name] is Kind.MIXED)
    ranges = {name: gatherers[name].range for name in kept if decided[name].role is Role.NUMERIC}
    for name, limits in ranges.items():
        if limits.first_infinite is not None:
            refuse_infinities(name, limits.infinite, limits.first_infinite)
    order = np.argsort(found_classes.numbers, kind="stable")
    counts = {}
    for name in kept:
        counter = gatherers[name].counter
        if decided[name].role is not Role.NUMERIC and counter is not None and counter.is_exact:
            counts[name] = counter.counts(order)
    sampled = sample.rows()
    return TableOverview(
        label=label,
        classes=found_classes,
        roles=decided,
        kinds=kinds,
        counts=counts,
        ranges=ranges,
        sample=typed_columns(sampled, decided, np.arange(len(sampled))),
        sample_codes=found_classes.numbers[labels.known(sampled[label])],
        first_rows=row_types,
        notices=notices,
    )


def _labelled(block: pd.DataFrame, label: str, start: int, gatherer: LabelGatherer) -> LabelledBlock:
    present = block[label].notna().to_numpy()
    kept = np.flatnonzero(present)
    frame = block if len(kept) == len(block) else block.take(kept)
    row_ids = kept.astype(np.int64) + start
    return LabelledBlock(frame, gatherer.add(frame[label], row_ids), row_ids)


def _check_given(found: LabelledBlock, name: str, given: Role | None) -> None:
    """Say at once where a value does not fit the role that the user gave the column."""
    if given in (Role.NUMERIC, Role.CODE) and len(found.row_ids):
        role = ColumnRole(name, given, "", 0, 0)
        typed_columns(found.frame[[name]], {name: role}, found.row_ids)


def _joined_types(before: pd.DataFrame | None, first: pd.DataFrame) -> pd.DataFrame:
    """Return one row in the types that hold the values of all blocks so far: whole numbers with gaps have their own."""
    if before is None or not len(before):
        return first
    if not len(first) or (before.dtypes == first.dtypes).all():
        return before
    return pd.concat([before, first]).iloc[:1]
