"""How wide words are, nearly: enough to leave room for them, whatever font the browser has."""

from __future__ import annotations

import unicodedata

# Shares of the letters' size in DejaVu Sans, which is wider than most fonts.
_NARROW = frozenset("iljI|!.,:;'`()[]{}frt -/\\")
_WIDE = frozenset("mwMW@%…—#&")


def words_width(text: str, size: float = 12.0) -> float:
    """Return the width of a line of text in points, rather too much than too little.

    Examples
    --------
    >>> round(words_width("a class", 10)), words_width("類別", 10)
    (40, 20.0)
    """
    return size * sum(_letter_width(letter) for letter in text)


def _letter_width(letter: str) -> float:
    if letter in _NARROW:
        return 0.41
    if letter in _WIDE or unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if unicodedata.combining(letter):
        return 0.0
    return 0.76 if letter.isupper() else 0.645
