"""Convert tables of polars, pyarrow and others to pandas, and results back to their kind and column types."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.source import refuse_duplicate_columns
from c2tc_pipeline.tables.blocks import frame_of
from c2tc_pipeline.tables.kinds import plain, to_numbers, to_text

# Names in polars and pyarrow.
_TEXT_TYPES = {"String", "string", "large_string", "string_view"}


@dataclass(frozen=True)
class FrameKind:
    """The kind of table that was given, with its column types, for the tables to return."""

    package: str  # "polars" or "pyarrow"
    types: Mapping[str, Any]  # of its columns; others get the types that their values have

    def frame(self, frame: pd.DataFrame) -> Any:
        """Return a table of this kind."""
        columns = {str(name): self.column(column) for name, column in frame.items()}
        if self.package == "polars":
            import polars

            return polars.DataFrame(list(columns.values()))
        import pyarrow as pa

        return pa.table(columns)

    def column(self, values: pd.Series[Any]) -> Any:
        """Return a column of this kind."""
        import pyarrow as pa

        name = str(values.name)
        found: Any = pa.array(plain(values), from_pandas=True)
        errors: tuple[type[Exception], ...] = (pa.ArrowException,)
        if self.package == "polars":
            import polars

            found, errors = polars.Series(name, found), (polars.exceptions.PolarsError,)
        wanted = self.types.get(name)
        # Text that was read as numbers or dates stays what it was read as, as in pandas.
        if wanted is None or (str(wanted) in _TEXT_TYPES and not pd.api.types.is_string_dtype(values.dtype)):
            return found
        # Lists and the like became text, and stay text.
        with contextlib.suppress(*errors):
            found = found.cast(wanted)
        return found


def is_table(data: Any) -> bool:
    """Return whether something is a table that :func:`as_pandas` takes."""
    return isinstance(data, pd.DataFrame) or hasattr(data, "__arrow_c_stream__")


def as_pandas(data: Any, what: str = "The table") -> tuple[pd.DataFrame, FrameKind | None]:
    """Return a table as a DataFrame, and its kind unless it was one; refuse anything else."""
    if isinstance(data, pd.DataFrame):
        return data, None
    package = type(data).__module__.partition(".")[0]
    if package == "polars" and hasattr(data, "collect"):
        raise InputError(f"{what} is a polars LazyFrame, which has no rows yet; call collect() on it first.")
    import pyarrow as pa

    try:
        table = pa.RecordBatchReader.from_stream(data).read_all().replace_schema_metadata(None)
    except (TypeError, pa.ArrowInvalid):
        # A column has the interface, too, but is not a table.
        raise InputError(
            f"{what} is of the type {type(data).__name__}; give a DataFrame of pandas or polars, a pyarrow table, or "
            "another table with the Arrow C stream interface."
        ) from None
    refuse_duplicate_columns(table.column_names, "the table")
    if package == "polars":
        kind = FrameKind("polars", dict(data.schema))
    else:
        kind = FrameKind("pyarrow", dict(zip(table.column_names, table.schema.types, strict=True)))
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return frame_of(batches, "that was given"), kind


def in_type(values: pd.Series[Any], dtype: Any) -> pd.Series[Any]:
    """Return values in the type of the column that they stand for, or as they are where it can't hold them."""
    if values.dtype == dtype:
        return values
    with contextlib.suppress(ValueError, TypeError, ArithmeticError):
        if isinstance(dtype, pd.CategoricalDtype):
            codes = _nearest_categories(values, pd.Series(dtype.categories))
            return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=values.index, name=values.name)
        if isinstance(dtype, pd.ArrowDtype):
            import pyarrow as pa

            # Times in pandas have units of their own, and decimals more digits.
            cells = pa.array(values, from_pandas=True).cast(dtype.pyarrow_dtype, safe=False)
            return pd.Series(pd.array(cells, dtype=dtype), index=values.index, name=values.name)
        if isinstance(dtype, pd.PeriodDtype):
            return values.dt.to_period(dtype.freq)
        if pd.api.types.is_extension_array_dtype(dtype):
            return values.astype(dtype)
        if not pd.api.types.is_object_dtype(dtype) and (values == (cast := values.astype(dtype))).all():
            return cast
    return values


def _nearest_categories(values: pd.Series[Any], categories: pd.Series[Any]) -> np.ndarray:
    """Return the number of each value's category: the nearest one where categories are numbers; -1 for none."""
    if pd.api.types.is_string_dtype(values.dtype) or not pd.api.types.is_any_real_numeric_dtype(categories.dtype):
        return pd.Index(to_text(categories)).get_indexer(pd.Index(to_text(values)))
    known = to_numbers(categories).values.to_numpy(dtype=np.float64)
    order = np.argsort(known)
    numbers = to_numbers(values).values.to_numpy(dtype=np.float64)
    borders = (known[order][1:] + known[order][:-1]) / 2
    return np.where(np.isnan(numbers), -1, order[np.searchsorted(borders, numbers)])


def decimal_places(series: pd.Series[Any]) -> int | None:
    """Return the most decimal places of a column of Python's decimals; None for another column."""
    if series.dtype != object or pd.api.types.infer_dtype(series, skipna=True) != "decimal":
        return None
    exponents = [value.as_tuple().exponent for value in series.dropna()]
    return max((-exponent for exponent in exponents if isinstance(exponent, int)), default=0)


def as_decimals(numbers: np.ndarray, places: int) -> pd.Series[Any]:
    """Return numbers as Python's decimals with this number of places, missing ones as None."""
    unit = Decimal(1).scaleb(-max(places, 0))
    cells = [None if np.isnan(number) else Decimal(repr(float(number))).quantize(unit) for number in numbers]
    return pd.Series(cells, dtype=object)
