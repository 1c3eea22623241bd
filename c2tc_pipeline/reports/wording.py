"""Numbers and names as people read them: the one place that rounds, groups digits and shortens.

What belongs here: value in, short text out. What does not: markup; see ``markup.py``.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import numpy as np
import pandas as pd

MISSING = "\N{EM DASH}"
"""What stands where there is no value."""
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def printable(value: Any) -> str:
    """Return a value as one line of text that XML, HTML and UTF-8 all accept.

    Parameters
    ----------
    value : object
        A class value, a column name, a sentence.

    Returns
    -------
    str
        The text with white space collapsed, and with the replacement character for each character that cannot
        be stored (control characters, halves of surrogate pairs, code points that are no characters) or that
        would turn the text around it to run the other way.

    Examples
    --------
    >>> printable("two\\n lines\\x00")
    'two lines\\ufffd'
    """
    text = " ".join(str(value).split())
    return "".join("\N{REPLACEMENT CHARACTER}" if _unprintable(character) else character for character in text)


def _unprintable(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or (ord(character) & 0xFFFE) == 0xFFFE
        or unicodedata.bidirectional(character) in _TURNING
    )


def shortened(value: Any, limit: int) -> str:
    """Return a value as printable text of at most ``limit`` characters.

    Examples
    --------
    >>> shortened("a_very_long_name", 8)
    'a_very_…'
    """
    text = printable(value)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def count(value: int) -> str:
    """Return a whole number with its digits grouped.

    Examples
    --------
    >>> count(336776)
    '336,776'
    """
    return f"{int(value):,}"


def counted(value: int, singular: str, plural: str) -> str:
    """Return a whole number with its noun.

    Examples
    --------
    >>> counted(1, "class", "classes"), counted(1200, "row", "rows")
    ('1 class', '1,200 rows')
    """
    return f"{count(value)} {singular if value == 1 else plural}"


def number(value: float | None) -> str:
    """Return a measured number with four significant digits, as few as needed.

    Examples
    --------
    >>> [number(x) for x in (0.001, 12.3456, 81234.5, 2.5e-9, 3e15, None)]
    ['0.001', '12.35', '81,234', '2.5e-09', '3e+15', '—']
    """
    if value is None or math.isnan(value):
        return MISSING
    if value and not 1e-4 <= abs(value) < 1e12:
        return f"{value:.4g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    decimals = 3 - math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def share(value: float | None) -> str:
    """Return a share of one as a percentage that rounds nothing to none or to all.

    Examples
    --------
    >>> [share(x) for x in (0.4312, 0.00042, 0.0, 1.0, 0.99996, None)]
    ['43.1 %', '0.042 %', '0 %', '100 %', '99.996 %', '—']
    """
    if value is None or math.isnan(value):
        return MISSING
    percent = 100 * value
    if 99.95 <= percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.12g} %"
    if abs(percent) >= 1:
        return f"{percent:.1f}".removesuffix(".0") + " %"
    return f"{number(float(f'{percent:.2g}'))} %"


def one_in(source_rows: int, condensed_rows: int) -> str:
    """Return how many source rows there are to one condensed row.

    Examples
    --------
    >>> one_in(336776, 337), one_in(5, 2), one_in(7, 7)
    ('1 : 999', '1 : 2.5', '1 : 1')
    """
    factor = source_rows / condensed_rows
    return f"1 : {factor:,.0f}" if factor >= 10 else "1 : " + f"{factor:.1f}".removesuffix(".0")


def seconds(value: float) -> str:
    """Return a duration in the units that suit its length.

    Examples
    --------
    >>> [seconds(x) for x in (0.0004, 0.042, 1.5, 12.34, 119.96, 125, 7384)]
    ['0.4 ms', '42 ms', '1.5 s', '12.3 s', '2 min 0 s', '2 min 5 s', '2 h 3 min']
    """
    if value < 1:
        return f"{number(float(f'{1000 * value:.2g}'))} ms"
    if value < 119.95:
        return f"{value:.1f} s"
    whole = round(value)
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def cell(value: Any, limit: int = 60) -> str:
    """Return one value of a user's table, without grouping digits: 2013 may be a year and 94103 a postcode.

    Examples
    --------
    >>> cell(2013), cell(0.1234567), cell(1234567.8), cell("SFO"), cell(None)
    ('2013', '0.123457', '1234568', 'SFO', '—')
    """
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    if isinstance(value, (float, np.floating)):
        real = float(value)
        return f"{real:.0f}" if 1e6 <= abs(real) < 1e15 else f"{real:.6g}"
    return shortened(value, limit)


def percentage(mean: float, deviation: float) -> str:
    """Word a score with its standard deviation, in percent.

    Examples
    --------
    >>> percentage(0.8123, 0.0044)
    '81.2 ± 0.4'
    """
    return f"{100 * mean:.1f} ± {100 * deviation:.1f}"


def ratio(value: float) -> str:
    """Word a ratio as it is written in a catalogue.

    Examples
    --------
    >>> ratio(0.001), ratio(0.00005)
    ('0.001', '0.00005')
    """
    return f"{value:.12f}".rstrip("0").rstrip(".")
