"""Condensed and drawn rows that repeat a source row, counted in the columns that people see.

A condensed row in the original columns repeats a record when it equals one of the rows that were condensed in every
column that it shows, the label among them. It may do so because it stands for that row alone, because all rows that it
stands for are equal, because it was picked (a medoid), or because its means and majorities happen to equal some
record. A row drawn from the condensed rows repeats a record in the same sense. Numbers are taken
as equal when they differ by rounding only.

Source rows come in blocks. In each, one column at a time is compared, and only those rows go on to the next one that
still equal some condensed row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import Notice
from c2tc_pipeline.tables.kinds import Kind, to_numbers, to_text
from c2tc_pipeline.tables.roles import ColumnRole, Role

# Means of very many equal numbers may be off by some roundings of a float64.
_ROUNDING = 1e-10
_NUMBERS = (Kind.BOOLEAN, Kind.INTEGER, Kind.REAL, Kind.MOMENT, Kind.DURATION)


@dataclass(frozen=True)
class RepeatedRows:
    """Counts of condensed rows that repeat a source row, by reason; a row is counted under its first reason.

    ``drawn`` counts those of ``drawn_rows`` rows drawn from the condensed rows that repeat a source row.
    """

    singletons: int = 0
    equal_rows: int = 0
    medoids: int = 0
    coincidences: int = 0
    encoded: int = 0
    drawn: int = 0
    drawn_rows: int = 0

    @property
    def total(self) -> int:
        """Rows that repeat a source row in every column shown."""
        return self.singletons + self.equal_rows + self.medoids + self.coincidences

    def to_dict(self) -> dict[str, int]:
        """Return the counts as plain JSON values."""
        return {"total": self.total, **asdict(self)}

    def notices(self, rows: int) -> list[Notice]:
        """Return a notice about repeated rows that are no singletons, which have a notice of their own."""
        if self.medoids:
            text = f"All {rows} condensed rows are source rows, as representative='medoid' has it; choose 'centroid' "
            return [Notice("repeated_rows", text + "if records must not show.")]
        others = self.equal_rows + self.coincidences
        if not others:
            return []
        kinds = [f"{self.equal_rows} for equal rows"] * (self.equal_rows > 0)
        kinds += [f"{self.coincidences} by coincidence"] * (self.coincidences > 0)
        verb, pronoun, stand = ("equals", "it", "stands") if others == 1 else ("equal", "they", "stand")
        text = (
            f"{others} of {rows} condensed rows {verb} a source row in every column although {pronoun} {stand} for "
            f"several: {', '.join(kinds)}; leave columns out or join categories if records must not show."
        )
        return [Notice("repeated_rows", text)]


class RowMatcher:
    """Looks for shown rows among source rows of the same class, block by block.

    ``group`` numbers the shown rows, equal ones alike, and ``hit`` says which groups some source row equals.
    """

    def __init__(
        self, shown: pd.DataFrame, classes: np.ndarray, roles: Mapping[str, ColumnRole], kinds: Mapping[str, Kind]
    ) -> None:
        # Shown rows that are alike in the columns so far form a group; so do the source rows that equal them.
        group = classes
        self._columns: list[tuple[str, _Numbers | _Texts, np.ndarray]] = []
        is_number = {name: roles[name].role is Role.NUMERIC or kinds[name] in _NUMBERS for name in shown.columns}
        # Numbers first, which differ most between rows, beginning with the columns of most values.
        for name in sorted(is_number, key=lambda name: (not is_number[name], -roles[name].distinct)):
            values = (_Numbers if is_number[name] else _Texts)(shown[name])
            pairs, group = np.unique(group * values.width + values.codes(shown[name]), return_inverse=True)
            self._columns.append((name, values, pairs))
        self.group = group
        self.hit = np.zeros(len(shown), dtype=bool)

    def match(self, rows: pd.DataFrame, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the source rows that equal a shown row, and the group of each."""
        left, group = np.arange(len(classes)), classes
        for name, values, pairs in self._columns:
            if not len(left):
                break
            codes = values.codes(rows[name].iloc[left])
            wanted = group * values.width + codes
            place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            kept = (codes >= 0) & (pairs[place] == wanted)
            left, group = left[kept], place[kept]
        self.hit[group] = True
        return left, group

    @property
    def found(self) -> np.ndarray:
        """Whether each shown row equals a source row."""
        return self.hit[self.group]


class RepeatedSearch:
    """Counts the condensed and the drawn rows that repeat a source row, over blocks of source rows."""

    def __init__(
        self,
        original: pd.DataFrame,
        drawn: pd.DataFrame,
        label: str,
        roles: Mapping[str, ColumnRole],
        kinds: Mapping[str, Kind],
    ) -> None:
        codes, classes = pd.factorize(original[label])
        self._classes = codes.astype(np.int64)
        drawn_classes = pd.Index(classes).get_indexer(pd.Index(drawn[label])).astype(np.int64)
        self._condensed = RowMatcher(original.drop(columns=label), self._classes, roles, kinds)
        self._drawn = RowMatcher(drawn[original.columns].drop(columns=label), drawn_classes, roles, kinds)
        self._equal_members = np.zeros(len(original), dtype=np.int64)
        self._members = np.zeros(len(original), dtype=np.int64)

    def add(self, rows: pd.DataFrame, members: np.ndarray) -> None:
        """Compare a block of source rows, given the condensed row of each."""
        classes = self._classes[members]
        self._drawn.match(rows, classes)
        left, group = self._condensed.match(rows, classes)
        own = members[left]
        equal = own[self._condensed.group[own] == group]
        self._equal_members += np.bincount(equal, minlength=len(self._members))
        self._members += np.bincount(members, minlength=len(self._members))

    def found(self, *, encoded: int, medoids: bool = False) -> RepeatedRows:
        """Return the counts after all rows were compared; ``encoded`` is the count in encoded numbers."""
        alone = self._members == 1
        alike = (self._equal_members == self._members) & ~alone
        others = int((self._condensed.found & ~alone & ~alike).sum())
        return RepeatedRows(
            singletons=int(alone.sum()),
            equal_rows=int(alike.sum()),
            medoids=others if medoids else 0,
            coincidences=0 if medoids else others,
            encoded=encoded,
            drawn=int(self._drawn.found.sum()),
            drawn_rows=len(self._drawn.group),
        )


class _Numbers:
    """Numbers of a column as small integers, the same for those that differ by rounding; -1 for others."""

    def __init__(self, shown: pd.Series[Any]) -> None:
        known = _floats(shown)
        self._distinct = np.unique(known[~np.isnan(known)])
        steps = ~_close(self._distinct[1:], self._distinct[:-1])
        self._numbers = np.concatenate([[0], np.cumsum(steps)])[: len(self._distinct)].astype(np.int64)
        self.width = len(self._distinct) + 1

    def codes(self, series: pd.Series[Any]) -> np.ndarray:
        values = _floats(series)
        codes = np.full(len(values), -1, dtype=np.int64)
        if len(self._distinct):
            above = np.minimum(np.searchsorted(self._distinct, values), len(self._distinct) - 1)
            for place in (np.maximum(above - 1, 0), above):
                codes = np.where(_close(self._distinct[place], values), self._numbers[place], codes)
        # Missing values equal each other.
        return np.where(np.isnan(values), self.width - 1, codes)


class _Texts:
    """Texts of a column as small integers; -1 for those that are not shown."""

    def __init__(self, shown: pd.Series[Any]) -> None:
        self._known = pd.Index(pd.factorize(to_text(shown))[1])
        self.width = len(self._known) + 1

    def codes(self, series: pd.Series[Any]) -> np.ndarray:
        text = to_text(series)
        found = np.asarray(self._known.get_indexer(pd.Index(text)), dtype=np.int64)
        return np.where(text.isna().to_numpy(), self.width - 1, found)


def _floats(series: pd.Series[Any]) -> np.ndarray:
    return np.asarray(to_numbers(series).values.to_numpy(dtype=np.float64, na_value=np.nan))


def _close(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(a - b) <= _ROUNDING * np.maximum(np.abs(a), np.abs(b)))
