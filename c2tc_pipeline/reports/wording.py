"""Format numbers, shares, durations and names as short text for people."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import numpy as np
import pandas as pd

MISSING = "\N{EM DASH}"
"""Shown in place of a missing value."""
_BIDI_CONTROLS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def printable(value: Any) -> str:
    """Return a value as one line of text that XML, HTML and UTF-8 accept.

    White space is collapsed. Control characters, surrogates, noncharacters and bidirectional controls become the
    replacement character.
    """
    text = " ".join(str(value).split())
    if text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _unprintable(character) else character for character in text)


def _unprintable(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or (ord(character) & 0xFFFE) == 0xFFFE
        or unicodedata.bidirectional(character) in _BIDI_CONTROLS
    )


def shortened(value: Any, limit: int) -> str:
    """Return a value as printable text of at most ``limit`` characters."""
    text = printable(value)
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def listed(values: Any) -> str:
    """Return the distinct values, each shortened, separated by commas."""
    return ", ".join(shortened(value, 40) for value in dict.fromkeys(values))


def count(value: int) -> str:
    """Return an integer with its digits grouped: ``327,346``."""
    return f"{int(value):,}"


def counted(value: int, singular: str, plural: str) -> str:
    """Return an integer with its noun: ``1 class``, ``1,200 rows``."""
    return f"{count(value)} {singular if value == 1 else plural}"


def number(value: float | None) -> str:
    """Return a number with four significant digits: ``0.001``, ``12.35``, ``81,234``, ``2.5e-09``."""
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
    """Return a fraction as a percentage with one decimal: ``46.0 %``, and below 1 % with two digits: ``0.12 %``.

    Only 0 becomes ``0 %`` and only 1 becomes ``100 %``.
    """
    if value is None or math.isnan(value):
        return MISSING
    if value == 1:
        return "100 %"
    percent = 100 * value
    if 99.95 <= percent < 100:
        return f"{100 - float(f'{100 - percent:.2g}'):.12g} %"
    if abs(percent) >= 1:
        return f"{percent:.1f} %"
    return f"{number(float(f'{percent:.2g}'))} %"


def gap(value: float | None) -> str:
    """Return the gap between an objective and its bound as a percentage, without rounding errors."""
    return share(None if value is None else round(value, 9))


def one_in(source_rows: int, condensed_rows: int) -> str:
    """Return the number of source rows per condensed row: ``1 : 999``, ``1 : 2.5``."""
    return f"1 : {per_row(source_rows / condensed_rows)}"


def per_row(value: float) -> str:
    """Return a mean number of rows: ``1,604``, ``2.5``."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def seconds(value: float) -> str:
    """Return a duration in a suitable unit: ``42 ms``, ``12.3 s``, ``2 min 5 s``, ``2 h 3 min``, ``3 days``."""
    if value < 1:
        return f"{number(float(f'{1000 * value:.2g}'))} ms"
    if value < 119.95:
        return f"{value:.1f} s"
    whole = round(value)
    if whole >= 2 * 86_400:
        return f"{whole // 86_400} days"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def cell(value: Any, limit: int = 60) -> str:
    """Return one value of a user's table, without grouping digits: 2013 may be a year and 94103 a postcode."""
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return MISSING
    if isinstance(value, (float, np.floating)):
        real = float(value)
        return f"{real:.0f}" if 1e6 <= abs(real) < 1e15 else f"{real:.6g}"
    return shortened(value, limit)


def percentage(mean: float, deviation: float) -> str:
    """Return a score with its standard deviation, if it has one, in percent (``81.2 ± 0.4``), a dash for NaN."""
    if math.isnan(mean):
        return MISSING
    return f"{100 * mean:.1f} ± {100 * deviation:.1f}" if deviation else f"{100 * mean:.1f}"


def ratio(value: float) -> str:
    """Return a ratio as people say it: ``1 %``, ``0.1 %``, ``0.005 %``."""
    text = f"{100 * value:.10f}".rstrip("0").rstrip(".")
    return f"{text} %"
