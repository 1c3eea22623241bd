"""Strings of a column: their n-gram similarity, the vocabulary they are compared with, and words against codes.

Similarities are computed between strings, never between rows: a column with K distinct values needs a K x K table, and
its rows look their vectors up in it.

Words ("HS-grad", "Married-civ-spouse") carry meaning in their letters, and similarity keeps it. Codes ("SFO", "WN") do
not: their similarities are noise, and what is known about them is in the label. A column with a large vocabulary is
judged by whether strings that look alike have similar labels, a small one by whether its values look like codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from c2tc_pipeline.encoding.target import ClassShares
from c2tc_pipeline.tables.category_counts import CategoryCounts

# Strings compared with the known ones at a time; bounds the dense block of similarities.
CHUNK_STRINGS = 4_096
# Min number of categories for measuring whether letters predict labels; below, the form of the values decides.
_MIN_MEASURABLE = 50
# Min share of the label's variance between categories that similar strings must explain.
_MIN_EXPLAINED = 0.1
_MAX_CODE_LENGTH = 4
_CODE_SHARE = 0.5


class NGramSimilarity:
    """Overlap of character n-grams with a fixed list of strings.

    The similarity of two strings is the number of n-grams they share over the number that either has (Jaccard), where
    an n-gram that occurs twice counts twice. Strings are padded with a space on both sides and compared in lower case.
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
        for start in range(0, len(strings), CHUNK_STRINGS):
            incidence, sizes = self._incidence(strings[start : start + CHUNK_STRINGS])
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
        cells = np.ones(len(columns), dtype=np.float32), np.array(columns, dtype=np.int64), edges
        shape = (len(strings), max(len(self._column_of_gram), 1))
        return sparse.csr_array(cells, shape=shape), np.array(sizes, np.float32)

    def _grams(self, text: str) -> Sequence[tuple[str, int] | str]:
        """Return a string's n-grams, numbered where one repeats: sets of these intersect as the multisets would."""
        padded = f" {text.lower()} "
        lengths = range(self.ngram_range[0], self.ngram_range[1] + 1)
        grams = [padded[start : start + n] for n in lengths for start in range(len(padded) - n + 1)]
        if not grams:
            # A string shorter than every n-gram is similar to itself only.
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


class Vocabulary:
    """The prototypes of a column, most frequent first, and one more place for "missing".

    A missing value is a category of its own: similar to itself, to no string. When a column has more distinct strings
    than ``max_prototypes``, the most frequent become prototypes; the others keep their real similarities to these.
    """

    def __init__(self, prototypes: list[str], ngram_range: tuple[int, int]) -> None:
        self.prototypes = prototypes
        self.similarity = NGramSimilarity(prototypes, ngram_range)
        self.missing = len(prototypes)
        self._place = {text: index for index, text in enumerate(prototypes)}

    @classmethod
    def of_counts(cls, counts: CategoryCounts, ngram_range: tuple[int, int], max_prototypes: int) -> Vocabulary:
        """Build the vocabulary of a column from the counts of its strings."""
        return cls(most_frequent(counts, max_prototypes), ngram_range)

    def __len__(self) -> int:
        return len(self.prototypes) + 1

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
        for start in range(0, len(others), CHUNK_STRINGS):
            chunk = others[start : start + CHUNK_STRINGS]
            places[chunk] = self.similarity.to_known([keys[i] for i in chunk]).argmax(axis=1)
        return np.append(places, self.missing)[positions]


def most_frequent(counts: CategoryCounts, limit: int) -> list[str]:
    """Return the most frequent categories; ties are broken by name, so that the order of rows does not matter."""
    return [key for _, key in sorted(zip(-counts.rows, counts.keys, strict=True))[:limit]]


@dataclass(frozen=True)
class StringChoice:
    """The encoding of a string column, "similarity" or "target", and the reason in words."""

    column: str
    encoding: str
    reason: str


def choose_string_encoding(
    name: str, counts: CategoryCounts, *, ngram_range: tuple[int, int], max_prototypes: int
) -> StringChoice:
    """Decide between similarity and target encoding for one column."""
    keys = counts.keys
    if len(keys) >= _MIN_MEASURABLE:
        explained = lexical_signal(counts, ngram_range, max_prototypes)
        if explained >= _MIN_EXPLAINED:
            return StringChoice(
                name, "similarity", f"similar strings have similar labels (explains {100 * explained:.1f} %)"
            )
        reason = f"similar strings say little about the label (explains {100 * max(explained, 0):.1f} %)"
        return StringChoice(name, "target", reason)
    codes = sum(map(looks_like_code, keys))
    if codes > _CODE_SHARE * len(keys):
        return StringChoice(name, "target", f"{codes} of {len(keys)} values look like codes")
    return StringChoice(name, "similarity", f"{len(keys) - codes} of {len(keys)} values look like words")


def looks_like_code(text: str) -> bool:
    """Return whether a string is short without lower-case letters, or mostly digits."""
    letters = [letter for letter in text if not letter.isspace()]
    if not letters:
        return False
    mostly_digits = sum(letter.isdigit() for letter in letters) > len(letters) / 2
    return mostly_digits or (len(letters) <= _MAX_CODE_LENGTH and not any(letter.islower() for letter in letters))


def lexical_signal(counts: CategoryCounts, ngram_range: tuple[int, int], max_prototypes: int) -> float:
    """Return the share of the label's variance between categories that similar strings explain; may be negative.

    The class shares of a category are predicted by those of all others, weighted by squared similarity and rows.
    """
    frequent = np.argsort(-counts.rows, kind="stable")[:max_prototypes]
    # A few rows of smoothing keep categories that occur once from being all noise.
    cells = counts.by_class()[frequent]
    shares = ClassShares(cells, np.asarray(cells.sum(axis=0)) / cells.sum())
    means = shares.means(np.eye(cells.shape[1]), 5.0) + shares.overall
    rows = counts.rows[frequent].astype(np.float64)
    alike = Vocabulary([counts.keys[i] for i in frequent], ngram_range).similarities()[:-1, :-1].astype(np.float64) ** 2
    np.fill_diagonal(alike, 0)
    alike *= rows
    overall = (rows @ means) / rows.sum()
    # Every prediction includes the overall shares by a small weight, which is all a string without similar ones has.
    prior = 1e-3 * rows.sum() / len(rows)
    predicted = (alike @ means + prior * overall) / (alike.sum(axis=1, keepdims=True) + prior)
    unexplained = float(rows @ ((means - predicted) ** 2).sum(axis=1))
    variance = float(rows @ ((means - overall) ** 2).sum(axis=1))
    return 1 - unexplained / variance if variance > 0 else 0.0
