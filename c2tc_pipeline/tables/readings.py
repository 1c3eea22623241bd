"""Values of text columns: spellings of missing values, and columns that hold numbers or dates as text.

CSV decides types when it is read; here the text that other sources declare, and numbers among words, are decided in the
same way: over all cells of a column, whatever the division into blocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api import types as dtypes

from c2tc_pipeline.common.errors import Notice, counted
from c2tc_pipeline.sources.values import MISSING_SPELLINGS
from c2tc_pipeline.tables.kinds import Kind, column_kind, joined_kind, to_text

if TYPE_CHECKING:
    import pyarrow as pa

# Up to this share of a column of numbers may be words; a column of fewer than 1,000 values may hold none.
MAX_WORDS_SHARE = 0.001
# Words are spellings of missing values only if there are at most this many different ones.
MAX_WORDS = 10
_FIRST_CELLS = 256
# Integers of at most this many characters fit 64 bits.
_SAFE_DIGITS = 18
_INT64 = np.iinfo(np.int64)

_GAP = "[ \u00a0\u202f'\u2019]"
_POINT_GROUPS = r"(?:[1-9][0-9]{0,2}(?:\.[0-9]{3})+|0|[1-9][0-9]*)"
# In India the groups before the last have two digits.
_COMMA_GROUPS = rf"(?:[1-9][0-9]?(?:,[0-9]{{2}})+,[0-9]{{3}}|{_POINT_GROUPS.replace('.', ',')})"
_GAP_GROUPS = _POINT_GROUPS.replace(r"\.", _GAP)
_DAY = "[0-9]{4}(?:-[0-9]{2}-|/[0-9]{2}/)[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
# No leading zeros, as in CSV: 00501 is a postcode. In this order: where several fit, the first is taken.
_STYLES = {
    "plain": r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
    "1,234.5": rf"{_COMMA_GROUPS}(?:\.[0-9]+)?",
    "1.234,5": rf"{_POINT_GROUPS}(?:,[0-9]+)?",
    "1 234.5": rf"{_GAP_GROUPS}(?:\.[0-9]+)?",
    "1 234,5": rf"{_GAP_GROUPS}(?:,[0-9]+)?",
    "date": rf"{_DAY}(?:[ T]{_TIME})?",
    "zoned date": rf"{_DAY}[ T]{_TIME}(?:Z|[+-][0-9]{{2}}(?::?[0-9]{{2}})?)",
    "1/2/2000": r"[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}(?:,? [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[AaPp][Mm])?)?",
}
# Dates that are read, with their time zone, and dates of which the month may come first or second.
_ZONES = {"date": None, "zoned date": "UTC"}
_IN_ANY_ORDER = "1/2/2000"
_DATES = (*_ZONES, _IN_ANY_ORDER)
# Currencies whose point comes before decimals.
_POINT_CURRENCIES = frozenset({"$", "US$", "£", "USD", "GBP"})
# In 1,234 the comma may come before thousands or before decimals, and so may the point in 1.234.
_AMBIGUOUS = {"1,234.5", "1.234,5"}
_INTEGER = r"^[+-]?[0-9]+$"
# A sign, and a currency before or after the number or a percent sign after it.
_CODES = "USD|EUR|GBP|CHF|JPY|CNY|INR|BRL|CAD|AUD|NZD|MXN|ZAR|SEK|NOK|DKK|PLN|CZK|HUF"
_MONEY = f"[A-Z]{{0,2}}[$]|[\u00a2-\u00a5\u20a0-\u20c0]|{_CODES}|kr|z\u0142|K\u010d"
_BLANKS = "[\\s\u00a0\u202f]*"
_HAS_UNIT = rf"^[+-]?{_BLANKS}(?:{_MONEY})|(?:{_MONEY}|%)$"
_PARTS = (
    rf"(?s)^(?P<sign>[+-]?){_BLANKS}(?P<before>{_MONEY})?{_BLANKS}(?P<second>[+-]?)(?P<body>.*?){_BLANKS}"
    rf"(?P<after>{_MONEY}|%)?$"
)
_MINUS = "\u2212"
# How accountants write a negative number.
_IN_PARENTHESES = r"^\(([^()+-]*)\)$"


@dataclass(frozen=True)
class TextReading:
    """Format of the numbers or dates in a text column.

    ``style`` is one of the ways of writing them, ``sign`` the currency or percent sign beside them, and ``words`` are
    the other cells, which are missing values.
    """

    style: str
    sign: str = ""
    words: tuple[str, ...] = ()
    integers: bool = False

    def read(self, series: pd.Series[Any], missing: Collection[str]) -> pd.Series[Any]:
        """Return a column as numbers or datetimes; cells that are none stay text, for the message that refuses them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not _is_text(series):
            return series
        trimmed = _trimmed(series)
        absent = pc.is_in(trimmed, value_set=pa.array(sorted({*missing, *self.words}), pa.string()))
        cells = pc.if_else(absent, pa.scalar(None, pa.string()), trimmed)
        signs, bodies = _without_units(cells)
        allowed = [self.sign] if self.sign == "%" else ["", self.sign]
        fits = pc.and_(_matches(bodies, self.style), pc.is_in(signs, value_set=pa.array(allowed)))
        if self.integers:
            fits = pc.and_(fits, _are_int64(bodies, self.style))
        values = _values(pc.if_else(fits, bodies, pa.scalar(None, pa.string())), self.style, self.integers)
        refused = np.flatnonzero(pc.fill_null(pc.invert(fits), False).to_numpy(zero_copy_only=False))
        if len(refused):
            numbers = values if self.style not in _DATES else pc.divide(pc.cast(values, pa.int64()), 1e6)
            found = pd.Series(numbers.to_pandas(), index=series.index, name=series.name, dtype=object)
            found.iloc[refused] = trimmed.take(pa.array(refused)).to_pylist()
            return found
        if values.null_count and self.integers:
            gaps = np.asarray(values.is_null().to_numpy(zero_copy_only=False), dtype=bool)
            column = pd.arrays.IntegerArray(np.array(values.fill_null(0)), gaps)
            return pd.Series(column, index=series.index, name=series.name)
        return pd.Series(values.to_pandas().array, index=series.index, name=series.name)


@dataclass(frozen=True)
class Readings:
    """Readings of the text of a table: further spellings of missing values, and the columns of numbers and dates.

    Examples
    --------
    >>> found = Readings(("unknown",), {"price": TextReading("1,234.5", "$")})
    >>> found.read(pd.DataFrame({"price": ["$1,250.50", "unknown"], "job": ["NA", "cook"]})).values.tolist()
    [[1250.5, nan], [nan, 'cook']]
    """

    missing: tuple[str, ...] = ()
    columns: Mapping[str, TextReading] = field(default_factory=dict)

    def read(self, frame: pd.DataFrame, only: Collection[str] | None = None) -> pd.DataFrame:
        """Return rows as they are read; ``only`` names the columns that may hold what is to be read."""
        changed = {}
        for name in frame.columns if only is None else [name for name in frame.columns if name in only]:
            column = frame[name]
            if name in self.columns:
                read = self.columns[name].read(column, {*MISSING_SPELLINGS, *self.missing})
            else:
                read = without_marks(column, self.missing)
            if read is not column:
                changed[name] = read
        return frame.assign(**changed) if changed else frame

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"missing": list(self.missing), "columns": {name: asdict(how) for name, how in self.columns.items()}}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Readings:
        """Return what :meth:`to_json` returned; ValueError or TypeError where it is something else."""
        columns = {
            str(name): TextReading(**{**how, "words": tuple(map(str, how["words"]))})
            for name, how in values["columns"].items()
        }
        if any(how.style not in _STYLES for how in columns.values()):
            raise ValueError("unknown way of writing numbers")
        return cls(tuple(map(str, values["missing"])), columns)


def without_marks(series: pd.Series[Any], missing: Sequence[str]) -> pd.Series[Any]:
    """Return a column without the cells that spell a missing value, the column itself where there are none.

    In a column of numbers those are cells equal to one of ``missing`` that is a number, such as -999.
    """
    marks: list[Any] = [*MISSING_SPELLINGS, *missing]
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        marks = [mark for mark in (*marks, *_numbers_among(missing)) if mark in dtype.categories]
    elif dtypes.is_object_dtype(dtype):
        marks += _numbers_among(missing)
    elif dtypes.is_numeric_dtype(dtype) and not dtypes.is_bool_dtype(dtype):
        marks = _numbers_among(missing)
    elif not _is_text(series):
        marks = []
    if not marks:
        return series
    marked = series.isin(marks)
    if not bool(marked.any()):
        return series
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        # A float would round large integers.
        integers = pd.arrays.IntegerArray(series.to_numpy(copy=True), marked.to_numpy())
        return pd.Series(integers, index=series.index, name=series.name)
    return series.mask(marked)


def gather_readings(
    frames: Callable[[Sequence[str] | None], Iterable[pd.DataFrame]],
    *,
    missing: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
    label: str | None = None,
) -> tuple[Readings, set[str], list[Notice]]:
    """Decide how a table is read, in one pass over its text columns.

    Return the readings, the columns that they change, and notices. ``roles`` are those that the user gave: strings and
    dropped columns stay text, as the label does, and in numeric columns an ambiguous comma separates thousands.
    """
    given = roles or {}
    missing = tuple(dict.fromkeys(missing))
    columns: dict[str, _TextColumn] = {}
    marked: dict[str, int] = {}
    first = next(iter(frames(None)))
    wanted = [str(name) for name in first.columns if _numbers_among(missing) or _may_be_marked(first[name])]
    for frame in frames(wanted) if wanted else ():
        for name in wanted:
            column = frame[name]
            without = without_marks(column, missing)
            if without is not column:
                marked[name] = marked.get(name, 0) + int((without.isna() & column.notna()).sum())
            if _is_text(column) and name != label and given.get(name) not in ("string", "drop"):
                has_thousands = given.get(name) in ("numeric", "code")
                columns.setdefault(name, _TextColumn(missing, has_thousands=has_thousands)).add(column)
    notices = [
        Notice(
            "missing_marks",
            f"{counted(count, 'cell')} spelling a missing value {'was' if count == 1 else 'were'} read as such",
            name,
        )
        for name, count in marked.items()
    ]
    for name, text in columns.items():
        notices += [Notice(kind, message, name) for kind, message in text.messages(is_marked=name in marked)]
    decided = {name: reading for name, text in columns.items() if (reading := text.reading()) is not None}
    return Readings(missing, decided), {*marked, *decided}, notices


def read_frame(frame: pd.DataFrame, **options: Any) -> tuple[pd.DataFrame, Readings]:
    """Return a whole table as it is read, and how; options are those of :func:`gather_readings`."""
    readings, changed, _ = gather_readings(lambda names: [frame if names is None else frame[names]], **options)
    return readings.read(frame, changed), readings


class _TextColumn:
    """The ways in which all cells of a column but a few words can be numbers or dates, decided block by block."""

    def __init__(self, missing: Sequence[str], *, has_thousands: bool) -> None:
        self._has_thousands = has_thousands
        self._absent = {*MISSING_SPELLINGS, *missing}
        self._kind = Kind.EMPTY
        self._cells = 0
        self._styles = {name: _Style(name) for name in _STYLES}

    def add(self, series: pd.Series[Any]) -> None:
        """Add a block."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(series.dtype, pd.StringDtype):
            self._kind = joined_kind(self._kind, column_kind(series))
        # Other text is recognised after a few cells.
        for rows in (slice(0, _FIRST_CELLS), slice(_FIRST_CELLS, None)):
            styles = [style for style in self._styles.values() if style.is_possible]
            if not styles:
                return
            counted = pc.value_counts(_trimmed(series.iloc[rows]).drop_null())
            texts, counts = counted.field(0), counted.field(1)
            kept = pc.invert(pc.is_in(texts, value_set=pa.array(sorted(self._absent))))
            texts, counts = texts.filter(kept), np.asarray(counts.filter(kept))
            self._cells += int(counts.sum())
            signs, bodies = _without_units(texts)
            for style in styles:
                style.add(texts, signs, bodies, counts)

    def reading(self) -> TextReading | None:
        """Return how the column is read; None for text."""
        style = self._decided()[0]
        return None if style is None else style.reading()

    def messages(self, *, is_marked: bool) -> list[tuple[str, str]]:
        """Return kinds and texts of notices."""
        style, doubt, example = self._decided()
        if style is None:
            if doubt == "signs":
                message = f"holds numbers with different signs, {example}, and was read as text"
                return [("mixed_signs", f"{message}; write all with one sign")]
            if doubt == "order":
                message = f"looks like dates that are not in ISO format, such as {example!r}, and was read as text"
                return [("ambiguous_dates", f"{message}; write dates as 2022-12-31")]
            if doubt != "separator":
                return self._nearly_numbers()
            message = f"holds numbers that can be read in two ways, such as {example!r}, and was read as text"
            advice = "give it the role numeric if separators come before thousands, or write all in one way"
            return [("ambiguous_numbers", f"{message}; {advice}")]
        messages = []
        what = "dates" if style.name in _DATES else "numbers"
        if style.words:
            listed = ", ".join(f"{word!r} ({count:,})" for word, count in sorted(style.words.items()))
            text = f"holds {what} and a few words, which were read as missing values: {listed}"
            messages.append(("words_among_numbers", text))
        if style.example:
            value = style.reading().read(pd.Series([style.example], dtype="str"), ()).iloc[0]
            message = f"holds numbers such as {style.example!r}, which was read as {value:.15g}"
            if doubt == "thousands":
                message += f" (the {'comma' if style.name[1] == ',' else 'point'} as a separator of thousands)"
            messages.append(("number_format", message))
        elif not (style.words or is_marked):
            text = f"holds {what} as text, which were read as {what}; give it the role string to keep the text"
            messages.append((f"{what}_as_text", text))
        return messages

    def _nearly_numbers(self) -> list[tuple[str, str]]:
        """Return the notice about text that would be numbers or dates but for a few different words."""
        near = [style for style in self._styles.values() if style.is_possible and 2 * style.word_count < self._cells]
        # Mixed types have a notice of their own.
        if self._kind not in (Kind.EMPTY, Kind.TEXT) or not near:
            return []
        style = min(near, key=lambda each: each.word_count)
        word, count = max(style.words.items(), key=lambda item: (item[1], item[0]))
        what = "dates" if style.name in _DATES else "numbers"
        words = counted(style.word_count, "word")
        message = f"holds {what} and {words}, such as {word!r} ({count:,}), and was read as text"
        return [("words_in_text", f"{message}; name the words as missing values (missing, --missing) if they are that")]

    def _decided(self) -> tuple[_Style | None, str, str]:
        """Return the style of the cells, None for text, what was in doubt, and cells that show it.

        In doubt may be the order of day and month, which sign counts, and whether ``1,234`` has decimals, or ``1.234``
        beside a currency. Where each such cell has groups of three digits they are thousands; a single cell without a
        currency does not tell.
        """
        if self._kind not in (Kind.EMPTY, Kind.TEXT, Kind.MIXED):
            return None, "", ""
        fitting = {style.name: style for style in self._styles.values() if style.fits(self._cells)}
        fewest = min((style.word_count for style in fitting.values()), default=0)
        best = [style for style in fitting.values() if style.word_count == fewest]
        if not best:
            return None, "", ""
        decided, doubt, names = best[0], "", {style.name for style in best}
        if decided.name == _IN_ANY_ORDER:
            return None, "order", decided.example
        comma, point = self._styles["1,234.5"], self._styles["1.234,5"]
        if decided.name != "plain" and names >= {comma.name, point.name} and not self._has_thousands:
            is_decided = not point.separated and (comma.separated > 1 or comma.has_currency)
            if not is_decided and "plain" not in fitting:
                return None, "separator", decided.example
            # Where others are plain, the one with a separator is a word.
            decided, doubt = (comma, "thousands") if is_decided else (fitting["plain"], "")
        elif decided.name == "plain" and point.name in names and point.separated and point.has_comma_currency:
            decided, doubt = point, "thousands"
        if decided.has_several_signs:
            return None, "signs", decided.several_signs
        return decided, doubt, decided.example


class _Style:
    """One number or date format: the cells that do not match it, and properties of those that do."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words: Counter[str] = Counter()
        self.example = ""
        self.is_possible = True
        self.separated = 0
        self._signs: dict[str, str] = {}
        self._integers = True

    def add(self, texts: pa.Array, signs: pa.Array, bodies: pa.Array, counts: np.ndarray) -> None:
        """Add distinct cells and their counts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        fits = _matches(bodies, self.name)
        integers = _are_integers(bodies, self.name)
        # A float would change a larger integer.
        large = pc.and_(integers, pc.invert(_are_int64(bodies, self.name)))
        fits = pc.and_(fits, pc.invert(large))
        places = np.flatnonzero(~fits.to_numpy(zero_copy_only=False))
        if len(places) + len(self.words) > 2 * MAX_WORDS:
            self.is_possible = False
            return
        others = texts.take(pa.array(places))
        for word, count in zip(others.to_pylist(), counts[places].tolist(), strict=True):
            self.words[word] += count
        # Digits alone are a code with leading zeros, or a number that a float would change.
        is_code = bool(pc.any(pc.match_substring_regex(others, _INTEGER)).as_py())
        self.is_possible = len(self.words) <= MAX_WORDS and not is_code
        if self.name == _IN_ANY_ORDER:
            self.example = max(self.example, pc.max(texts.filter(fits)).as_py() or "")
        if self.name in _DATES or not self.is_possible:
            return
        self._integers = self._integers and bool(pc.all(integers.filter(fits)).as_py() is not False)
        for sign in pc.unique(signs.filter(fits)).to_pylist():
            first = pc.min(texts.filter(pc.and_(fits, pc.equal(signs, sign)))).as_py()
            self._signs[sign] = min(self._signs.get(sign, first), first)
        if self.name in _AMBIGUOUS:
            is_separated = pc.and_(fits, pc.match_substring(bodies, self.name[1]))
            self.separated += int(counts[is_separated.to_numpy(zero_copy_only=False)].sum())
        written = texts.filter(pc.and_(fits, pc.not_equal(_plain(bodies, self.name), texts)))
        # The longest, whatever the order of the rows.
        self.example = max([self.example, *written.to_pylist()], key=lambda text: (len(text), text))

    @property
    def word_count(self) -> int:
        """Cells that do not fit."""
        return sum(self.words.values())

    @property
    def has_several_signs(self) -> bool:
        """Whether different cells have different signs; a currency may be left out."""
        return len(self._signs.keys() - {""}) > 1 or self._signs.keys() == {"", "%"}

    @property
    def several_signs(self) -> str:
        """Cells with two different signs, for a message."""
        first, *others = (repr(text) for _, text in sorted(self._signs.items()))
        return f"such as {first} beside {others[-1]}"

    @property
    def has_currency(self) -> bool:
        """Whether some cell has a currency beside its number."""
        return bool(self._signs.keys() - {"", "%"})

    @property
    def has_comma_currency(self) -> bool:
        """Whether some cell has a currency that is not written with a decimal point, as dollars and pounds are."""
        return bool(self._signs.keys() - {"", "%", *_POINT_CURRENCIES})

    def fits(self, cells: int) -> bool:
        """Whether all of this many cells but a few words are written in this style."""
        return self.is_possible and self.word_count < cells and self.word_count <= MAX_WORDS_SHARE * cells

    def reading(self) -> TextReading:
        """Return how cells of this style are read."""
        integers = self.name not in _DATES and self._integers
        return TextReading(self.name, max(self._signs, default=""), tuple(sorted(self.words)), integers)


def _is_text(series: pd.Series[Any]) -> bool:
    return (
        dtypes.is_object_dtype(series.dtype)
        or isinstance(series.dtype, pd.StringDtype)
        or (isinstance(series.dtype, pd.ArrowDtype) and dtypes.is_string_dtype(series.dtype))
    )


def _may_be_marked(series: pd.Series[Any]) -> bool:
    return _is_text(series) or isinstance(series.dtype, pd.CategoricalDtype)


def _numbers_among(words: Iterable[str]) -> list[float]:
    return [float(word) for word in words if re.fullmatch(f"[+-]?(?:{_STYLES['plain']})", word)]


def _trimmed(series: pd.Series[Any]) -> pa.Array:
    """Return the cells of a text column without blanks around them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(pa.array(to_text(series), pa.string()))


def _without_units(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the currency or percent sign of each cell, empty where there is none, and the cell without it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    none = pa.repeat("", len(texts))
    texts = pc.replace_substring_regex(pc.replace_substring(texts, _MINUS, "-"), _IN_PARENTHESES, r"-\1")
    if not pc.any(pc.match_substring_regex(texts, _HAS_UNIT)).as_py():
        return none, texts
    found = pc.extract_regex(texts, _PARTS)
    sign, before, second, body, after = (found.field(name) for name in ("sign", "before", "second", "body", "after"))
    has = {name: pc.not_equal(part, "") for name, part in zip("sbca", (sign, before, second, after), strict=True)}
    is_one = pc.and_(pc.xor(has["b"], has["a"]), pc.invert(pc.and_(has["s"], has["c"])))
    is_one = pc.fill_null(is_one, False)
    units = pc.if_else(is_one, pc.binary_join_element_wise(before, after, ""), none)
    return units, pc.if_else(is_one, pc.binary_join_element_wise(sign, second, body, ""), texts)


def _matches(bodies: pa.Array, style: str) -> pa.Array:
    """Return which cells are written in a style."""
    import pyarrow as pa
    import pyarrow.compute as pc

    sign = "" if style in _DATES else "[+-]?"
    fits = pc.match_substring_regex(bodies, f"^{sign}(?:{_STYLES[style]})$")
    if style not in _ZONES:
        return fits
    dates = bodies.filter(fits)
    try:
        _values(dates, style, False)
    except pa.ArrowInvalid:
        # The 31st of June.
        wrong = [text for text in dates.to_pylist() if not _is_date(text, style)]
        fits = pc.and_(fits, pc.invert(pc.is_in(bodies, value_set=pa.array(wrong, pa.string()))))
    return fits


def _is_date(text: str, style: str) -> bool:
    import pyarrow as pa

    try:
        _values(pa.array([text]), style, False)
    except pa.ArrowInvalid:
        return False
    return True


def _plain(bodies: pa.Array, style: str) -> pa.Array:
    """Return numbers as Python writes them."""
    import pyarrow.compute as pc

    if style == "plain" or style in _DATES:
        return bodies
    thousands, decimal = re.escape(style[1]) if style[1] != " " else _GAP, style[-2]
    return pc.replace_substring(pc.replace_substring_regex(bodies, thousands, ""), decimal, ".")


def _are_integers(bodies: pa.Array, style: str) -> pa.Array:
    import pyarrow.compute as pc

    return pc.match_substring_regex(_plain(bodies, style), _INTEGER)


def _are_int64(bodies: pa.Array, style: str) -> pa.Array:
    """Return which cells are integers of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = _plain(bodies, style)
    integers = pc.match_substring_regex(plain, _INTEGER)
    long = plain.filter(pc.and_(integers, pc.greater(pc.utf8_length(plain), _SAFE_DIGITS)))
    if not len(long):
        return integers
    wrong = [text for text in long.to_pylist() if not _INT64.min <= int(text) <= _INT64.max]
    return pc.and_(integers, pc.invert(pc.is_in(plain, value_set=pa.array(wrong, pa.string()))))


def _values(bodies: pa.Array, style: str, integers: bool) -> pa.Array:
    """Return the numbers or dates that cells are; null stays null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if style in _DATES:
        return pc.cast(pc.replace_substring(bodies, "/", "-"), pa.timestamp("us", _ZONES[style]))
    unsigned = pc.utf8_ltrim(_plain(bodies, style), characters="+")
    return pc.cast(unsigned, pa.int64() if integers else pa.float64())
