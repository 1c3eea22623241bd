"""The type of a CSV column, decided over all of its values: one odd value in the last row counts.

The values come batch by batch, twice: :class:`ColumnGuess` looks at them, :func:`cast_column` converts them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# "None" and "?" are left out on purpose: in real tables they are answers as often as gaps.
MISSING_SPELLINGS = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")


class CellType(StrEnum):
    """What the cells of a column are, from the narrowest to the widest.

    Examples
    --------
    >>> CellType("whole") is CellType.WHOLE
    True
    """

    BOOLEAN = "boolean"
    WHOLE = "whole"
    NUMBER = "number"
    DECIMAL_COMMA = "decimal comma"
    MOMENT = "moment"
    TEXT = "text"


_PATTERNS = {
    CellType.BOOLEAN: r"^(?i:true|false)$",
    # No leading zeros: 00501 is a postcode, and as a number it would be another one.
    CellType.WHOLE: r"^[+-]?(0|[1-9][0-9]*)$",
    CellType.NUMBER: r"^[+-]?((((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)|(?i:inf|infinity))$",
    # Read where fields are not separated by commas; at least one value must show the comma.
    CellType.DECIMAL_COMMA: r"^[+-]?(0|[1-9][0-9]*|[1-9][0-9]{0,2}(\.[0-9]{3})+)(,[0-9]+)?$",
    CellType.MOMENT: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$",
}
# Whoever fits one of these fits those behind it and no other.
_IMPLIED = {
    CellType.WHOLE: (CellType.WHOLE, CellType.NUMBER, CellType.DECIMAL_COMMA),
    CellType.BOOLEAN: (CellType.BOOLEAN,),
    CellType.MOMENT: (CellType.MOMENT,),
}
# Cells of these types may have the right form and still be no value: too large for 64 bits, or the 31st of June.
_MAY_NOT_FIT = (CellType.WHOLE, CellType.MOMENT)


class ColumnGuess:
    """What a column may be, given the cells that were seen so far.

    In this order: true/false, whole numbers of 64 bits, numbers, ISO dates and times, text. Blanks around numbers are
    ignored. Whole numbers too large for 64 bits stay text, since a number would change them. Where fields are not
    separated by commas, 1.234,5 is a number.

    Parameters
    ----------
    delimiter : str
        What separates the file's fields.

    Examples
    --------
    >>> import pyarrow as pa
    >>> guess = ColumnGuess()
    >>> guess.look_at(pa.array(["1", "2"]))
    >>> guess.decided.value
    'whole'
    >>> guess.look_at(pa.array(["2.5", None]))
    >>> guess.decided.value
    'number'
    """

    def __init__(self, delimiter: str = ",") -> None:
        self._possible = [kind for kind in _PATTERNS if kind is not CellType.DECIMAL_COMMA or delimiter != ","]
        self._fits = dict.fromkeys(_MAY_NOT_FIT, True)
        self._is_empty = True

    def look_at(self, text: pa.Array) -> None:
        """Take more cells into account: text as it stands in the file, nulls where cells are missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._possible or text.null_count == len(text):
            return
        distinct = pc.unique(without_blanks(text)).drop_null()
        if len(distinct) == 0:
            return
        self._is_empty = False
        self._possible = self._fitting(distinct)
        for kind in _MAY_NOT_FIT:
            if kind in self._possible and self._fits[kind]:
                try:
                    _converted(distinct, kind)
                except pa.ArrowInvalid:
                    self._fits[kind] = False

    def _fitting(self, distinct: pa.Array) -> list[CellType]:
        """Return which types remain possible, with as few looks at the cells as it takes."""
        for kind, implied in _IMPLIED.items():
            if kind in self._possible and _all_match(distinct, _PATTERNS[kind]):
                return [other for other in self._possible if other in implied]
        return [kind for kind in self._possible if kind not in _IMPLIED and _all_match(distinct, _PATTERNS[kind])]

    @property
    def decided(self) -> CellType:
        """The narrowest type that holds every cell seen."""
        if self._is_empty or not self._possible:
            return CellType.TEXT
        narrowest = self._possible[0]
        return narrowest if self._fits.get(narrowest, True) else CellType.TEXT


def cast_column(text: pa.Array, kind: CellType) -> pa.Array:
    """Convert cells to the type that was decided for their column; text is kept as it is written.

    Examples
    --------
    >>> import pyarrow as pa
    >>> cast_column(pa.array([" 1", "+2", None]), CellType.NUMBER).to_pylist()
    [1.0, 2.0, None]
    """
    return text if kind is CellType.TEXT else _converted(without_blanks(text), kind)


def arrow_type(kind: CellType) -> pa.DataType:
    """Return the Arrow type of a column whose cells are of a type.

    Examples
    --------
    >>> arrow_type(CellType.MOMENT)
    TimestampType(timestamp[us])
    """
    import pyarrow as pa

    match kind:
        case CellType.BOOLEAN:
            return pa.bool_()
        case CellType.WHOLE:
            return pa.int64()
        case CellType.NUMBER | CellType.DECIMAL_COMMA:
            return pa.float64()
        case CellType.MOMENT:
            return pa.timestamp("us")
        case _:
            return pa.string()


def without_blanks(text: pa.Array) -> pa.Array:
    """Return cells without blanks around them; one that spells a missing value is missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> without_blanks(pa.array([" 1", " NA "])).to_pylist()
    ['1', None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(text)
    is_missing = pc.is_in(trimmed, value_set=pa.array(MISSING_SPELLINGS))
    return pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)


def _converted(trimmed: pa.Array, kind: CellType) -> pa.Array:
    import pyarrow.compute as pc

    if kind is CellType.BOOLEAN:
        return pc.equal(pc.ascii_lower(trimmed), "true")
    if kind is CellType.MOMENT:
        return pc.cast(trimmed, arrow_type(kind))
    unsigned = pc.ascii_ltrim(trimmed, characters="+")
    if kind is CellType.DECIMAL_COMMA:
        unsigned = pc.replace_substring(pc.replace_substring(unsigned, ".", ""), ",", ".")
    return pc.cast(unsigned, arrow_type(kind))


def _all_match(distinct: pa.Array, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(distinct, pattern)).as_py())
