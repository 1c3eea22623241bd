"""N-gram similarity of strings (similarity encoding, Section V-A of the paper).

Only similarities between strings are computed here, never between rows: a column with K distinct values needs a K x K
table, and its rows look their vectors up in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

# Strings compared at once against the known ones; bounds the dense block of similarities.
_CHUNK_STRINGS = 4_096


class NGramSimilarity:
    """Overlap of character n-grams with a fixed list of strings.

    The similarity of two strings is the number of n-grams they share over the number that either has (Jaccard), where
    an n-gram that occurs twice counts twice. Strings are padded with a space on both sides and compared in lower case.

    Parameters
    ----------
    known : sequence of str
        The strings that others are compared with.
    ngram_range : tuple of int, default=(2, 4)
        Shortest and longest n-gram.

    Examples
    --------
    >>> similarity = NGramSimilarity(["engineer", "doctor"])
    >>> similarity.to_known(["engineer", "senior engineer"]).round(2)
    array([[1.  , 0.02],
           [0.53, 0.05]], dtype=float32)
    """

    def __init__(self, known: Sequence[str], ngram_range: tuple[int, int] = (2, 4)) -> None:
        self.ngram_range = ngram_range
        self._column_of_gram: dict[tuple[str, int] | str, int] = {}
        for text in known:
            for gram in self._grams(text):
                self._column_of_gram.setdefault(gram, len(self._column_of_gram))
        self._known, self._known_sizes = self._incidence(known)

    def to_known(self, strings: Sequence[str]) -> np.ndarray:
        """Return the similarity of each string to each known one, as float32 of shape (len(strings), len(known))."""
        out = np.empty((len(strings), len(self._known_sizes)), dtype=np.float32)
        for start in range(0, len(strings), _CHUNK_STRINGS):
            incidence, sizes = self._incidence(strings[start : start + _CHUNK_STRINGS])
            shared = (incidence @ self._known.T).toarray()
            either = sizes[:, None] + self._known_sizes[None, :]
            either -= shared
            np.divide(shared, either, out=out[start : start + len(sizes)])
        return out

    def _incidence(self, strings: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray]:
        """Return which known n-grams each string has, and how many n-grams it has in all."""
        columns: list[int] = []
        edges, sizes = [0], []
        for text in strings:
            grams = self._grams(text)
            columns.extend(self._column_of_gram[gram] for gram in grams if gram in self._column_of_gram)
            edges.append(len(columns))
            sizes.append(len(grams))
        shape = (len(strings), max(len(self._column_of_gram), 1))
        data = np.ones(len(columns), dtype=np.float32)
        return sparse.csr_array((data, np.array(columns, dtype=np.int64), edges), shape=shape), np.array(
            sizes, np.float32
        )

    def _grams(self, text: str) -> Sequence[tuple[str, int] | str]:
        """Return a string's n-grams, numbered where one repeats: sets of these intersect as the multisets would."""
        padded = f" {text.lower()} "
        lengths = range(self.ngram_range[0], self.ngram_range[1] + 1)
        grams = [padded[start : start + n] for n in lengths for start in range(len(padded) - n + 1)]
        if not grams:
            # A string shorter than every n-gram is like itself only.
            return [padded]
        if len(set(grams)) == len(grams):
            return grams
        seen: dict[str, int] = {}
        numbered: list[tuple[str, int] | str] = []
        for gram in grams:
            before = seen.get(gram, 0)
            numbered.append((gram, before) if before else gram)
            seen[gram] = before + 1
        return numbered
