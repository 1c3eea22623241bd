"""Words or codes: which encoding suits a string column.

Words ("HS-grad", "Married-civ-spouse") carry meaning in their letters, and similarity keeps it. Codes ("SFO", "WN") do
not: their similarities are noise, and what is known about them is in the label. Two questions decide, both about the
column itself:

1. Do the values look like codes: few characters, no lower-case letters, or mostly digits?
2. In a large vocabulary, do strings that look alike have like labels? This is measured: the class shares of each
   category are predicted from those of similar categories, itself left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from c2tc_pipeline.encoding.target import smoothed_means
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.tables.category_counts import CategoryCounts

# From this many categories on, whether letters predict labels can be measured; below, the shape of the values decides.
_MEASURABLE = 50
# Share of the label's variance between categories that similar strings must explain.
_LEAST_EXPLAINED = 0.1
_CODE_LENGTH = 4
_CODE_SHARE = 0.5


@dataclass(frozen=True)
class StringChoice:
    """How a string column is encoded, and why.

    Parameters
    ----------
    column : str
        The column.
    encoding : {"similarity", "target"}
        The choice.
    reason : str
        For people.
    """

    column: str
    encoding: str
    reason: str


def choose_string_encoding(
    name: str, counts: CategoryCounts, *, ngram_range: tuple[int, int], max_prototypes: int
) -> StringChoice:
    """Decide between similarity and target encoding for one column.

    Parameters
    ----------
    name : str
        The column.
    counts : CategoryCounts
        Its strings, and how often each occurs in each class.
    ngram_range : tuple of int
        Shortest and longest n-gram.
    max_prototypes : int
        Most strings that are looked at.

    Examples
    --------
    >>> import pandas as pd
    >>> for values in (["Husband", "Wife"] * 2, ["SFO", "LAX"] * 2):
    ...     counts = CategoryCounts.of(pd.Series(values), np.array([0, 1, 0, 1]))
    ...     print(choose_string_encoding("c", counts, ngram_range=(2, 4), max_prototypes=99).encoding)
    similarity
    target
    """
    keys = counts.keys
    share = float(np.mean([looks_like_code(key) for key in keys])) if keys else 0.0
    if len(keys) >= _MEASURABLE:
        explained = lexical_signal(counts, ngram_range, max_prototypes)
        if explained >= _LEAST_EXPLAINED:
            return StringChoice(name, "similarity", f"similar strings have similar labels (explains {explained:.0%})")
        return StringChoice(
            name, "target", f"similar strings say little about the label (explains {max(explained, 0):.0%})"
        )
    if share > _CODE_SHARE:
        return StringChoice(name, "target", f"{share:.0%} of {len(keys)} values look like codes")
    return StringChoice(name, "similarity", f"{1 - share:.0%} of {len(keys)} values look like words")


def looks_like_code(text: str) -> bool:
    """Return whether a string is short without lower-case letters, or mostly digits.

    Examples
    --------
    >>> [looks_like_code(text) for text in ("SFO", "250.83", "WN", "Male", "No", "UNITED STATES", "[70-80)")]
    [True, True, True, False, False, False, True]
    """
    signs = [sign for sign in text if not sign.isspace()]
    if not signs:
        return False
    mostly_digits = sum(sign.isdigit() for sign in signs) > len(signs) / 2
    short = len(signs) <= _CODE_LENGTH and not any(sign.islower() for sign in signs)
    return mostly_digits or short


def lexical_signal(counts: CategoryCounts, ngram_range: tuple[int, int], max_prototypes: int) -> float:
    """Return the share of the label's variance between categories that similar strings explain; may be negative.

    The class shares of a category are predicted by those of all others, weighted by squared similarity and rows.
    """
    frequent = np.argsort(-counts.rows, kind="stable")[:max_prototypes]
    # A few rows of smoothing keep categories that occur once from being all noise.
    means = smoothed_means(counts.table[frequent], np.eye(counts.table.shape[1]), 5.0)
    rows = counts.rows[frequent].astype(np.float64)
    alike = Vocabulary([counts.keys[i] for i in frequent], ngram_range).similarities()[:-1, :-1].astype(np.float64) ** 2
    np.fill_diagonal(alike, 0)
    alike *= rows
    overall = (rows @ means) / rows.sum()
    # Every prediction leans on the overall shares by a small weight, which is all a string without relatives has.
    lean = 1e-3 * rows.sum() / len(rows)
    predicted = (alike @ means + lean * overall) / (alike.sum(axis=1, keepdims=True) + lean)
    left = float(rows @ ((means - predicted) ** 2).sum(axis=1))
    spread = float(rows @ ((means - overall) ** 2).sum(axis=1))
    return 1 - left / spread if spread > 0 else 0.0
