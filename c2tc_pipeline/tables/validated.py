"""A table that was looked at once: what its columns are for, and on which side of the split each row stands.

Everything after this, in a command or in a pipeline, starts here. The test side is handed out to nobody but the
evaluation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.storage.hashing import hash_array, hash_frame, hash_json
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.preparation import PreparedTable, prepare_table
from c2tc_pipeline.tables.roles import ColumnRole, Role
from c2tc_pipeline.tables.schema import derive_schema, schema_to_json
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.split import duplicate_groups, split_rows

SIDES = ("train", "validation", "test")
UNLABELLED = "no label"


@dataclass(frozen=True)
class ValidatedTable:
    """A table with roles, schema and split.

    Parameters
    ----------
    frame : DataFrame
        The table as it was read.
    label : str
        The column to predict.
    sides : ndarray of str
        The side of every row: ``"train"``, ``"validation"``, ``"test"``, or ``"no label"``.
    roles : dict of str to ColumnRole
        Every column but the label, the dropped ones included, as seen in the training rows.
    schema : str
        What later deliveries are checked against, as JSON.
    notices : list of Notice
        What was found and done.

    Examples
    --------
    >>> spec = TableSpec(name="t", source="t.csv", label="y", roles={"x": "numeric"})
    >>> table = validate_table(pd.DataFrame({"x": range(40), "y": ["a", "b"] * 20}), spec)
    >>> {side: len(table.part(side)) for side in SIDES}
    {'train': 32, 'validation': 4, 'test': 4}
    """

    frame: pd.DataFrame
    label: str
    sides: np.ndarray
    roles: dict[str, ColumnRole]
    schema: str
    notices: list[Notice] = field(default_factory=list)

    def positions(self, side: str) -> np.ndarray:
        """Return which rows of the source stand on a side, counting from 0."""
        return np.flatnonzero(self.sides == side)

    def part(self, side: str) -> pd.DataFrame:
        """Return the rows of a side as they were read."""
        return self.frame.iloc[self.positions(side)]

    def prepared(self, side: str = "train") -> PreparedTable:
        """Return the rows of a side with columns in the form their roles ask for; ``row_ids`` count in the source."""
        prepared = prepare_table(self.part(side), label=self.label, decided=self.roles)
        # What there was to notice was noticed when the roles were decided.
        return PreparedTable(prepared.X, prepared.y, prepared.roles, self.positions(side)[prepared.row_ids])

    def split_frame(self) -> pd.DataFrame:
        """Return who is where, for people: ``source_row`` and ``side``."""
        return pd.DataFrame({"source_row": np.arange(len(self.sides)), "side": pd.Series(self.sides, dtype="str")})

    def digest(self) -> str:
        """Return the hash of everything in it."""
        return hash_json([hash_frame(self.frame), hash_frame(self.split_frame()), self._description()])

    def training_digest(self) -> str:
        """Return the hash of what condensing sees of it: no row of the other sides."""
        described = self._description()
        train = [hash_frame(self.part("train")), hash_array(self.positions("train"))]
        return hash_json([*train, described["label"], described["roles"], described["notices"]])

    def write_files(self, directory: Path) -> None:
        """Write the table into an existing directory."""
        write_parquet(self.frame, directory / "table.parquet")
        write_parquet(self.split_frame(), directory / "split.parquet")
        text = json.dumps(self._description(), indent=1, ensure_ascii=False)
        (directory / "description.json").write_text(text + "\n", encoding="utf-8", errors="surrogatepass")

    @classmethod
    def read_files(cls, directory: Path) -> ValidatedTable:
        """Read what :meth:`write_files` wrote."""
        values = _read_description(directory)
        return cls(
            frame=read_parquet(directory / "table.parquet"),
            label=values["label"],
            sides=read_parquet(directory / "split.parquet")["side"].to_numpy(dtype=object),
            roles={role["name"]: ColumnRole(**{**role, "role": Role(role["role"])}) for role in values["roles"]},
            schema=json.dumps(values["schema"], indent=1, ensure_ascii=False),
            notices=[Notice(**notice) for notice in values["notices"]],
        )

    def _description(self) -> dict[str, object]:
        return {
            "label": self.label,
            "roles": [vars(role) for role in self.roles.values()],
            "schema": json.loads(self.schema),
            "notices": [notice.to_dict() for notice in self.notices],
        }


def read_schema(directory: Path) -> str:
    """Return the schema of a stored table alone, as JSON."""
    return json.dumps(_read_description(directory)["schema"])


def validate_table(frame: pd.DataFrame, spec: TableSpec) -> ValidatedTable:
    """Decide the roles of a table's columns, derive its schema and split its rows.

    Parameters
    ----------
    frame : DataFrame
        The table as it was read.
    spec : TableSpec
        Its description.

    Raises
    ------
    InputError
        When the table can't be used; the message says why and what to do.

    Examples
    --------
    >>> table = pd.DataFrame({"x": [1.5, 2.5, 3.5] * 20, "y": ["a", "b", None] * 20})
    >>> validated = validate_table(table, TableSpec(name="t", source="t.csv", label="y"))
    >>> str(validated.notices[0]), validated.prepared().row_ids[:2].tolist()
    ("Column 'y': 20 rows without a label were left out", [0, 4])
    """
    prepared = prepare_table(frame, label=spec.label, roles=spec.roles)
    chosen = spec.split
    groups = duplicate_groups(prepared.X) if chosen.group_duplicates else None
    parts = split_rows(prepared.y, validation=chosen.validation, test=chosen.test, seed=chosen.seed, groups=groups)
    sides = np.full(len(frame), UNLABELLED, dtype=object)
    for side in SIDES:
        sides[prepared.row_ids[getattr(parts, side)]] = side
    schema = schema_to_json(derive_schema(prepared, spec))
    # What condensing knows of a column, it knows from the training rows.
    train = prepare_table(frame.iloc[np.flatnonzero(sides == "train")], label=spec.label, roles=spec.roles)
    unlabelled = [notice for notice in prepared.notices if notice.kind == "missing_labels"]
    return ValidatedTable(frame, spec.label, sides, train.roles, schema, [*unlabelled, *train.notices])


def _read_description(directory: Path) -> dict[str, Any]:
    path = directory / "description.json"
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    return values
