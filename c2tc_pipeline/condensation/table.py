"""The condensed table: in memory and on disk."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.problem import Allocation
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.common.seeds import RandomStateLike
from c2tc_pipeline.condensation import ARTEFACT_KIND
from c2tc_pipeline.condensation.display import describe, html_card
from c2tc_pipeline.condensation.spread import Spread, weight_column
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder
from c2tc_pipeline.storage.artefact import ScratchDirectory, publish_directory, verify_directory
from c2tc_pipeline.storage.manifest import TIMINGS_NAME, refusing_damage
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet, write_parquet_parts
from c2tc_pipeline.tables.frames import FrameKind
from c2tc_pipeline.tables.kinds import plain

# What differs between two runs over the same rows has a file of its own, so that all others are equal byte by byte.
TIMINGS = ("seconds", "processor_seconds", "cache_hits")


@dataclass(repr=False)
class CondensedTable:
    """A condensed table: few rows that stand for many.

    Parameters
    ----------
    X : DataFrame
        Encoded rows, what a model trains on; the same columns that ``encoder.transform`` returns.
    y : Series
        The label of each row.
    weight : Series of int
        How many source rows stand behind each row.
    original_rows : DataFrame
        The same rows in the original schema: numbers in their own units, categories by name, the label last.
        :attr:`original` has them in the kind of table that was condensed.
    spread : Spread
        How the source rows behind each row vary.
    members : DataFrame or StoredMembership
        ``source_row`` (position in the source table) and ``condensed_row``, for every source row with a label; in a
        file where the table was condensed in blocks. :attr:`membership` is a frame in any case.
    encoder : TableEncoder
        Encodes new rows for a model trained on ``X``.
    allocation : Allocation
        Condensed rows per class, in the order of ``classes``, with objective, bound and trace.
    classes : list
        The class values.
    class_rows : list of int
        Source rows of each class.
    curves : list of LossCurve
        The loss curve of each class.
    roles : DataFrame
        The role of each source column, and the reason for it.
    projection : DataFrame
        Source and condensed rows in two dimensions, for pictures.
    notices : list of Notice
        Remarks about the table and how it was handled.
    summary : dict
        Settings, sizes, objective, bound, seconds by stage; plain JSON values.
    frame_kind : FrameKind, optional
        The kind of table that :attr:`original` and :meth:`expand` return, pandas by default and after loading.

    See Also
    --------
    condense : Make a condensed table of a data frame.
    evaluate : Score models trained on it.
    c2tc_pipeline.condensation.forget.forget_rows : Remove source rows from it.

    Examples
    --------
    >>> from c2tc_pipeline import condense
    >>> rows = pd.DataFrame({"x": range(100), "y": ["a"] * 80 + ["b"] * 20})
    >>> small = condense(rows, label="y", ratio=0.1, roles={"x": "numeric"})
    >>> len(small.X), int(small.weight.sum()), small.original.columns.tolist()
    (10, 100, ['x', 'y'])
    """

    X: pd.DataFrame
    y: pd.Series[Any]
    weight: pd.Series[Any]
    original_rows: pd.DataFrame
    spread: Spread
    members: pd.DataFrame | StoredMembership
    encoder: TableEncoder
    allocation: Allocation
    classes: list[Any]
    class_rows: list[int]
    curves: list[LossCurve]
    roles: pd.DataFrame
    projection: pd.DataFrame
    notices: list[Notice]
    summary: dict[str, Any]
    frame_kind: FrameKind | None = None

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return describe(self)

    def _repr_html_(self) -> str:
        return html_card(self)

    @property
    def original(self) -> Any:
        """The rows in the original schema, in the kind of table that was condensed: pandas, polars or pyarrow."""
        return self.original_rows if self.frame_kind is None else self.frame_kind.frame(self.original_rows)

    @property
    def membership(self) -> pd.DataFrame:
        """The condensed row of every source row with a label, read from its file where it is in one."""
        return self.members if isinstance(self.members, pd.DataFrame) else self.members.read()

    @property
    def label_name(self) -> str:
        """The name of the label column."""
        return str(self.y.name)

    @property
    def training_weight(self) -> pd.Series[Any]:
        """How much each row should count in training; see :mod:`c2tc_pipeline.condensation.table`."""
        weights = training_weights(self.weight.to_numpy(), plain(self.y).to_numpy())
        return pd.Series(weights, index=self.y.index, name="training_weight")

    def expand(
        self,
        rows: int | None = None,
        *,
        space: str = "original",
        class_mix: str = "condensed",
        random_state: RandomStateLike = 0,
    ) -> tuple[Any, Any, Any]:
        """Draw training rows from the condensed rows and their spread.

        Numbers stay in the range of their column and integers stay integers; categories are ones that occurred.

        Parameters
        ----------
        rows : int, optional
            How many rows to draw: any number; by default 20,000, or ten for each condensed row if that is more, but
            not more than the source has.
        space : {"original", "encoded"}, default="original"
            The columns of the source, or the columns of ``X``.
        class_mix : {"condensed", "source"}, default="condensed"
            Class shares: as models see them in the condensed rows with their ``training_weight``, or as in the source,
            which favours accuracy over small classes.
        random_state : int, Generator, RandomState or None, default=0
            The same integer gives the same rows.

        Returns
        -------
        X : DataFrame or Table
            The rows, in the kind of table that was condensed.
        y : Series or Array
            Their labels.
        weight : Series or Array of float
            How much each row counts, 1 on average. Classes and condensed rows have exactly their shares by it.

        Raises
        ------
        InputError
            When a parameter is out of range.

        Examples
        --------
        >>> from c2tc_pipeline import condense
        >>> table = pd.DataFrame({"x": range(100), "y": ["a"] * 80 + ["b"] * 20})
        >>> small = condense(table, label="y", ratio=0.1, roles={"x": "numeric"})
        >>> X, y, weight = small.expand(rows=500)
        >>> X.shape, bool(X["x"].between(0, 99).all()), round(weight.sum())
        ((500, 1), True, 500)
        """
        from c2tc_pipeline.condensation.expand import expand_table

        X, y, weight = expand_table(self, rows, space=space, class_mix=class_mix, random_state=random_state)
        kind = self.frame_kind
        return (X, y, weight) if kind is None else (kind.frame(X), kind.column(y), kind.column(weight))

    def save(self, directory: str | Path, *, replace: bool = False, report: bool = False) -> Path:
        """Write the table into a directory, all or nothing; :meth:`load` reads it back.

        Parameters
        ----------
        directory : path
            Created; an existing one is refused unless it is empty.
        replace : bool, default=False
            Replace a condensed table that was saved there before.
        report : bool, default=False
            Write ``report.html``, the page with figures and tables, beside the files.
        """
        return publish_directory(
            directory, self.write_with_report if report else self.write_files, kind=ARTEFACT_KIND, replace=replace
        )

    def write_with_report(self, directory: Path) -> None:
        """Write all files of the table, and its report, into an existing directory."""
        # The only import of a later room; here, because reports need matplotlib and Jinja2.
        from c2tc_pipeline.reports.html import render_report

        self.write_files(directory)
        # Reports work with pandas, whatever was condensed.
        (directory / "report.html").write_text(render_report(replace(self, frame_kind=None)), encoding="utf-8")

    def write_files(self, directory: Path) -> None:
        """Write all files of the table into an existing directory."""
        taken = [*self.X.columns, *self.original_rows.columns]
        weight, training_weight = weight_column(taken), weight_column(taken, "training_weight")
        weights = [self.weight.rename(weight), self.training_weight.rename(training_weight)]
        encoded = pd.concat([self.X, self.y, *weights], axis="columns")
        write_parquet(_storable(encoded), directory / "condensed.parquet")
        original = pd.concat([self.original_rows, *weights], axis="columns")
        write_parquet(_storable(original), directory / "condensed_original.parquet")
        if isinstance(self.members, StoredMembership):
            self.members.copy_to(directory / "membership.parquet")
        else:
            write_parquet(self.members, directory / "membership.parquet")
        self.spread.write_files(directory, self.X.columns.tolist(), self.weight.to_numpy())
        write_parquet(self.projection, directory / "projection.parquet")
        save_encoder(self.encoder, directory / "encoder")
        timings = {name: self.summary[name] for name in TIMINGS if name in self.summary}
        (directory / TIMINGS_NAME).write_text(json.dumps(timings, indent=2) + "\n", encoding="utf-8")
        values = {
            **{name: value for name, value in self.summary.items() if name not in TIMINGS},
            "label": self.label_name,
            "weight_column": weight,
            "training_weight_column": training_weight,
            "classes": [_plain(value) for value in self.classes],
            "class_rows": self.class_rows,
            "allocation": self.allocation.to_dict(),
            "curves": [curve.to_dict() for curve in self.curves],
            "roles": self.roles.to_dict(orient="records"),
            "notices": [notice.to_dict() for notice in self.notices],
        }
        text = json.dumps(values, indent=2, ensure_ascii=False, default=_plain)
        (directory / "summary.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")

    @classmethod
    def load(cls, directory: str | Path) -> CondensedTable:
        """Read a table that :meth:`save` or ``c2tc condense`` wrote; every file is checked against the manifest."""
        directory = Path(directory)
        verify_directory(directory, kind=ARTEFACT_KIND)
        with refusing_damage(str(directory)):
            return cls.read_files(directory)

    @classmethod
    def read_files(cls, directory: Path) -> CondensedTable:
        """Read what :meth:`write_files` wrote into a directory that was verified."""
        values = read_summary(directory)
        label, weight = values.pop("label"), values.pop("weight_column")
        weights = [weight, values.pop("training_weight_column")]
        encoded = read_parquet(directory / "condensed.parquet")
        curves = values.pop("curves")
        return cls(
            X=encoded.drop(columns=[label, *weights]),
            y=encoded[label],
            weight=encoded[weight].rename("weight"),
            original_rows=read_parquet(directory / "condensed_original.parquet").drop(columns=weights),
            spread=Spread.read_files(directory, encoded[weight].to_numpy()),
            members=read_parquet(directory / "membership.parquet"),
            encoder=load_encoder(directory / "encoder").set_output(transform="pandas"),
            allocation=Allocation.from_dict(values.pop("allocation")),
            classes=values.pop("classes"),
            class_rows=values.pop("class_rows"),
            curves=[LossCurve.from_dict(curve) for curve in curves],
            roles=pd.DataFrame(values.pop("roles")),
            projection=read_parquet(directory / "projection.parquet"),
            notices=[Notice(**notice) for notice in values.pop("notices")],
            summary=values,
        )


def read_summary(directory: Path) -> dict[str, Any]:
    """Return the summary of a stored table, with its timings, as JSON values."""
    names = ("summary.json", TIMINGS_NAME)
    summary, timings = (json.loads((directory / name).read_text(encoding="utf-8")) for name in names)
    return {**summary, **timings}


def _storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame that pandas reads back: intervals become text, and Arrow types without a name plain values."""
    changed: dict[str, pd.Series[Any]] = {}
    for name, column in frame.items():
        dtype = column.dtype
        if isinstance(dtype, pd.CategoricalDtype) and isinstance(dtype.categories, pd.IntervalIndex):
            changed[str(name)] = column.cat.rename_categories(dtype.categories.astype(str).tolist())
        elif isinstance(dtype, pd.ArrowDtype):
            try:
                pd.api.types.pandas_dtype(str(dtype))
            except (TypeError, NotImplementedError):
                changed[str(name)] = plain(column)
    return frame.assign(**changed) if changed else frame


def _plain(value: Any) -> Any:
    """Return a JSON value for NumPy scalars; anything else becomes text."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


@dataclass(frozen=True)
class StoredMembership:
    """A membership in a Parquet file, the same bytes as one that is written from memory."""

    path: Path
    scratch: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def write(cls, blocks: Iterable[tuple[np.ndarray, np.ndarray]]) -> StoredMembership:
        """Write blocks of source rows and their condensed rows to a temporary file that is removed with this object."""
        scratch = ScratchDirectory()
        path = Path(scratch.name) / "membership.parquet"
        write_parquet_parts(
            (
                pd.DataFrame({"source_row": source.astype(np.int64), "condensed_row": condensed.astype(np.int32)})
                for source, condensed in blocks
            ),
            path,
        )
        return cls(path, scratch)

    def read(self) -> pd.DataFrame:
        """Return the membership as a frame."""
        return read_parquet(self.path)

    def copy_to(self, path: Path) -> None:
        """Copy the file."""
        shutil.copyfile(self.path, path)


# How far a class's weight is pulled from its share of the condensed rows towards its share of the source rows, as a
# mixture of the two: a rare class keeps most of the extra weight from the allocation, a class that got about its share
# is hardly changed. Chosen on validation rows.
PULL = 0.6


def training_weights(members: np.ndarray, classes: np.ndarray, pull: float = PULL) -> np.ndarray:
    """Return one weight a condensed row: by its members within its class, by the allocation between classes.

    Within a class a row counts by the source rows behind it: a cluster of many is worth more than a cluster of few.
    Between classes weights by members alone would undo the allocation, since they add up to the class's rows however
    many condensed rows it got; so a class weighs a mean of its share of the condensed rows and its share of the source
    rows, see :data:`PULL`.
    """
    _, codes = np.unique(classes, return_inverse=True)
    members = np.asarray(members, dtype=np.float64)
    rows = np.bincount(codes, weights=members)
    shares = (1 - pull) * np.bincount(codes) / len(codes) + pull * rows / rows.sum()
    return np.asarray(members * (shares / rows)[codes] * len(codes))
