"""The helpful half of "no such column": what the reader of the message may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LISTED_AT_MOST = 10


def closest(name: str, known: Iterable[str]) -> str:
    """Say which known names are close to a wrong one, or list them when none is.

    Parameters
    ----------
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.

    Returns
    -------
    str
        A clause that ends a sentence, without the full stop.

    Examples
    --------
    >>> closest("incom", ["age", "income"])
    "did you mean 'income'"
    >>> closest("zzz", ["age", "income"])
    "choose one of: 'age', 'income'"
    """
    names = list(known)
    by_folded = {candidate.casefold().strip(): candidate for candidate in reversed(names)}
    close = difflib.get_close_matches(name.casefold().strip(), list(by_folded), n=3, cutoff=0.7)
    if close:
        return "did you mean " + " or ".join(repr(by_folded[folded]) for folded in close)
    if not names:
        return "there are none"
    listed = ", ".join(repr(candidate) for candidate in names[:_LISTED_AT_MOST])
    more = len(names) - _LISTED_AT_MOST
    return f"choose one of: {listed}" + (f" and {more} more" if more > 0 else "")
