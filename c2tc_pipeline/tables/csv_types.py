"""The type of a CSV column, decided over all of its values: one odd value in the last row counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa

# "None" and "?" are left out on purpose: in real tables they are answers as often as gaps.
MISSING_SPELLINGS = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")

# No leading zeros: 00501 is a postcode, and as a number it would be another one.
_WHOLE = r"^[+-]?(0|[1-9][0-9]*)$"
_NUMBER = r"^[+-]?((((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)|(?i:inf|infinity))$"
_BOOLEAN = r"^(?i:true|false)$"
# Read where fields are not separated by commas; at least one value must show the comma.
_DECIMAL_COMMA = r"^[+-]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"


def typed(text: pa.ChunkedArray, *, delimiter: str = ",") -> pd.Series[Any]:
    """Convert a column of text to the narrowest type that holds every value.

    In this order: true/false, whole numbers of 64 bits, numbers, ISO dates and times, text. Blanks around numbers are
    ignored; text is kept as it is written. Whole numbers too large for 64 bits stay text, since a number would change
    them. Where fields are not separated by commas, 1.234,5 is a number.

    Parameters
    ----------
    text : pyarrow.ChunkedArray of string
        The column as it stands in the file, nulls where cells are missing.
    delimiter : str
        What separates the file's fields.

    Returns
    -------
    pandas.Series
        ``bool``/``boolean``, ``int64``/``Int64``, ``float64``, ``datetime64`` or ``str``.

    Examples
    --------
    >>> import pyarrow as pa
    >>> typed(pa.chunked_array([["1", "2"], ["2.5", None]])).tolist()
    [1.0, 2.0, 2.5, nan]
    >>> typed(pa.chunked_array([["501", "00501"]])).tolist()
    ['501', '00501']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = _without_blanks(text)
    if trimmed.null_count == len(trimmed):
        return text.to_pandas()
    distinct = pc.unique(trimmed).drop_null()
    if _all_match(distinct, _BOOLEAN):
        return _nullable(pc.equal(pc.ascii_lower(trimmed), "true"), "boolean")
    unsigned = pc.ascii_ltrim(trimmed, characters="+")
    if _all_match(distinct, _WHOLE):
        try:
            return _nullable(pc.cast(unsigned, pa.int64()), "Int64")
        except pa.ArrowInvalid:
            return text.to_pandas()
    if _all_match(distinct, _NUMBER):
        return pc.cast(unsigned, pa.float64()).to_pandas()
    if delimiter != "," and _all_match(distinct, _DECIMAL_COMMA):
        plain = pc.replace_substring(pc.replace_substring(unsigned, ".", ""), ",", ".")
        return pc.cast(plain, pa.float64()).to_pandas()
    if _all_match(distinct, _DATE):
        try:
            return pc.cast(trimmed, pa.timestamp("us")).to_pandas()
        except pa.ArrowInvalid:
            return text.to_pandas()
    return text.to_pandas()


def _without_blanks(text: pa.ChunkedArray) -> pa.ChunkedArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    is_missing = pc.is_in(trimmed, value_set=pa.array(MISSING_SPELLINGS))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def _all_match(distinct: pa.Array, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(distinct, pattern)).as_py())


def _nullable(values: pa.ChunkedArray, dtype: str) -> pd.Series[Any]:
    """Convert to NumPy where nothing is missing, else to the nullable type: floats round large numbers."""
    if values.null_count == 0:
        return values.to_pandas()
    missing = np.asarray(values.is_null().to_numpy(), dtype=bool)
    filled = np.asarray(values.fill_null(False if dtype == "boolean" else 0).to_numpy())
    if dtype == "boolean":
        return pd.Series(pd.arrays.BooleanArray(filled.astype(bool), missing))
    return pd.Series(pd.arrays.IntegerArray(filled, missing))
