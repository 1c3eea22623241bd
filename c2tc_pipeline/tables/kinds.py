"""Kinds of values in pandas columns, and their conversion to numbers, integer codes, text or categories.

Here belongs everything that depends on how pandas stores a column (NumPy, nullable, Arrow, category, object). What a
column is *used* for is decided in :mod:`c2tc_pipeline.tables.roles`.

A category has one text key, whatever the type of its column: ``1``, ``1.0`` and ``True`` are the same code, since a
table read back from CSV must have the categories it was fitted with.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types as dtypes


class Kind(StrEnum):
    """The physical kind of a column's values."""

    EMPTY = "empty"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    REAL = "real"
    MOMENT = "moment"
    DURATION = "duration"
    TEXT = "text"
    MIXED = "mixed"


_OBJECT_KINDS = {
    "empty": Kind.EMPTY,
    "boolean": Kind.BOOLEAN,
    "integer": Kind.INTEGER,
    "floating": Kind.REAL,
    "mixed-integer-float": Kind.REAL,
    "decimal": Kind.REAL,
    "datetime": Kind.MOMENT,
    "datetime64": Kind.MOMENT,
    "date": Kind.MOMENT,
    "timedelta": Kind.DURATION,
    "timedelta64": Kind.DURATION,
    "string": Kind.TEXT,
    "bytes": Kind.TEXT,
}

# Beyond this, float64 can't represent all integers.
_LARGEST_EXACT_FLOAT = 2.0**53


def joined_kind(first: Kind, second: Kind) -> Kind:
    """Return the kind of a column from those of two of its blocks."""
    if first is second or second is Kind.EMPTY:
        return first
    if first is Kind.EMPTY:
        return second
    return Kind.REAL if {first, second} == {Kind.INTEGER, Kind.REAL} else Kind.MIXED


class Conversion(NamedTuple):
    """A converted column and the positions whose value did not fit."""

    values: pd.Series[Any]
    refused: np.ndarray


def plain(series: pd.Series[Any]) -> pd.Series[Any]:
    """Return the column without its Arrow or category wrapping, other columns as they are."""
    if isinstance(series.dtype, pd.ArrowDtype):
        unwrapped = series.array.__arrow_array__().to_pandas()
        return pd.Series(unwrapped.array, index=series.index, name=series.name)
    if isinstance(series.dtype, pd.CategoricalDtype):
        if dtypes.is_string_dtype(series.cat.categories.dtype):
            return series.astype("str")
        return pd.Series(np.asarray(series), index=series.index, name=series.name)
    return series


def column_kind(series: pd.Series[Any]) -> Kind:
    """Return what a column holds, from its values where the dtype is not enough; ``Kind.EMPTY`` when all are missing.

    Floats that are all integers count as integers: a single missing value turns a column of integers into floats.
    """
    series = plain(series)
    dtype = series.dtype
    if bool(series.isna().all()):
        return Kind.EMPTY
    if dtypes.is_bool_dtype(dtype):
        return Kind.BOOLEAN
    if dtypes.is_integer_dtype(dtype):
        return Kind.INTEGER
    if dtypes.is_float_dtype(dtype):
        return Kind.INTEGER if _all_integers(as_floats(series)) else Kind.REAL
    if dtypes.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return Kind.MOMENT
    if dtypes.is_timedelta64_dtype(dtype):
        return Kind.DURATION
    if dtypes.is_object_dtype(dtype):
        kind = _OBJECT_KINDS.get(dtypes.infer_dtype(series, skipna=True), Kind.MIXED)
        if kind is Kind.REAL and _all_integers(as_floats(series)):
            return Kind.INTEGER
        return kind
    return Kind.TEXT if dtypes.is_string_dtype(dtype) else Kind.MIXED


def to_numbers(series: pd.Series[Any]) -> Conversion:
    """Convert a column to NumPy numbers, without a copy when it already is one.

    Datetimes become seconds since 1970-01-01 (UTC where they have no time zone), durations become seconds, booleans 0
    and 1, text is parsed; missing values become NaN.
    """
    source = plain(series)
    dtype = source.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        numbers = source.astype(np.float32) if dtype == np.float16 else source
        return Conversion(numbers, np.empty(0, dtype=np.int64))
    numbers = _numbers(source, column_kind(source))
    return Conversion(numbers, np.flatnonzero(numbers.isna().to_numpy() & source.notna().to_numpy()))


def to_codes(series: pd.Series[Any]) -> Conversion:
    """Convert a column to integers or booleans; ``Int64`` when values are missing."""
    source = plain(series)
    if source.dtype == np.dtype(bool):
        return Conversion(source, np.empty(0, dtype=np.int64))
    numbers, refused = to_numbers(source)
    if dtypes.is_integer_dtype(numbers.dtype):
        return Conversion(numbers, refused)
    floats = numbers.to_numpy(dtype=np.float64)
    with np.errstate(invalid="ignore"):
        fractional = ~np.isnan(floats) & ((np.mod(floats, 1.0) != 0.0) | (np.abs(floats) > _LARGEST_EXACT_FLOAT))
    whole = numbers.mask(fractional) if fractional.any() else numbers
    codes = whole.astype("Int64") if bool(whole.isna().any()) else whole.astype("int64")
    return Conversion(codes, np.union1d(refused, np.flatnonzero(fractional)))


def to_text(series: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a column to pandas ``str``; missing values stay missing.

    Integers are written without a decimal point even where a missing value had turned them into floats.
    """
    source = plain(series)
    if isinstance(source.dtype, pd.StringDtype):
        return source.astype("str")
    present = source.notna().to_numpy()
    written = np.full(len(source), np.nan, dtype=object)
    written[present] = [_text_of(value) for value in source[present]]
    return pd.Series(written, index=source.index, name=source.name).astype("str")


def _text_of(value: object) -> str:
    """Write one value, whatever the others are: a row alone must read as it does in its table."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="backslashreplace")
    if isinstance(value, float | np.floating):
        number = float(value)
        if abs(number) <= _LARGEST_EXACT_FLOAT and number.is_integer():
            return str(int(number))
    return str(value)


def as_floats(series: pd.Series[Any]) -> np.ndarray:
    """Return a numeric column as float64, missing values as NaN."""
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _all_integers(floats: np.ndarray) -> bool:
    """Whether every value that is present is a finite integer; stops early on columns of fractions."""
    for start in range(0, len(floats), 65_536):
        block = floats[start : start + 65_536]
        block = block[~np.isnan(block)]
        if not np.isfinite(block).all() or (np.mod(block, 1.0) != 0.0).any():
            return False
    return True


def _numbers(series: pd.Series[Any], kind: Kind) -> pd.Series[Any]:
    if kind is Kind.EMPTY:
        return pd.Series(np.nan, index=series.index, name=series.name)
    if kind is Kind.MOMENT:
        return _seconds_since_1970(series)
    if kind is Kind.DURATION:
        return pd.to_timedelta(series).dt.total_seconds()
    if kind in (Kind.TEXT, Kind.MIXED):
        return pd.to_numeric(to_text(series).astype(object), errors="coerce").astype(np.float64)
    if bool(series.isna().any()):
        return pd.Series(as_floats(series), index=series.index, name=series.name)
    if kind is Kind.BOOLEAN:
        return series.astype(np.int8)
    if dtypes.is_object_dtype(series.dtype):
        return series.astype(np.int64) if kind is Kind.INTEGER and _fits_int64(series) else series.astype(np.float64)
    return pd.Series(series.to_numpy(), index=series.index, name=series.name)


def _fits_int64(series: pd.Series[Any]) -> bool:
    limits = np.iinfo(np.int64)
    return bool(limits.min <= series.min() and series.max() <= limits.max)


def _seconds_since_1970(series: pd.Series[Any]) -> pd.Series[Any]:
    if isinstance(series.dtype, pd.PeriodDtype):
        series = series.dt.to_timestamp()
    # Microseconds reach from before history to long after it; nanoseconds only from 1677 to 2262.
    moments = pd.to_datetime(series, utc=True, errors="coerce").dt.as_unit("us")
    return (moments - pd.Timestamp(0, tz="UTC").as_unit("us")) / pd.Timedelta(seconds=1)


def factorise(series: pd.Series[Any]) -> tuple[np.ndarray, list[str]]:
    """Return the position of each row's key among the distinct keys, and the keys; missing values get -1."""
    positions, values = pd.factorize(series, use_na_sentinel=True)
    keys = [category_key(value) for value in values]
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < len(keys):
        # Values of different types can share a key; an extra entry at the end keeps -1 pointing at missing.
        place = {key: index for index, key in enumerate(distinct)}
        positions = np.array([*(place[key] for key in keys), -1])[positions]
    return positions.astype(np.int64, copy=False), distinct


def natural_order(key: str) -> tuple[float, str]:
    """Return a sort key: numbers by size, then text by the alphabet."""
    try:
        number = float(key)
    except ValueError:
        return np.inf, key
    return (number, key) if np.isfinite(number) else (np.inf, key)


def category_key(value: object) -> str:
    """Return the text key of a value: '2' for 2.0, '1' for True."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)
