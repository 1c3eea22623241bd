"""Draw training rows from condensed rows and their spread, encoded or in the original columns.

Each condensed row gives rows around itself. Encoded columns are normal with the row's value and deviation or, near the
limits of a column, beta-distributed with the same moments; they are tied together by the correlations of the row's
class, and moved out of ranges in which the column has no values. Columns of two values get one of these. In the
original columns, numbers are decoded from the encoded draws and categories are drawn from the condensed row's shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import betaincinv, ndtr, ndtri

from c2tc_pipeline.allocation.shares import proportional_counts
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.common.seeds import RandomStateLike, generator_of
from c2tc_pipeline.condensation.members import are_days, in_own_units, whole_days
from c2tc_pipeline.condensation.spread import Spread, weight_column
from c2tc_pipeline.encoding.numeric import MissingMark
from c2tc_pipeline.tables.frames import decimal_places, in_type
from c2tc_pipeline.tables.kinds import Kind, to_numbers

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.table import CondensedTable

SPACES = ("original", "encoded")
CLASS_MIXES = ("source", "condensed")

# A normal distribution is kept if this many deviations around its mean lie inside the range of the column.
_DEVIATIONS_INSIDE = 2.0
# Correlations are shrunk a little towards zero, so that a matrix of few rows has a Cholesky factor.
_SHRINKAGE = 0.02
# Deviations this close to those of a column of two values, 0 and 1, count as equal to them.
_TWO_VALUED = 1e-4


def default_rows(weights: np.ndarray) -> int:
    """Return how many rows are drawn unless a number is given, from the source rows behind each condensed row.

    20,000, or ten for each condensed row if that is more, but not more than there are source rows.
    """
    return min(max(20_000, 10 * len(weights)), int(weights.sum()))


def check_expansion(rows: Any, space: str, class_mix: str) -> None:
    """Refuse a number of rows, a space or a class mix that can't be used."""
    if not isinstance(rows, Integral) or isinstance(rows, bool) or rows < 1:
        raise InputError(f"rows is {rows!r}, but must be an integer from 1 up.")
    for name, value, known in (("space", space, SPACES), ("class_mix", class_mix, CLASS_MIXES)):
        if value not in known:
            raise InputError(f"The {name} {value!r} is unknown; choose one of: {', '.join(known)}.")


def draws_by_row(weights: np.ndarray, codes: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each condensed row is drawn from, and how much each of its draws counts.

    Draws are proportional to the weights, with at least one from each condensed row. Where there are fewer, every class
    gets its share of them, at least one, and the heaviest rows of a class are drawn from once; with fewer draws than
    classes the heaviest classes get one each. How much a draw counts makes up for rounding and has the mean 1.
    """
    size, shares = len(weights), weights / weights.sum()
    counts = np.zeros(size, dtype=np.int64)
    if rows >= size:
        counts = proportional_counts(shares, rows, np.full(size, rows))
    else:
        classes, numbers, room = np.unique(codes, return_inverse=True, return_counts=True)
        totals = np.bincount(numbers, weights)
        if rows >= len(classes):
            by_class = proportional_counts(totals, rows, room)
        else:
            by_class = np.zeros(len(classes), dtype=np.int64)
            by_class[np.argsort(-totals, kind="stable")[:rows]] = 1
        order = np.lexsort((-weights, numbers))
        place_in_class = np.arange(size) - np.repeat(np.cumsum(room) - room, room)
        counts[order] = place_in_class < by_class[numbers[order]]
    kept = shares[counts > 0].sum()
    return counts, np.divide(shares * rows / kept, counts, out=np.zeros(size), where=counts > 0)


def rows_to_draw(
    weights: np.ndarray, codes: np.ndarray, rows: int, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the condensed row that each row is drawn from, in random order, and how much each drawn row counts."""
    counts, weight = draws_by_row(np.asarray(weights, dtype=np.float64), codes, int(rows))
    drawn = random.permutation(np.repeat(np.arange(len(codes)), counts))
    return drawn, weight[drawn]


def draw_encoded(
    centers: np.ndarray,
    spread: Spread,
    codes: np.ndarray,
    drawn: np.ndarray,
    random: np.random.Generator,
    *,
    limits: tuple[np.ndarray, np.ndarray] | None = None,
    marks: Sequence[MissingMark] = (),
) -> np.ndarray:
    """Return one row around each condensed row in ``drawn``, within the limits of the columns, 0 and 1 by default."""
    low, high = (np.zeros(centers.shape[1]), np.ones(centers.shape[1])) if limits is None else limits
    span = np.where(high > low, high - low, 1.0)
    means = np.clip((centers.astype(np.float64) - low) / span, 0, 1)
    deviations = spread.deviation.astype(np.float64) / span
    two_valued = (np.abs(deviations**2 - means * (1 - means)) <= _TWO_VALUED).all(axis=0)
    for mark in marks:
        _leave_out_missing(means, deviations, mark)
    normal = random.standard_normal((len(drawn), centers.shape[1]))
    with one_thread():
        for code in np.unique(codes[drawn]):
            own = codes[drawn] == code
            matrix = (1 - _SHRINKAGE) * spread.correlation_of(int(code)) + _SHRINKAGE * np.eye(centers.shape[1])
            normal[own] = normal[own] @ np.linalg.cholesky(matrix).T
    found = means[drawn] + deviations[drawn] * normal
    found[:, two_valued] = normal[:, two_valued] > -ndtri(means[:, two_valued])[drawn]
    first, second, is_beta = _beta_parameters(means, deviations)
    places = (is_beta & ~two_valued)[drawn]
    found[places] = betaincinv(first[drawn][places], second[drawn][places], ndtr(normal[places]))
    found = low + np.clip(found, 0, 1) * span
    for column, gaps in zip(found.T, spread.gaps, strict=True):
        _leave_gaps(column, gaps)
    np.clip(found, low, high, out=found)
    exact = (deviations == 0)[drawn]
    found[exact] = (low + means * span)[drawn][exact] if marks else centers[drawn][exact]
    for mark in marks:
        found[found[:, mark.mark] > 0.5, mark.column] = mark.height
    return found.astype(centers.dtype, copy=False)


def _beta_parameters(means: np.ndarray, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the parameters of beta distributions with these moments, and where they replace normal ones."""
    most = means * (1 - means)
    replaced = (deviations > 0) & (most > 0) & (np.minimum(means, 1 - means) < _DEVIATIONS_INSIDE * deviations)
    # Just below its greatest variance a beta distribution still has a density.
    variances = np.clip(deviations**2, 1e-12, 0.99 * most)
    total = np.divide(most, variances, out=np.full_like(most, 3.0), where=replaced) - 1
    return means * total, (1 - means) * total, replaced


def _leave_gaps(column: np.ndarray, gaps: np.ndarray) -> None:
    """Move values inside a gap to its nearer end, in place."""
    if not len(gaps):
        return
    gap = gaps[np.maximum(np.searchsorted(gaps[:, 0], column, side="right") - 1, 0)].astype(column.dtype)
    inside = (column > gap[:, 0]) & (column < gap[:, 1])
    column[inside] = np.where(column - gap[:, 0] < gap[:, 1] - column, gap[:, 0], gap[:, 1])[inside]


def _leave_out_missing(means: np.ndarray, deviations: np.ndarray, mark: MissingMark) -> None:
    """Replace the moments of a column by those of the members with a value; missing ones share one encoded value."""
    share, present = means[:, mark.mark], 1 - means[:, mark.mark]
    some = (share > 0) & (present > 0)
    mean, square = means[some, mark.column], deviations[some, mark.column] ** 2 + means[some, mark.column] ** 2
    own = np.clip((mean - share[some] * mark.height) / present[some], 0, 1)
    means[some, mark.column] = own
    variance = (square - share[some] * mark.height**2) / present[some] - own**2
    deviations[some, mark.column] = np.sqrt(np.maximum(variance, 0))


def expand_table(
    table: CondensedTable,
    rows: int | None,
    *,
    space: str = "original",
    class_mix: str = "condensed",
    random_state: RandomStateLike = 0,
) -> tuple[pd.DataFrame, pd.Series[Any], pd.Series[Any]]:
    """Draw rows from a condensed table, as pandas; see :meth:`~c2tc_pipeline.CondensedTable.expand`."""
    rows = default_rows(table.weight.to_numpy()) if rows is None else rows
    check_expansion(rows, space, class_mix)
    random = generator_of(random_state)
    codes = np.repeat(np.arange(len(table.classes)), table.allocation.counts)
    weights = table.weight if class_mix == "source" else table.training_weight
    drawn, weight = rows_to_draw(weights.to_numpy(), codes, rows, random)
    centers = table.X.to_numpy() if table.spread.means is None else table.spread.means
    encoded = draw_encoded(centers, table.spread, codes, drawn, random, marks=table.encoder.missing_marks())
    y = table.y.iloc[drawn].reset_index(drop=True)
    drawn_weight = pd.Series(weight, name="weight")
    if space == "encoded":
        return pd.DataFrame(encoded, columns=table.X.columns), y, drawn_weight
    return _in_original_columns(table, drawn, encoded, random), y, drawn_weight


def expanded_frame(
    table: CondensedTable,
    rows: int | None = None,
    *,
    space: str = "original",
    class_mix: str = "condensed",
    random_state: RandomStateLike = 0,
) -> pd.DataFrame:
    """Return drawn rows with their label and weight as one table, for a file."""
    X, y, weight = expand_table(table, rows, space=space, class_mix=class_mix, random_state=random_state)
    return pd.concat([X, y, weight.rename(weight_column([*X.columns, str(y.name)]))], axis=1)


def _in_original_columns(
    table: CondensedTable, drawn: np.ndarray, encoded: np.ndarray, random: np.random.Generator
) -> pd.DataFrame:
    """Decode the numbers of drawn rows, and draw their categories; a column without either repeats condensed rows."""
    numbers = table.encoder.decode_numbers(encoded)
    kinds = dict(zip(table.roles["column"], table.roles["kind"], strict=True))
    place = {name: index for index, name in enumerate(table.X.columns)}
    columns = {}
    for name in table.original_rows.columns.drop(table.label_name):
        own = table.original_rows[name]
        if name in table.spread.shares:
            columns[name] = in_type(table.spread.shares[name].draw(drawn, random), own.dtype)
        elif name in numbers:
            found = numbers[name]
            if Kind(kinds[name]) is Kind.INTEGER:
                found = np.round(found)
            if Kind(kinds[name]) is Kind.MOMENT and are_days(to_numbers(own).values.to_numpy()):
                found = whole_days(found)
            drawn_values = in_own_units(found, own, Kind(kinds[name]), decimal_places(own))
            # Equal numbers stay what they are: decoding would round them.
            repeated = own.iloc[drawn].reset_index(drop=True)
            exact = (table.spread.deviation[:, place[name]] == 0)[drawn] & ~np.isnan(found) & repeated.notna()
            columns[name] = repeated.where(exact, drawn_values) if exact.any() else drawn_values
        else:
            columns[name] = own.iloc[drawn].reset_index(drop=True)
    return pd.DataFrame(columns)
