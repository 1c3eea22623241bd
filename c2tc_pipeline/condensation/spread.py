"""Spread of condensed rows: deviations and correlations of encoded columns, and shares of categories.

A condensed row stands for a small distribution of source rows. Its deviations are those of the encoded members, the
correlation matrix of a class describes how columns vary together inside its clusters, and shares are those of the
categories of the members in the original columns. :mod:`c2tc_pipeline.condensation.expand` draws rows from all this.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from c2tc_pipeline.clustering.rows import RowSource
from c2tc_pipeline.clustering.sums import cluster_sums
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.condensation.members import Votes
from c2tc_pipeline.encoding.numeric import MissingMark
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.row_sample import sampled_numbers

SPREAD_NAMES = ("spread.parquet", "correlation.parquet", "gaps.parquet", "category_shares.parquet")

# Rows read at once; any other number gives the same sums but for rounding.
_PART_ROWS = 65_536
# Rows of a class that its correlations are estimated from.
_CORRELATED_ROWS = 20_000
# Rows that the gaps of columns are read from, and the smallest gap, as a share of a column's range; with few rows all
# neighbours are far apart.
_GAP_ROWS = 50_000
_MIN_GAP = 1.5e-3
_ROWS_PER_GAP = 10
# Share of the members whose categories are kept for each condensed row.
_KEPT_MASS = 0.99


@dataclass(frozen=True)
class CategoryShares:
    """Categories of one original column and their shares, for each condensed row and, last, for the whole table.

    Entries of group i are ``starts[i]:starts[i + 1]``, the most frequent category first; a missing value is a category.
    What the shares of a group lack to 1 are other categories.
    """

    starts: np.ndarray
    values: pd.Series[Any]
    shares: np.ndarray

    @classmethod
    def of_votes(cls, votes: Votes, members: np.ndarray, least: int) -> CategoryShares:
        """Keep the categories that hold 99 % of each condensed row's members, each of at least ``least`` members."""
        size = len(members)
        overall = np.bincount(votes.codes, votes.counts, minlength=len(votes.values)).astype(np.int64)
        present = np.flatnonzero(overall)
        group = np.concatenate([votes.rows, np.full(len(present), size)])
        code = np.concatenate([votes.codes, present])
        count = np.concatenate([votes.counts, overall[present]])
        total = _totals(members)
        order = np.lexsort((code, -count, group))
        group, code, count = group[order], code[order], count[order]
        before = np.cumsum(count) - count
        first = np.searchsorted(group, np.arange(size + 1))
        before -= before[np.minimum(first, len(before) - 1)][group]
        kept = (before < _KEPT_MASS * total[group]) & (count >= least)
        group, code, count = group[kept], code[kept], count[kept]
        starts = np.searchsorted(group, np.arange(size + 2))
        return cls(starts, votes.values.take(code).reset_index(drop=True), (count / total[group]).astype(np.float32))

    def of_groups(self, values: np.ndarray) -> np.ndarray:
        """Return the value of its group for each entry."""
        return np.repeat(values, np.diff(self.starts))

    def draw(self, rows: np.ndarray, random: np.random.Generator) -> pd.Series[Any]:
        """Return one category for each condensed row in ``rows``.

        Other categories come from the shares of the whole table, in proportion; where it has none, they are missing.
        """
        places = self._places(rows, random.random(len(rows)))
        others = np.flatnonzero(places < 0)
        table = np.full(len(others), len(self.starts) - 2)
        whole = float(self.shares[self.starts[-2] :].sum(dtype=np.float64))
        # A little below the sum, which may be rounded up.
        places[others] = self._places(table, random.random(len(others)) * whole * (1 - 1e-9))
        if not len(self.values):
            return self.values.reindex(range(len(rows)))
        found = self.values.take(np.maximum(places, 0)).reset_index(drop=True)
        return found.mask(places < 0) if (places < 0).any() else found

    def _places(self, groups: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the entry of each group whose range of cumulated shares holds a position; -1 beyond the last."""
        sizes = np.diff(self.starts)
        of_entry = np.repeat(np.arange(len(sizes)), sizes)
        cumulated = np.concatenate([[0.0], np.cumsum(self.shares, dtype=np.float64)])
        # Every group begins at its own integer, so that one search finds the entries of all groups.
        ends = cumulated[1:] - cumulated[self.starts[of_entry]] + 2 * of_entry
        found = np.searchsorted(ends, positions + 2 * groups, side="right")
        inside = found < self.starts[groups + 1]
        return np.where(inside, found, -1)

    def spliced(self, before: CategoryShares, old: np.ndarray, touched: np.ndarray) -> CategoryShares:
        """Return the entries of ``before`` for untouched groups, whose number there is ``old``, else those of self."""
        picked = [
            (before, old[group]) if group < len(old) and not touched[group] else (self, group)
            for group in range(len(self.starts) - 1)
        ]
        ranges = [(shares, slice(shares.starts[group], shares.starts[group + 1])) for shares, group in picked]
        return CategoryShares(
            np.concatenate([[0], np.cumsum([here.stop - here.start for _, here in ranges])]),
            pd.concat([shares.values.iloc[here] for shares, here in ranges], ignore_index=True),
            np.concatenate([shares.shares[here] for shares, here in ranges]),
        )


@dataclass(frozen=True)
class Spread:
    """Variation of the members of condensed rows: deviations, correlations, gaps and category shares.

    Parameters
    ----------
    deviation : ndarray of float32 of shape (rows, columns)
        Standard deviation of the members, for each encoded column.
    correlation : ndarray of float32 of shape (classes or 1 or 0, columns, columns)
        Correlations of the members' distances from their condensed rows, in units of the deviations: one matrix for
        each class, or one for all classes, or none where even one would be larger than the condensed rows.
    gaps : list of ndarray of shape (gaps, 2)
        Ranges of each column that no row lies in, between values that lie far apart, such as those of categories.
    shares : dict of str to CategoryShares
        Shares of the categories in the original columns that have any.
    means : ndarray of shape (rows, columns), optional
        The means of the members, where these are not the condensed rows themselves.
    """

    deviation: np.ndarray
    correlation: np.ndarray
    gaps: list[np.ndarray]
    shares: dict[str, CategoryShares] = field(default_factory=dict)
    means: np.ndarray | None = None

    def correlation_of(self, code: int) -> np.ndarray:
        """Return the correlations inside the clusters of a class."""
        if not len(self.correlation):
            return np.eye(self.deviation.shape[1])
        return self.correlation[code if len(self.correlation) > 1 else 0].astype(np.float64)

    def write_files(self, directory: Path, names: list[str], weight: np.ndarray) -> None:
        """Write the spread of columns with these names, of rows with these weights, into an existing directory."""
        columns = {("deviation", name): values for name, values in zip(names, self.deviation.T, strict=True)}
        if self.means is not None:
            columns |= {("mean", name): values for name, values in zip(names, self.means.T, strict=True)}
        described = pd.DataFrame({json.dumps(key): values for key, values in columns.items()})
        write_parquet(described, directory / SPREAD_NAMES[0])
        # Only the lower triangles: zeros take no space.
        flat = np.tril(self.correlation).reshape(-1, len(names))
        write_parquet(pd.DataFrame(flat, columns=names), directory / SPREAD_NAMES[1])
        ranges = np.vstack([np.empty((0, 2), dtype=np.float32), *self.gaps]).astype(np.float32)
        columns_of_gaps = np.repeat(np.arange(len(names), dtype=np.int32), [len(own) for own in self.gaps])
        described = pd.DataFrame({"column": columns_of_gaps, "low": ranges[:, 0], "high": ranges[:, 1]})
        write_parquet(described, directory / SPREAD_NAMES[2])
        lists: dict[str, pa.Array] = {}
        for name, found in self.shares.items():
            offsets = pa.array(found.starts, pa.int32())
            lists[json.dumps([name, "category"])] = pa.ListArray.from_arrays(offsets, _in_one_piece(found.values))
            # Counts, which are small integers, take less space than shares.
            counts = np.round(found.shares * found.of_groups(_totals(weight))).astype(np.int64)
            lists[json.dumps([name, "members"])] = pa.ListArray.from_arrays(offsets, pa.array(counts))
        pq.write_table(pa.table(lists), directory / SPREAD_NAMES[3], compression="zstd", write_page_checksum=True)

    @classmethod
    def read_files(cls, directory: Path, weight: np.ndarray) -> Self:
        """Read what :meth:`write_files` wrote, given the weights of the rows."""
        described = read_parquet(directory / SPREAD_NAMES[0])
        is_mean = [json.loads(name)[0] == "mean" for name in described.columns]
        moments = described.to_numpy(dtype=np.float32)
        deviation = moments[:, ~np.array(is_mean)]
        means = moments[:, is_mean] if any(is_mean) else None
        flat = read_parquet(directory / SPREAD_NAMES[1]).to_numpy(dtype=np.float32)
        lower = flat.reshape(-1, deviation.shape[1], deviation.shape[1])
        correlation = lower + np.tril(lower, -1).transpose(0, 2, 1)
        found = read_parquet(directory / SPREAD_NAMES[2])
        ends = np.searchsorted(found["column"], np.arange(deviation.shape[1] + 1))
        gaps = [found[["low", "high"]].to_numpy()[a:b] for a, b in itertools.pairwise(ends.tolist())]
        table = pq.read_table(directory / SPREAD_NAMES[3], page_checksum_verification=True)
        shares = {}
        for key in table.column_names[::2]:
            name = json.loads(key)[0]
            values, own = (_in_one_piece(table[each]) for each in (key, json.dumps([name, "members"])))
            starts = values.offsets.to_numpy().astype(np.int64)
            members = np.repeat(_totals(weight), np.diff(starts))
            shares[name] = CategoryShares(
                starts, values.values.to_pandas(), (own.values.to_numpy() / members).astype(np.float32)
            )
        return cls(deviation, correlation, gaps, shares, means)


def _in_one_piece(values: pd.Series[Any] | pa.ChunkedArray) -> pa.Array:
    """Return a column as one Arrow array."""
    found = pa.Array.from_pandas(values) if isinstance(values, pd.Series) else values
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    return found


def measure_spread(
    rows: RowSource, edges: np.ndarray, labels: np.ndarray, centers: np.ndarray, min_rows: int = 1
) -> Spread:
    """Return the spread of encoded rows, sorted by class, around the means of their clusters.

    The correlations of a class are estimated from a sample of its rows, and drawn towards those of all classes where
    the class has few rows more than clusters and columns.
    """
    deviation = _deviations(rows, labels, centers)
    correlation = _correlations(rows, edges, labels, centers, deviation)
    return Spread(deviation, correlation, _column_gaps(rows, min_rows))


def _deviations(rows: RowSource, labels: np.ndarray, centers: np.ndarray) -> np.ndarray:
    size, columns = centers.shape
    squares, counts = np.zeros((size, columns)), np.zeros(size)
    start = 0
    for part in rows.parts(_PART_ROWS):
        own = np.asarray(labels[start : start + len(part)])
        start += len(part)
        gaps = part.read().astype(np.float64)
        gaps -= centers[own]
        np.square(gaps, out=gaps)
        sums = cluster_sums(gaps, own, size, power=False)
        squares += sums.sums
        counts += sums.counts
    deviation = np.sqrt(squares / np.maximum(counts, 1)[:, None])
    # Distances of a few units of the last place are rounding.
    deviation[deviation <= 4 * np.finfo(np.float32).eps * np.abs(centers).max(initial=0.0)] = 0
    return deviation.astype(np.float32)


def _correlations(
    rows: RowSource, edges: np.ndarray, labels: np.ndarray, centers: np.ndarray, deviation: np.ndarray
) -> np.ndarray:
    """Return a matrix for each class, or one for all, or none, so that they are no larger than the condensed rows."""
    (size, columns), classes = centers.shape, len(edges) - 1
    matrices = classes if classes * columns <= size else int(columns <= size)
    if not matrices:
        return np.empty((0, columns, columns), dtype=np.float32)
    products, freedom = np.zeros((classes, columns, columns)), np.zeros(classes)
    with one_thread():
        for code, (first, last) in enumerate(itertools.pairwise(edges.tolist())):
            places = first + sampled_numbers(last - first, seed=0, most=_CORRELATED_ROWS)
            own = np.asarray(labels[places])
            gaps = (rows.take(places) - centers[own]).astype(np.float64)
            scale = deviation[own].astype(np.float64)
            gaps = np.divide(gaps, scale, out=np.zeros_like(gaps), where=scale > 0)
            products[code] = gaps.T @ gaps
            freedom[code] = len(places) - len(np.unique(own))
    pooled = _normalised(products.sum(axis=0))
    if matrices == 1:
        return _rounded(pooled[None])
    trust = (freedom / (freedom + columns))[:, None, None]
    own_class = np.stack([_normalised(found) for found in products])
    return _rounded(trust * own_class + (1 - trust) * pooled)


def _rounded(correlation: np.ndarray) -> np.ndarray:
    """Round to three decimals, which is finer than their sampling error and takes half the space."""
    return np.round(correlation, 3).astype(np.float32)


def _totals(weight: np.ndarray) -> np.ndarray:
    """Return the members of each condensed row and, last, of all of them."""
    return np.append(weight, np.sum(weight))


def _column_gaps(rows: RowSource, min_rows: int) -> list[np.ndarray]:
    """Return the wide gaps between neighbouring values of each column, with ``min_rows`` sampled rows at both ends."""
    sample = rows.take(sampled_numbers(len(rows), seed=0, most=_GAP_ROWS))
    least = max(_MIN_GAP, _ROWS_PER_GAP / len(sample))
    gaps = []
    for column in sample.T:
        values, counts = np.unique(column, return_counts=True)
        shared = np.minimum(counts[:-1], counts[1:]) >= min_rows
        wide = np.flatnonzero((np.diff(values) > least * (values[-1] - values[0])) & shared)
        gaps.append(np.stack([values[wide], values[wide + 1]], axis=1))
    return gaps


def _normalised(products: np.ndarray) -> np.ndarray:
    """Return correlations, given sums of products; those of a constant column are 0."""
    scale = np.sqrt(np.diag(products))
    scale = np.where(scale > 0, scale, np.inf)
    found = products / scale[:, None] / scale
    np.fill_diagonal(found, 1.0)
    return found


def without_few_numbers(
    centers: np.ndarray, spread: Spread, weights: np.ndarray, marks: Sequence[MissingMark], min_rows: int
) -> tuple[np.ndarray, Spread]:
    """Return condensed rows and spread in which numbers that fewer than ``min_rows`` members have are missing.

    The mean of a column in which most members lack a number would give away those of the others.
    """
    centers, deviation = centers.copy(), spread.deviation.copy()
    for mark in marks:
        present = np.round((1 - centers[:, mark.mark].astype(np.float64)) * weights)
        few = (present > 0) & (present < min_rows)
        centers[few, mark.column], centers[few, mark.mark] = mark.height, 1
        deviation[few, mark.column] = deviation[few, mark.mark] = 0
    return centers, replace(spread, deviation=deviation)


def spliced_spread(before: Spread, now: Spread, old: np.ndarray, touched: np.ndarray) -> Spread:
    """Return the new spread, with the previous values of untouched condensed rows; ``old`` are their numbers there."""
    shares = {name: found.spliced(before.shares[name], old, touched) for name, found in now.shares.items()}
    own = touched[:, None]
    means = None if now.means is None or before.means is None else np.where(own, now.means, before.means[old])
    return Spread(np.where(own, now.deviation, before.deviation[old]), now.correlation, now.gaps, shares, means)


def weight_column(taken: list[str], name: str = "weight") -> str:
    """Return a name for a column of weights that no other column has."""
    while name in taken:
        name = f"c2tc_{name}"
    return name
