"""The vocabulary of one string column: its prototypes, their similarities, and where any string stands among them."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.encoding.ngrams import NGramSimilarity
from c2tc_pipeline.tables.category_counts import CategoryCounts


class Vocabulary:
    """The strings of a column that others are compared with, most frequent first, and one place for "missing".

    A missing value is a category of its own: like itself, unlike every string. When a column has more distinct strings
    than ``most``, the most frequent become prototypes; the others keep their real similarities to these.

    Parameters
    ----------
    prototypes : list of str
        The strings that others are compared with.
    ngram_range : tuple of int
        Shortest and longest n-gram.

    Examples
    --------
    >>> import pandas as pd
    >>> counts = CategoryCounts.of(pd.Series(["red", "red", "reddish", None]))
    >>> vocabulary = Vocabulary.of_counts(counts, (2, 4), most=10)
    >>> vocabulary.prototypes
    ['red', 'reddish']
    >>> vocabulary.similarities().round(2)
    array([[1.  , 0.25, 0.  ],
           [0.25, 1.  , 0.  ],
           [0.  , 0.  , 1.  ]], dtype=float32)
    """

    def __init__(self, prototypes: list[str], ngram_range: tuple[int, int]) -> None:
        self.prototypes = prototypes
        self.similarity = NGramSimilarity(prototypes, ngram_range)
        self._place = {text: index for index, text in enumerate(prototypes)}

    @classmethod
    def of_counts(cls, counts: CategoryCounts, ngram_range: tuple[int, int], most: int) -> Vocabulary:
        """Build the vocabulary of a column from the counts of its strings."""
        # Ties go by the alphabet, so that the order of rows does not matter.
        ranked = sorted(zip(-counts.rows, counts.keys, strict=True))[:most]
        return cls([key for _, key in ranked], ngram_range)

    def __len__(self) -> int:
        return len(self.prototypes) + 1

    @property
    def missing(self) -> int:
        """The place of missing values: after all prototypes."""
        return len(self.prototypes)

    def similarities(self) -> np.ndarray:
        """Return the similarities of all places to each other."""
        table = np.zeros((len(self), len(self)), dtype=np.float32)
        table[: self.missing, : self.missing] = self.similarity.to_known(self.prototypes)
        table[self.missing, self.missing] = 1
        return table

    def places(self, keys: list[str]) -> np.ndarray:
        """Return the place of each string, or -1 for strings that are not prototypes."""
        return np.array([self._place.get(key, -1) for key in keys], dtype=np.int64)

    def nearest_places(self, positions: np.ndarray, keys: list[str]) -> np.ndarray:
        """Return each row's place, with strings that are not prototypes at the most similar one."""
        places = self.places(keys)
        others = np.flatnonzero(places < 0)
        for start in range(0, len(others), 4_096):
            chunk = others[start : start + 4_096]
            places[chunk] = self.similarity.to_known([keys[i] for i in chunk]).argmax(axis=1)
        return np.append(places, self.missing)[positions]
