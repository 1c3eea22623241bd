"""The encoders that the paper compares HCFE with: label, target, and one-hot encoding with PCA."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
import pandas as pd
from scipy import sparse

from c2tc_pipeline.common.seeds import RandomStateLike
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.part import Part, PartState, category_rows, check_at_least, unit_scale
from c2tc_pipeline.encoding.storage import ENCODERS
from c2tc_pipeline.encoding.strings import most_frequent
from c2tc_pipeline.encoding.target import ClassShares, TargetPart, check_smoothing
from c2tc_pipeline.tables.kinds import natural_order
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


@dataclass(eq=False)
class LabelPart(Part):
    """Categories numbered in the order of their names, scaled to [0, 1]; missing and unseen ones come last."""

    kind = "label"

    columns: list[str]
    keys: list[list[str]]

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str]) -> LabelPart:
        """Learn the categories of each column."""
        return cls(list(columns), [sorted(statistics.categories(name).keys, key=natural_order) for name in columns])

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, known) in enumerate(zip(self.columns, self.keys, strict=True)):
            last = len(known)
            out[:, index] = category_rows(frame[name], known, unseen=last).astype(np.float32) / last if known else 1
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "keys": self.keys})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        return cls(columns, state.text_lists("keys", len(columns)))

    def known(self) -> list[list[str]]:
        return self.keys


@dataclass(eq=False, repr=False)
class LabelEncoder(TableEncoder):
    """Label encoding of all categorical columns, with scaled numeric ones.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [20, 60, 40], "job": ["nurse", "cook", "nurse"]})
    >>> LabelEncoder().fit_transform(rows)
    array([[0. , 0.5],
           [1. , 0. ],
           [0.5, 0.5]], dtype=float32)
    """

    numeric: str = "minmax"
    _: KW_ONLY
    roles: Mapping[str, Role | str] | None = None
    random_state: RandomStateLike = 0

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        return [
            NumericPart.fit(statistics, numeric, self.numeric),
            LabelPart.fit(statistics, [name for name in columns if name not in numeric]),
        ]


@dataclass(eq=False)
class OneHotPart(Part):
    """Categories as principal components of their one-hot columns, one component per column, scaled to [0, 1].

    The one-hot matrix is never built: a row of it has one 1 per column, so its projection is a sum of looked-up rows.

    Further categories than those in ``keys``, missing and unseen ones share one more place.
    """

    kind = "one-hot PCA"

    columns: list[str]
    keys: list[list[str]]
    components: list[np.ndarray]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str], limit: int) -> OneHotPart:
        """Learn categories and components; ``limit`` is the max number of categories of a column."""
        keys = [most_frequent(statistics.categories(name), limit) for name in columns]
        width = len(columns)
        part = cls(list(columns), keys, [], np.zeros(width), np.ones(width))
        if not columns:
            return part
        rows = part._rows(statistics.sample)
        edges = np.cumsum([0, *(len(kept) + 1 for kept in keys)])
        distinct, repeats = np.unique(rows, axis=0, return_counts=True)
        flat = (distinct + edges[:-1]).ravel()
        onehot = sparse.csr_array(
            (np.ones(flat.size), flat, np.arange(0, flat.size + 1, width)), shape=(len(distinct), edges[-1])
        )
        weighted = onehot.multiply(repeats[:, None]).tocsr()
        mean = np.asarray(weighted.sum(axis=0)).ravel() / repeats.sum()
        covariance = (onehot.T @ weighted).toarray() / repeats.sum() - np.outer(mean, mean)
        vectors = np.linalg.eigh(covariance)[1][:, ::-1][:, :width]
        # The sign of an eigenvector is arbitrary; the largest entry is made positive so that reruns agree.
        vectors *= np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
        part.components = [vectors[a:b].astype(np.float32) for a, b in itertools.pairwise(edges)]
        projected = part._project(distinct)
        part.low, part.high = projected.min(axis=0), projected.max(axis=0)
        return part

    def _rows(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the place of each cell's category."""
        cells = [
            category_rows(frame[n], kept, unseen=len(kept)) for n, kept in zip(self.columns, self.keys, strict=True)
        ]
        return np.stack(cells, axis=1)

    def _project(self, rows: np.ndarray) -> np.ndarray:
        return np.sum([component[row] for component, row in zip(self.components, rows.T, strict=True)], axis=0)

    def names(self) -> list[str]:
        return [f"onehot_pca_{index}" for index in range(len(self.columns))]

    def sources(self) -> list[list[str]]:
        return [self.columns] * len(self.columns)

    def known(self) -> list[list[str]]:
        return self.keys

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        return unit_scale(self._project(self._rows(frame)), self.low, self.high)

    def state(self) -> PartState:
        arrays = {f"component_{i}": component for i, component in enumerate(self.components)}
        return PartState({"columns": self.columns, "keys": self.keys}, {**arrays, "low": self.low, "high": self.high})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        width = len(columns)
        keys = state.text_lists("keys", width)
        components = [state.array(f"component_{i}", len(known) + 1, width) for i, known in enumerate(keys)]
        return cls(columns, keys, components, state.array("low", width), state.array("high", width))


@dataclass(eq=False, repr=False)
class OneHotPcaEncoder(TableEncoder):
    """One-hot encoding of all categorical columns, reduced by PCA to as many columns.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [20, 60, 40], "job": ["nurse", "cook", "nurse"]})
    >>> OneHotPcaEncoder().fit_transform(rows).round(3)
    array([[0. , 1. ],
           [1. , 0. ],
           [0.5, 1. ]], dtype=float32)
    """

    numeric: str = "minmax"
    _: KW_ONLY
    max_categories: int = 1000
    roles: Mapping[str, Role | str] | None = None
    random_state: RandomStateLike = 0

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_at_least(1, max_categories=self.max_categories)
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        categorical = [name for name in columns if name not in numeric]
        return [
            NumericPart.fit(statistics, numeric, self.numeric),
            OneHotPart.fit(statistics, categorical, self.max_categories),
        ]


class ScalarTargetPart(TargetPart):
    """Categories as the mean of their class numbers, which depends on the order of the classes."""

    @staticmethod
    def directions(shares: ClassShares, smoothing: float) -> np.ndarray:
        return np.arange(len(shares.overall), dtype=np.float64)[:, None]


@dataclass(eq=False, repr=False)
class TargetEncoder(TableEncoder):
    """Smoothed target encoding of all categorical columns, with scaled numeric ones.

    With ``scalar`` class numbers are averaged, as printed in the paper, in the place of class shares.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"job": ["nurse", "cook", "nurse"]})
    >>> TargetEncoder().fit(rows, [1, 0, 1]).transform(rows).ravel()
    array([0., 1., 0.], dtype=float32)
    """

    numeric: str = "minmax"
    _: KW_ONLY
    smoothing: float | str = "auto"
    scalar: bool = False
    roles: Mapping[str, Role | str] | None = None
    random_state: RandomStateLike = 0

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_smoothing(self.smoothing)
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        parts: list[Part] = [NumericPart.fit(statistics, numeric, self.numeric)]
        if categorical := [name for name in columns if name not in numeric]:
            part = ScalarTargetPart if self.scalar else TargetPart
            parts.append(part.fit(statistics, categorical, smoothing=self.smoothing))
        return parts


ENCODERS.update({kind.__name__: kind for kind in (LabelEncoder, OneHotPcaEncoder, TargetEncoder)})
