"""A table: blocks of rows with a label, column roles, a split into sides, and statistics of the training rows.

Only the evaluation reads the test side.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.defaults import check_columns
from c2tc_pipeline.common.errors import InputError, Notice, counted
from c2tc_pipeline.sources.values import ValuesHash
from c2tc_pipeline.storage.manifest import hash_array, hash_json
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.blocks import LARGE_CELLS, Blocks, arrow_batch
from c2tc_pipeline.tables.frames import in_type
from c2tc_pipeline.tables.kinds import plain, to_text
from c2tc_pipeline.tables.labels import LabelGatherer
from c2tc_pipeline.tables.readings import gather_readings
from c2tc_pipeline.tables.roles import ColumnRole, Role
from c2tc_pipeline.tables.spec import SplitSettings, TableSpec
from c2tc_pipeline.tables.split import SIDES, row_hashes, split_rows
from c2tc_pipeline.tables.statistics import (
    NO_ROWS,
    Block,
    TableStatistics,
    column_notices,
    gather_statistics,
    refuse_no_features,
    typed_columns,
)

_NO_LABEL = -1


@dataclass(frozen=True)
class Table:
    """Blocks of rows with their label, roles, split and statistics.

    Examples
    --------
    >>> frame = pd.DataFrame({"version": [1, 1, 1], "age": [31, 45, 28], "y": ["no", "yes", None]})
    >>> table = learn_table(Blocks.of_frame(frame), label="y")
    >>> table.statistics.kept, table.codes.tolist(), [str(notice) for notice in table.notices][:1]
    (['age'], [0, 1, -1], ["Column 'y': 1 row without a label was left out"])
    """

    blocks: Blocks
    label: str
    classes: np.ndarray  # sorted
    label_dtype: Any  # of a column of labels
    codes: np.ndarray  # the class number of every row; -1 without a label
    sides: np.ndarray  # of every row, an index into SIDES; -1 without a label
    statistics: TableStatistics  # of the training rows
    missing: dict[str, int]  # missing values of each column over all labelled rows
    given: tuple[str, ...] = ()  # columns whose role the user set
    notices: list[Notice] = field(default_factory=list)

    @property
    def roles(self) -> dict[str, ColumnRole]:
        """The role of every column but the label, the dropped ones included."""
        return self.statistics.roles

    @property
    def class_rows(self) -> np.ndarray:
        """Training rows of each class."""
        return self.statistics.class_rows

    @property
    def is_large(self) -> bool:
        """Whether values computed for each row should go to files instead of memory."""
        return not self.blocks.in_memory or len(self.codes) * len(self.blocks.columns) >= LARGE_CELLS

    def positions(self, side: str) -> np.ndarray:
        """Return the positions of the rows of a side in the source, counting from 0."""
        return np.flatnonzero(self.sides == SIDES.index(side))

    def rows(self, side: str = "train", columns: Sequence[str] | None = None) -> Iterator[Block]:
        """Yield the rows of a side, block by block."""
        return _blocks_of(self.blocks.frames(columns), self.codes, self.sides == SIDES.index(side))

    def read(self, side: str) -> pd.DataFrame:
        """Return the rows of a side in memory."""
        return pd.concat([block.frame for block in self.rows(side)] or [self.statistics.example.iloc[:0]])

    def labels(self, codes: np.ndarray) -> pd.Series[Any]:
        """Return the labels of class numbers, as a column of the label's name and type."""
        return in_type(pd.Series(self.classes[codes], name=self.label), self.label_dtype)

    def split_frame(self) -> pd.DataFrame:
        """Return ``source_row`` and ``side`` of every row, for people."""
        names = np.array([*SIDES, "no label"], dtype=object)
        sides = pd.Series(names[self.sides], dtype="str")
        return pd.DataFrame({"source_row": np.arange(len(sides)), "side": sides})

    def digest(self) -> str:
        """Return the hash of everything in it."""
        return hash_json([self.blocks.values_digest(), hash_array(self.sides), self._description()])

    def training_digest(self) -> str:
        """Return the hash of the training side, which is all that condensing reads."""
        values = ValuesHash()
        for block in self.rows():
            values.update(arrow_batch(block.frame))
        described = self._description()
        rows = [values.hexdigest(), hash_array(self.positions("train"))]
        return hash_json([*rows, described["label"], described["roles"]])

    def write_files(self, directory: Path) -> None:
        """Write the table into an existing directory."""
        self.blocks.write(directory / "table.parquet")
        write_parquet(self.split_frame().assign(code=self.codes), directory / "split.parquet")
        write_parquet(pd.DataFrame({"class": self.labels(np.arange(len(self.classes)))}), directory / "classes.parquet")
        self.statistics.write_files(directory)
        text = json.dumps(self._description(), indent=1, ensure_ascii=False)
        (directory / "description.json").write_text(text + "\n", encoding="utf-8", errors="surrogatepass")

    @classmethod
    def read_files(cls, directory: Path) -> Table:
        """Read what :meth:`write_files` wrote."""
        path = directory / "description.json"
        values = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        roles = {role["name"]: ColumnRole(**{**role, "role": Role(role["role"])}) for role in values["roles"]}
        split = read_parquet(directory / "split.parquet")
        known = {name: number for number, name in enumerate(SIDES)}
        labels = read_parquet(directory / "classes.parquet")["class"]
        return cls(
            blocks=Blocks.of_parquet(directory / "table.parquet"),
            label=values["label"],
            classes=plain(labels).to_numpy(),
            label_dtype=labels.dtype,
            codes=split["code"].to_numpy(),
            sides=split["side"].map(known).fillna(_NO_LABEL).to_numpy(dtype=np.int8),
            statistics=TableStatistics.read_files(directory, roles),
            missing=values["missing"],
            given=tuple(values["given"]),
            notices=[Notice(**notice) for notice in values["notices"]],
        )

    def _description(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "roles": [vars(role) for role in self.roles.values()],
            "missing": self.missing,
            "given": list(self.given),
            "notices": [notice.to_dict() for notice in self.notices],
        }


def learn_table(
    blocks: Blocks,
    *,
    label: str,
    roles: Mapping[str, Role | str] | None = None,
    split: SplitSettings | None = None,
    missing: Sequence[str] = (),
    label_kind: str = "auto",
) -> Table:
    """Read the labels, split the rows, and gather roles and statistics of the training rows.

    ``roles`` override the inferred ones. Without a ``split`` all labelled rows are for training. ``missing`` are
    further spellings of missing values. With ``label_kind="classes"`` a label may have many different numbers.
    InputError when the table can't be used: no rows, no such label, a label that has one class or looks continuous, no
    feature left, infinities, or a role that the values don't fit.
    """
    given = check_columns(blocks.columns, label, roles or {})
    columns = [name for name in blocks.columns if name != label]
    readings, changed, read = gather_readings(blocks.frames, missing=missing, roles=given, label=label)
    blocks = blocks.read_as(readings, changed)
    notices = [*blocks.notices, *read]
    gatherer = LabelGatherer(label, kind=label_kind)
    numbers: list[np.ndarray] = []
    for frame in blocks.frames([label]):
        present = np.flatnonzero(frame[label].notna().to_numpy())
        found = np.full(len(frame), _NO_LABEL, dtype=np.int32)
        start = sum(len(part) for part in numbers)
        found[present] = gatherer.add(frame[label].iloc[present], present + start)
        numbers.append(found)
    appearance = np.concatenate(numbers)
    labelled = appearance != _NO_LABEL
    if not len(appearance):
        raise InputError(NO_ROWS)
    if unlabelled := int((~labelled).sum()):
        without = f"{counted(unlabelled, 'row')} without a label {'was' if unlabelled == 1 else 'were'} left out"
        notices.append(Notice("missing_labels", without, label))
    classes = gatherer.classes(notices)
    codes = np.append(classes.numbers, _NO_LABEL).astype(np.int32)[appearance]
    sides = np.where(labelled, 0, _NO_LABEL).astype(np.int8)
    count = len(classes.values)
    if split is not None:
        groups = None
        if split.group_duplicates:
            everything = gather_statistics(_blocks_of(blocks.frames(), codes, labelled), columns, given, classes=count)
            groups = _duplicate_groups(blocks, codes, labelled, everything)
        shares = {"validation": split.validation, "test": split.test}
        sides[labelled] = split_rows(appearance[labelled], **shares, seed=split.seed, groups=groups)
    absent = dict.fromkeys(columns, 0)

    def training() -> Iterator[Block]:
        for block in _blocks_of(blocks.frames(), codes, labelled):
            for name in columns:
                absent[name] += int(block.frame[name].isna().sum())
            train = np.flatnonzero(sides[block.row_ids] == 0)
            yield _picked(block, train)

    statistics = gather_statistics(training(), columns, given, classes=count)
    statistics = replace(statistics, readings=readings)
    notices += column_notices(statistics, given)
    refuse_no_features(statistics.roles)
    return Table(blocks, label, classes.values, classes.dtype, codes, sides, statistics, absent, tuple(given), notices)


def learn_described(blocks: Blocks, spec: TableSpec, split: SplitSettings | None = None) -> Table:
    """Learn a table as the catalogue describes it."""
    return learn_table(
        blocks, label=spec.label, roles=spec.roles, split=split, missing=spec.missing, label_kind=spec.label_kind
    )


def with_validation(table: Table, frame: pd.DataFrame) -> Table:
    """Return a table with further labelled rows as its validation side; rows of unknown classes are left out."""
    readings = table.statistics.readings
    rows = Blocks.of_frame(frame)
    rows = rows.read_as(readings, rows.columns)
    for name in (table.label, *table.statistics.kept):
        if name not in rows.columns:
            raise InputError(f"The validation rows lack the column {name!r}; add it.")
    codes = known_codes(pd.concat(rows.frames([table.label]))[table.label], table.classes)
    if (codes == len(table.classes)).all():
        raise InputError(f"No validation row has a known class in the label column {table.label!r}; give some that do.")
    known = codes < len(table.classes)
    side = np.where(known, SIDES.index("validation"), _NO_LABEL).astype(np.int8)
    return replace(
        table,
        blocks=table.blocks.followed_by(rows),
        codes=np.concatenate([table.codes, np.where(known, codes, _NO_LABEL).astype(np.int32)]),
        sides=np.concatenate([table.sides, side]),
    )


def known_codes(labels: pd.Series[Any], classes: np.ndarray) -> np.ndarray:
    """Return the class number of each label; one that is not known gets the number after the last."""
    # Labels of mixed types are text in a table, so they are here.
    values = plain(to_text(labels) if isinstance(classes[0], str) else labels).to_numpy()
    known = np.isin(values, classes)
    codes = np.full(len(values), len(classes), dtype=np.int64)
    codes[known] = np.searchsorted(classes, values[known])
    return codes


def _blocks_of(frames: Iterator[pd.DataFrame], codes: np.ndarray, wanted: np.ndarray) -> Iterator[Block]:
    start = 0
    for frame in frames:
        here = slice(start, start + len(frame))
        start = here.stop
        picked = np.flatnonzero(wanted[here])
        if len(picked):
            yield _picked(Block(frame, codes[here], np.arange(here.start, here.stop)), picked)


def _picked(block: Block, places: np.ndarray) -> Block:
    if len(places) == len(block.row_ids):
        return block
    return Block(block.frame.take(places), block.codes[places], block.row_ids[places])


def _duplicate_groups(
    blocks: Blocks, codes: np.ndarray, labelled: np.ndarray, statistics: TableStatistics
) -> np.ndarray:
    """Return a number for each labelled row, the same for rows with equal features."""
    roles = {name: statistics.roles[name] for name in statistics.kept}
    rows = _blocks_of(blocks.frames(statistics.kept), codes, labelled)
    typed = (typed_columns(block.frame, roles, block.row_ids) for block in rows)
    strings = [name for name, role in roles.items() if role.role is Role.STRING]
    return pd.factorize(row_hashes(typed, strings))[0]
