"""Base of table encoders: roles, blocks of rows, names of outputs, and storage without pickle."""

from __future__ import annotations

import copy
import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from c2tc_pipeline.common.defaults import Role, checked_overrides
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.processes import one_blas_thread, side_by_side
from c2tc_pipeline.common.seeds import RandomStateLike, seed_of
from c2tc_pipeline.encoding.numeric import MissingMark, NumericPart
from c2tc_pipeline.encoding.part import Part, as_role, check_values
from c2tc_pipeline.tables.frames import as_pandas, is_table
from c2tc_pipeline.tables.readings import Readings, read_frame
from c2tc_pipeline.tables.statistics import Block, TableStatistics, gather_statistics, row_named

# Rows encoded at once: the temporary columns of a block stay within a processor's cache.
_BLOCK_ROWS = 32_768


Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Base of encoders from tables with mixed columns to numbers in [0, 1].

    A subclass stores its parameters in ``__init__`` and builds the parts in :meth:`_fit_parts`.
    """

    roles: Mapping[str, Role | str] | None
    random_state: RandomStateLike
    classes_: Any
    readings_: Readings

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> TableEncoder:
        """Learn the encoding from training rows.

        Parameters
        ----------
        X : DataFrame, Table or array of shape (n, d)
            Rows, in pandas, polars or pyarrow. Columns of an array are called ``x0``, ``x1``, ...
        y : array of shape (n,), optional
            Labels; needed when a column is encoded by its target.
        progress : callable, optional
            Called with (steps done, steps in all) by encoders that take long.

        Returns
        -------
        TableEncoder
            The encoder itself.
        """
        self._fit(X, y, progress)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit, and encode the training rows: out of fold where their labels are used.

        ``fit(X, y).transform(X)`` differs: it encodes every row by labels that include its own.
        """
        X = as_pandas(X)[0] if is_table(X) else X
        return self.for_training(self._fit(X, y, **fit_params)).encode_rows(X)

    def _fit(self, X: Any, y: Any, progress: Progress | None = None) -> TableStatistics:
        """Fit the encoder to rows and return their statistics."""
        X = as_pandas(X)[0] if is_table(X) else X
        frame = _as_frame(X, fitting=True)
        labels = None if y is None else _as_labels(y, len(frame))
        classes, codes = (None, np.zeros(len(frame), dtype=np.int64)) if labels is None else _numbered(labels)
        columns = list(frame.columns)
        given = checked_overrides(columns, None, self.roles or {})
        frame, readings = read_frame(frame, roles=given)
        statistics = gather_statistics(
            [Block(frame, codes, np.arange(len(frame)))],
            columns,
            given,
            classes=1 if classes is None else len(classes),
            is_labelled=labels is not None,
            seed=seed_of(self.random_state),
        )
        if not statistics.kept:
            raise InputError(
                f"No column can be encoded: all {len(columns)} are constant, empty or identifiers "
                f"(n_samples={len(frame)}); give them roles to keep them."
            )
        statistics = replace(statistics, readings=readings)
        self.fit_statistics(statistics, classes, progress=progress)
        self._remember_columns(X, frame)
        self.roles_ = statistics.roles
        return statistics

    def for_training(self, statistics: TableStatistics, classes: np.ndarray | None = None) -> Self:
        """Return a copy whose :meth:`encode_rows` encodes the training rows, given their statistics.

        ``classes`` are the sorted class values of the statistics, if they are only some of those in ``classes_``.
        """
        known = np.arange(len(statistics.class_rows))
        if classes is not None and self.classes_ is not None:
            known = np.searchsorted(self.classes_, _as_labels(classes, len(classes)))
        training = copy.copy(self)
        training.parts_ = [part.for_training(statistics, known) for part in self.parts_]
        return training

    def fit_statistics(
        self, statistics: TableStatistics, classes: np.ndarray | None, *, progress: Progress | None = None
    ) -> TableEncoder:
        """Learn the encoding from the statistics of training rows; ``classes`` are the sorted class values."""
        columns = statistics.kept
        self.readings_ = statistics.readings
        self.roles_ = {name: statistics.roles[name] for name in columns}
        self.n_features_in_, self.columns_ = len(columns), columns
        self.feature_names_in_ = np.array(columns, dtype=object)
        self.classes_ = None if classes is None else np.unique(_as_labels(classes, len(classes)))
        # Products on several threads differ in the last bit.
        with one_blas_thread():
            self.parts_ = [part for part in self._fit_parts(statistics, columns, progress) if part.columns]
        return self

    @abstractmethod
    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        """Fit the parts to the statistics of the kept columns."""

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : DataFrame or array
            Rows with the columns seen in :meth:`fit`, in any order; further columns of a DataFrame are ignored.

        Returns
        -------
        ndarray of float32 of shape (n, outputs)
            Values in [0, 1].
        """
        return self.encode_rows(X)

    def encode_rows(self, X: Any, *, row_ids: np.ndarray | None = None) -> np.ndarray:
        """Encode rows without a second copy of table or result; refuse values that do not fit a column's role.

        ``row_ids`` are the positions of the rows in the source, if they are not all of its rows.
        """
        check_is_fitted(self, "parts_")
        names = [name for part in self.parts_ for name in part.columns]
        roles = {name: self.roles_[name].role for name in names}
        frame = self.readings_.read(self._checked_frame(X)[names])
        row_ids = np.arange(len(frame)) if row_ids is None else row_ids
        for name, role in roles.items():
            check_values(frame[name], role, row_ids)
        frame = frame.set_axis(row_ids)
        out = np.empty((len(frame), sum(len(part.names()) for part in self.parts_)), dtype=np.float32)

        def encode(here: slice) -> None:
            rows = frame.iloc[here]
            block = pd.DataFrame({name: as_role(rows[name], role) for name, role in roles.items()}, copy=False)
            column = 0
            for part in self.parts_:
                encoded = part.encode(block)
                out[here, column : column + encoded.shape[1]] = encoded
                column += encoded.shape[1]

        blocks = [slice(start, min(start + _BLOCK_ROWS, len(out))) for start in range(0, len(out), _BLOCK_ROWS)]
        # Products on several threads differ in the last bit.
        with one_blas_thread():
            for _ in side_by_side([partial(encode, here) for here in blocks]):
                pass
        return out

    def encode_training(self, X: Any, y: Any, *, row_ids: np.ndarray | None = None) -> np.ndarray:
        """Encode all the rows that the encoder was fitted to, given their labels: out of fold where it read these.

        ``row_ids`` are the positions of the rows in the source, if they are not all of its rows. These are the rows of
        which :func:`~c2tc_pipeline.condense` makes means; see :meth:`fit_transform`.
        """
        check_is_fitted(self, "parts_")
        frame = self.readings_.read(self._checked_frame(X))
        row_ids = np.arange(len(frame)) if row_ids is None else row_ids
        roles = {name: column for name, column in self.roles_.items() if column.role is not Role.DROP}
        classes, codes = 1, np.zeros(len(frame), dtype=np.int64)
        if self.classes_ is not None:
            labels, classes = _as_labels(y, len(frame)), len(self.classes_)
            unknown = np.flatnonzero(~np.isin(labels, self.classes_))
            if unknown.size:
                raise InputError(
                    f"Label {str(labels[unknown[0]])!r} in {row_named(int(row_ids[unknown[0]]))} was not seen when "
                    "the encoder was fitted; give the rows that it was fitted to."
                )
            codes = np.searchsorted(self.classes_, labels)
        statistics = gather_statistics(
            [Block(frame, codes, row_ids)],
            list(roles),
            {name: column.role for name, column in roles.items()},
            classes=classes,
            is_labelled=self.classes_ is not None,
        )
        return self.for_training(statistics).encode_rows(frame, row_ids=row_ids)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the output columns; one that an earlier column has gets a number at its end."""
        check_is_fitted(self, "parts_")
        names: dict[str, None] = {}
        for name in (name for part in self.parts_ for name in part.names()):
            spellings = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
            names[next(spelling for spelling in spellings if spelling not in names)] = None
        return np.array(list(names), dtype=object)

    def sources(self) -> dict[str, list[str]]:
        """Return the input columns behind each output column."""
        behind = [columns for part in self.parts_ for columns in part.sources()]
        return dict(zip(self.get_feature_names_out(), behind, strict=True))

    def missing_marks(self) -> list[MissingMark]:
        """Return the encoded columns that mark missing numbers, with those that they mark."""
        return [
            mark._replace(column=mark.column + first, mark=mark.mark + first)
            for first, part in self._numeric_parts()
            for mark in part.marks()
        ]

    def decode_numbers(self, encoded: np.ndarray) -> dict[str, np.ndarray]:
        """Return the numbers behind encoded rows by source column, NaN for missing; not those that can't be decoded."""
        has_jumps = self.get_params().get("numeric") == "quantile"
        return {
            name: values
            for first, part in self._numeric_parts()
            for name, values in part.decode(encoded[:, first:], has_jumps=has_jumps).items()
        }

    def _numeric_parts(self) -> Iterator[tuple[int, NumericPart]]:
        """Yield the parts of numbers with the places of their first columns."""
        first = 0
        for part in self.parts_:
            if isinstance(part, NumericPart):
                yield first, part
            first += len(part.names())

    def encoding_of(self, column: str) -> str:
        """Return which part encodes a column, or ``"dropped"``."""
        return next((part.kind for part in self.parts_ if column in part.columns), "dropped")

    def record(self) -> dict[str, Any]:
        """Return further fitted attributes as JSON values, for storage."""
        return {}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Set the attributes that :meth:`record` returned."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parts_")

    def _remember_columns(self, X: Any, frame: pd.DataFrame) -> None:
        self.n_features_in_ = frame.shape[1]
        self.columns_ = list(frame.columns)
        if isinstance(X, pd.DataFrame):
            self.feature_names_in_ = np.array(self.columns_, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _checked_frame(self, X: Any) -> pd.DataFrame:
        X = as_pandas(X)[0] if is_table(X) else X
        frame = _as_frame(X, fitting=False)
        if not isinstance(X, pd.DataFrame):
            if frame.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {frame.shape[1]} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
            return frame.set_axis(self.columns_, axis=1)
        missing = [name for part in self.parts_ for name in part.columns if name not in frame.columns]
        if missing:
            raise InputError(
                f"The rows lack column {missing[0]!r}"
                + (f" and {len(missing) - 1} more" if len(missing) > 1 else "")
                + ", which the encoder was fitted with; add it (its values may be missing)."
            )
        return frame


def _as_frame(X: Any, *, fitting: bool) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        frame = X if all(isinstance(name, str) for name in X.columns) else X.rename(columns=str)
        if not frame.columns.is_unique:
            repeated = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"Column name {repeated!r} occurs more than once; rename one of them.")
    else:
        array = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=1)
        frame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    if fitting and len(frame) < 2:
        raise InputError(
            f"An encoder can't be fitted to {len(frame)} rows (n_samples={len(frame)}); it needs two or more."
        )
    return frame


def _numbered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes


def _as_labels(y: Any, rows: int) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim != 1:
        labels = labels.reshape(len(labels), -1)[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1 or len(labels) != rows:
        raise ValueError(f"y has shape {np.shape(y)}, but one label is needed for each of {rows} rows.")
    absent = np.flatnonzero(pd.isna(labels))
    if absent.size:
        raise InputError(f"Row {absent[0]} (the first is 0) has no label; leave rows without one out of the fit.")
    return labels if labels.dtype.kind in "biufU" else labels.astype(str)
