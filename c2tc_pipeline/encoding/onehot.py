"""One-hot encoding with PCA, one of the paper's ablations, without ever building the one-hot matrix."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.parameters import check_at_least
from c2tc_pipeline.encoding.part import Part, PartState, unit_scale
from c2tc_pipeline.encoding.row_block import Rows
from c2tc_pipeline.encoding.stored_state import array, text_lists, texts
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


class OneHotPart(Part):
    """Categories as principal components of their one-hot columns, one component per column, scaled to [0, 1].

    A row of the one-hot matrix has one 1 per column, so its projection is a sum of looked-up rows.

    Parameters
    ----------
    columns : list of str
        The input columns.
    keys : list of list of str
        The categories of each column; further ones, missing ones and unseen ones share one more place.
    components : list of ndarray of shape (categories + 1, outputs)
        What each category adds to the projection.
    low, high : ndarray
        Limits of the projection on the training rows.
    """

    kind = "one-hot PCA"

    def __init__(
        self, columns: list[str], keys: list[list[str]], components: list[np.ndarray], low: np.ndarray, high: np.ndarray
    ) -> None:
        self.columns = columns
        self.keys = keys
        self.components = components
        self.low = low
        self.high = high

    @classmethod
    def fit(cls, statistics: TableStatistics, columns: Sequence[str], most: int) -> OneHotPart:
        """Learn categories and components; ``most`` bounds the categories of a column."""
        keys, places = [], []
        for name in columns:
            counts = statistics.categories(name)
            kept = [key for _, key in sorted(zip(-counts.rows, counts.keys, strict=True))[:most]]
            keys.append(kept)
            places.append(_places(*factorise(statistics.sampled(name)), kept))
        width = len(columns)
        part = cls(list(columns), keys, [], np.zeros(width), np.ones(width))
        if not columns:
            return part
        rows = np.stack(places, axis=1)
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

    def _project(self, rows: np.ndarray) -> np.ndarray:
        return np.sum([component[row] for component, row in zip(self.components, rows.T, strict=True)], axis=0)

    def names(self) -> list[str]:
        return [f"onehot_pca_{index}" for index in range(len(self.columns))]

    def encode(self, frame: Rows) -> np.ndarray:
        pairs = [(factorise(frame[name]), kept) for name, kept in zip(self.columns, self.keys, strict=True)]
        rows = np.stack([_places(positions, keys, kept) for (positions, keys), kept in pairs], axis=1)
        return unit_scale(self._project(rows), self.low, self.high)

    def state(self) -> PartState:
        arrays = {f"component_{i}": component for i, component in enumerate(self.components)}
        return PartState({"columns": self.columns, "keys": self.keys}, {**arrays, "low": self.low, "high": self.high})

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        columns = texts(values["columns"])
        width = len(columns)
        keys = text_lists(values["keys"], width)
        components = [array(arrays, f"component_{i}", len(known) + 1, width) for i, known in enumerate(keys)]
        return cls(columns, keys, components, array(arrays, "low", width), array(arrays, "high", width))


class OneHotPcaEncoder(TableEncoder):
    """One-hot encoding of all categorical columns, reduced by PCA to as many columns, with scaled numeric ones.

    Parameters
    ----------
    numeric : {"minmax", "quantile"}, default="minmax"
        Scaling of numeric columns.
    max_categories : int, default=1000
        Most categories of a column; the rest share one.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong.
    random_state : int, default=0
        Determines the rows that quantiles are taken from.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [20, 60, 40], "job": ["nurse", "cook", "nurse"]})
    >>> OneHotPcaEncoder().fit_transform(rows).round(3)
    array([[0. , 1. ],
           [1. , 0. ],
           [0.5, 1. ]], dtype=float32)
    """

    def __init__(
        self,
        numeric: str = "minmax",
        *,
        max_categories: int = 1000,
        roles: Mapping[str, Role | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.numeric = numeric
        self.max_categories = max_categories
        self.roles = roles
        self.random_state = random_state

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_at_least(1, max_categories=self.max_categories)
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        categorical = [name for name in columns if name not in numeric]
        return [
            NumericPart.fit(statistics, numeric, self.numeric),
            OneHotPart.fit(statistics, categorical, self.max_categories),
        ]


def _places(positions: np.ndarray, keys: list[str], kept: list[str]) -> np.ndarray:
    place = {key: index for index, key in enumerate(kept)}
    return np.array([*(place.get(key, len(kept)) for key in keys), len(kept)], dtype=np.int64)[positions]
