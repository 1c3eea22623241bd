"""Statistics of the columns of training rows, gathered in one pass over their blocks.

Counts of categories and limits of numbers are exact. Distributions of numbers, and which categories occur together, are
read from a sample of at most 262,144 rows, which is all rows when there are no more. Any division of the rows into
blocks gives the same statistics.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.common.processes import side_by_side
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.category_counts import FOLDS, CategoryCounts, strata_of
from c2tc_pipeline.tables.column_facts import ColumnGatherer, NumberRange
from c2tc_pipeline.tables.kinds import Kind, as_floats, to_codes, to_numbers, to_text
from c2tc_pipeline.tables.readings import Readings
from c2tc_pipeline.tables.roles import ColumnRole, Role, decided_role, gatherer_of
from c2tc_pipeline.tables.row_sample import SAMPLE_CELLS, SAMPLE_ROWS, RowSample

# Integers of this many bytes are exact in float64.
_EXACT_BYTES = 4


class Block(NamedTuple):
    """Labelled rows of one block: as they were read, with their class numbers and positions in the source."""

    frame: pd.DataFrame
    codes: np.ndarray
    row_ids: np.ndarray


@dataclass(frozen=True)
class TableStatistics:
    """Roles, kinds, category counts, number ranges and a sample of the columns of some rows."""

    class_rows: np.ndarray  # one class when there are no labels
    is_labelled: bool
    roles: dict[str, ColumnRole]  # of every column but the label
    kinds: dict[str, Kind]
    sample: pd.DataFrame  # kept columns in the form that their roles ask for
    sample_codes: np.ndarray
    sample_row_ids: np.ndarray  # positions in the source
    # Of strings and codes; columns with too many categories are counted in the sample instead.
    counts: dict[str, CategoryCounts] = field(default_factory=dict)
    ranges: dict[str, NumberRange] = field(default_factory=dict)  # of numeric columns
    # One row as it was read, with the types that columns have over all rows.
    example: pd.DataFrame = field(default_factory=pd.DataFrame)
    readings: Readings = field(default_factory=Readings)  # how text was read as numbers, dates and missing values

    @classmethod
    def of(cls, frame: pd.DataFrame, codes: np.ndarray | None = None) -> TableStatistics:
        """Return the statistics of few rows in memory, whose columns have the form that their roles ask for."""
        numbers = np.zeros(len(frame), dtype=np.int64) if codes is None else codes
        class_rows, row_ids = np.bincount(numbers, minlength=1), np.arange(len(frame))
        return cls(class_rows, codes is not None, {}, {}, frame, numbers, row_ids)

    @property
    def rows(self) -> int:
        """Rows in all."""
        return int(self.class_rows.sum())

    @property
    def kept(self) -> list[str]:
        """The columns that are encoded."""
        return [name for name, role in self.roles.items() if role.role is not Role.DROP]

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is only a part of the rows."""
        return len(self.sample) < self.rows

    def categories(self, name: str) -> CategoryCounts:
        """Return the counts of a column's categories, from the sample where there are too many to count."""
        if name not in self.counts:
            classes = len(self.class_rows)
            self.counts[name] = CategoryCounts.of(self.sample[name], self.sample_codes, classes, self.sample_row_ids)
        return self.counts[name]

    def numbers(self, name: str) -> NumberRange:
        """Return the limits of a numeric column."""
        if name not in self.ranges:
            self.ranges[name] = NumberRange()
            self.ranges[name].add(as_numbers(self.sample[name]), np.arange(len(self.sample)))
        return self.ranges[name]

    def write_files(self, directory: Path) -> None:
        """Write everything but the roles, which :class:`~c2tc_pipeline.tables.table.Table` writes."""
        write_parquet(self.sample, directory / "sample.parquet")
        sampled = pd.DataFrame({"code": self.sample_codes, "source_row": self.sample_row_ids})
        write_parquet(sampled, directory / "sample_rows.parquet")
        write_parquet(self.example, directory / "example.parquet")
        counted = [_cells_of(name, counts) for name, counts in self.counts.items()]
        write_parquet(pd.concat([_NO_CELLS, *counted]), directory / "categories.parquet")
        values = {
            "class_rows": self.class_rows.tolist(),
            "kinds": {name: kind.value for name, kind in self.kinds.items()},
            "readings": self.readings.to_json(),
            "ranges": {
                name: [None, None, found.missing] if found.is_empty else [found.low, found.high, found.missing]
                for name, found in self.ranges.items()
            },
        }
        (directory / "statistics.json").write_text(json.dumps(values) + "\n", encoding="utf-8")

    @classmethod
    def read_files(cls, directory: Path, roles: dict[str, ColumnRole]) -> TableStatistics:
        """Read what :meth:`write_files` wrote."""
        values = json.loads((directory / "statistics.json").read_text(encoding="utf-8"))
        sample = read_parquet(directory / "sample.parquet")
        counted = read_parquet(directory / "categories.parquet")
        rows = read_parquet(directory / "sample_rows.parquet")
        classes = len(values["class_rows"])
        counts = {str(name): _counts_of(found, classes) for name, found in counted.groupby("column", sort=False)}
        ranges = {}
        for name, (low, high, missing) in values["ranges"].items():
            ranges[name] = NumberRange()
            ranges[name].missing = missing
            if low is not None:
                ranges[name].low, ranges[name].high = low, high
        return cls(
            np.array(values["class_rows"], dtype=np.int64),
            True,
            roles,
            {name: Kind(kind) for name, kind in values["kinds"].items()},
            sample,
            rows["code"].to_numpy(),
            rows["source_row"].to_numpy(),
            counts,
            ranges,
            read_parquet(directory / "example.parquet"),
            Readings.from_json(values.get("readings", Readings().to_json())),
        )


def gather_statistics(
    blocks: Iterable[Block],
    columns: Sequence[str],
    given: Mapping[str, Role],
    *,
    classes: int = 1,
    is_labelled: bool = True,
    seed: int = 0,
) -> TableStatistics:
    """Gather the statistics of some columns in one pass, and decide their roles."""
    gatherers: dict[str, ColumnGatherer] = {name: gatherer_of(name, given.get(name)) for name in columns}
    sample = RowSample(seed, min(SAMPLE_ROWS, max(SAMPLE_CELLS // (len(columns) + 1), 1)))
    sample_rows = RowSample(seed, min(SAMPLE_ROWS, max(SAMPLE_CELLS // (len(columns) + 1), 1)))
    class_rows, example = np.zeros(classes, dtype=np.int64), None

    def add(block: Block, strata: np.ndarray, name: str) -> None:
        _check_given(block, name, given.get(name))
        gatherers[name].add(block.frame[name], strata, block.row_ids)

    for block in blocks:
        strata = strata_of(block.codes, block.row_ids)
        for _ in side_by_side([partial(add, block, strata, name) for name in columns]):
            pass
        sample.add(block.frame[list(columns)])
        sample_rows.add(pd.DataFrame({"code": block.codes, "row_id": block.row_ids}))
        class_rows += np.bincount(block.codes, minlength=classes)
        example = _joined_types(example, block.frame[list(columns)].iloc[:1])
    if example is None:
        raise InputError(NO_ROWS)
    facts = {name: gatherer.facts() for name, gatherer in gatherers.items()}
    roles = {name: decided_role(name, facts[name], given.get(name)) for name in columns}
    counts, ranges = {}, {}
    for name, role in roles.items():
        counter = gatherers[name].counter
        if role.role is Role.NUMERIC:
            found = ranges[name] = gatherers[name].range
            if found.first_infinite is not None:
                refuse_infinities(name, found.infinite, found.first_infinite)
        elif role.role is not Role.DROP and counter is not None and counter.is_exact:
            counts[name] = counter.counts(classes)
    rows, sampled = sample.rows(), sample_rows.rows()
    return TableStatistics(
        class_rows=class_rows,
        is_labelled=is_labelled,
        roles=roles,
        kinds={name: found.kind for name, found in facts.items()},
        sample=typed_columns(rows, roles, np.arange(len(rows))),
        sample_codes=sampled["code"].to_numpy(),
        sample_row_ids=sampled["row_id"].to_numpy(),
        counts=counts,
        ranges=ranges,
        example=example.reset_index(drop=True),
    )


_NO_CELLS = pd.DataFrame({"column": [], "category": [], "stratum": [], "rows": []}).astype(
    {"column": "str", "category": "str", "stratum": "int64", "rows": "int64"}
)


def _cells_of(name: str, counts: CategoryCounts) -> pd.DataFrame:
    """Return the counts of a column as a table, for storage; missing values are a category without a name."""
    cells = counts.cells.tocoo()
    keys = pd.Series([*counts.keys, None], dtype="str").take(cells.row).reset_index(drop=True)
    return pd.DataFrame({"column": name, "category": keys, "stratum": cells.col, "rows": cells.data})


def _counts_of(found: pd.DataFrame, classes: int) -> CategoryCounts:
    """Return the counts of a column from those of :func:`_cells_of`."""
    places, keys = pd.factorize(found["category"])
    cells = found["rows"].to_numpy(), (np.where(places < 0, len(keys), places), found["stratum"].to_numpy())
    return CategoryCounts(keys.tolist(), sparse.csr_array(cells, shape=(len(keys) + 1, classes * FOLDS)))


NO_ROWS = "The table has no rows; give one with at least two rows of different classes."


def typed_columns(table: pd.DataFrame, roles: Mapping[str, ColumnRole], row_ids: np.ndarray) -> pd.DataFrame:
    """Return the kept columns in the form that their roles ask for, or refuse the first value that does not fit.

    Numeric: NumPy numbers with NaN for missing; string: pandas ``str``; code: integers, booleans, or ``Int64`` where
    values are missing. ``row_ids`` are the rows' positions in the source, for messages.
    """
    columns = {
        name: _as_role(table[name], role.role, row_ids) for name, role in roles.items() if role.role is not Role.DROP
    }
    return pd.DataFrame(columns, index=table.index, copy=False)


def column_notices(statistics: TableStatistics, given: Mapping[str, Role | str]) -> list[Notice]:
    """Return notices about columns that were dropped without the user's request, and about mixed types."""
    notices = []
    for name, role in statistics.roles.items():
        if role.role is not Role.DROP or name in given:
            continue
        if role.missing == statistics.rows:
            notices.append(Notice("all_missing_column", "holds no value at all and was dropped", name))
        elif role.distinct == 1:
            message = "holds the same value in every row and was dropped; give it a role to keep it"
            notices.append(Notice("constant_column", message, name))
        else:
            message = (
                f"looks like an identifier ({role.distinct} distinct values in {statistics.rows} rows) and was "
                "dropped; give it a role to keep it"
            )
            notices.append(Notice("identifier_column", message, name))
    for name, role in statistics.roles.items():
        if role.role is Role.STRING and statistics.kinds[name] is Kind.MIXED:
            message = (
                "holds values of several types, or of one that is no text, number or date, and was read as strings"
            )
            notices.append(Notice("mixed_types", message, name))
    return notices


def refuse_no_features(roles: Mapping[str, ColumnRole]) -> None:
    """Refuse a table of which no feature column is kept."""
    if any(role.role is not Role.DROP for role in roles.values()):
        return
    if not roles:
        raise InputError("The table has no column besides the label; give it at least one feature column.")
    reasons = ", ".join(f"{role.name!r} ({role.reason})" for role in list(roles.values())[:5])
    raise InputError(f"No feature column is left, all were dropped: {reasons}; give at least one of them a role.")


def refuse_infinities(name: str, count: int, first: int) -> None:
    """Refuse a column with infinite values, given their number and the position of the first one."""
    raise InputError(
        f"Column {name!r} holds {count} infinite values, the first in {row_named(first)}; "
        "replace them by numbers or leave them empty."
    )


def row_named(position: int) -> str:
    """Name a row for people, from its position in the source, counting from 0."""
    return f"data row {position + 1} (the first is 1)"


def as_numbers(series: pd.Series[Any]) -> np.ndarray:
    """Return a numeric column as integers that are exact in float64 where it holds such, else as float64."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iu" and dtype.itemsize <= _EXACT_BYTES:
        return series.to_numpy()
    return as_floats(series)


def _as_role(series: pd.Series[Any], role: Role, row_ids: np.ndarray) -> pd.Series[Any]:
    name = str(series.name)
    if role is Role.STRING:
        return to_text(series)
    values, refused = to_numbers(series) if role is Role.NUMERIC else to_codes(series)
    if values.dtype.kind == "f":
        infinite = np.isinf(values.to_numpy())
        if infinite.any():
            refuse_infinities(name, int(infinite.sum()), int(row_ids[int(np.argmax(infinite))]))
    if refused.size:
        wanted = "a number" if role is Role.NUMERIC else "an integer"
        first = refused[0]
        raise InputError(
            f"Column {name!r} can't have the role {role.value!r}: {str(series.iloc[first])!r} in "
            f"{row_named(row_ids[first])} is not {wanted}; correct the value or use the role 'string'."
        )
    return values


def _check_given(block: Block, name: str, given: Role | None) -> None:
    """Refuse a value that does not fit the role that the user gave the column."""
    if given in (Role.NUMERIC, Role.CODE) and len(block.row_ids):
        typed_columns(block.frame[[name]], {name: ColumnRole(name, given, "", 0, 0)}, block.row_ids)


def _joined_types(before: pd.DataFrame | None, first: pd.DataFrame) -> pd.DataFrame:
    """Return one row in the types that hold the values of all blocks so far, such as integers with gaps."""
    if before is None or not len(before):
        return first
    if not len(first) or (before.dtypes == first.dtypes).all():
        return before
    return pd.concat([before, first]).iloc[:1]
