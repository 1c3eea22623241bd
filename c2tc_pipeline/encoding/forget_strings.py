"""Taking strings out of a fitted encoder that no remaining row has, where nobody else's code depends on them.

A category encoded by its target can go: without it the value counts as unseen, and all others stay what they are. A
string that others are compared with can go only if it resembles none of the strings that remain, because their codes
are made of their similarities to it. Values that are numbered among each other stay, and are counted. Scales, class
shares and network weights stay as they were learnt.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.binary import BinaryPart
from c2tc_pipeline.encoding.label import LabelPart
from c2tc_pipeline.encoding.onehot import OneHotPart
from c2tc_pipeline.encoding.part import Part
from c2tc_pipeline.encoding.row_block import as_role
from c2tc_pipeline.encoding.similarity import SimilarityPart
from c2tc_pipeline.encoding.target import TargetPart
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.tables.categories import factorise


@dataclass(frozen=True)
class TrimmedEncoder:
    """An encoder without strings that no row has any more.

    Parameters
    ----------
    encoder : TableEncoder
        It encodes the remaining rows as the one before did.
    removed : int
        Strings that are gone.
    kept : int
        Strings that no remaining row has, but that the codes of others depend on.
    """

    encoder: TableEncoder
    removed: int
    kept: int


def without_unused_strings(encoder: TableEncoder, rows: Mapping[str, pd.Series[Any]]) -> TrimmedEncoder:
    """Return an encoder that holds no string which only forgotten rows had, as far as others' codes allow.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted; not changed.
    rows : DataFrame or mapping of str to Series
        The values that remain in each column that it encodes.

    Examples
    --------
    >>> from c2tc_pipeline.encoding.hybrid import HybridEncoder
    >>> rows = pd.DataFrame({"port": ["SFO", "LAX", "JFK", "SFO"]})
    >>> encoder = HybridEncoder(strings="target").fit(rows, [0, 1, 1, 0])
    >>> trimmed = without_unused_strings(encoder, rows.iloc[:2])
    >>> trimmed.removed, trimmed.encoder.parts_[0].keys
    (1, [['SFO', 'LAX']])
    """
    parts: list[Part] = []
    removed = kept = 0
    for part in encoder.parts_:
        if isinstance(part, TargetPart | SimilarityPart):
            typed = {name: as_role(rows[name], encoder.roles_[name].role) for name in part.columns}
            trim = _trimmed_target if isinstance(part, TargetPart) else _trimmed_similarity
            part, gone, left = trim(part, typed)  # type: ignore[arg-type]
            removed, kept = removed + gone, kept + left
        elif isinstance(part, BinaryPart | LabelPart | OneHotPart):
            kept += _unused(part, encoder, rows)
        parts.append(part)
    trimmed = copy.copy(encoder)
    trimmed.parts_ = parts
    return TrimmedEncoder(trimmed, removed, kept)


def _unused(
    part: BinaryPart | LabelPart | OneHotPart, encoder: TableEncoder, rows: Mapping[str, pd.Series[Any]]
) -> int:
    """Count the values that no remaining row has where the numbers of all others depend on them."""
    lists = part.values if isinstance(part, BinaryPart) else part.keys
    present = [factorise(as_role(rows[name], encoder.roles_[name].role))[1] for name in part.columns]
    return sum(len(set(known) - set(found)) for known, found in zip(lists, present, strict=True))


def _trimmed_target(part: TargetPart, rows: Mapping[str, pd.Series[Any]]) -> tuple[Part, int, int]:
    keys, tables, removed = [], [], 0
    for name, known, table in zip(part.columns, part.keys, part.tables, strict=True):
        present = set(factorise(rows[name])[1])
        places = [place for place, key in enumerate(known) if key in present]
        removed += len(known) - len(places)
        keys.append([known[place] for place in places])
        # The last two rows are for missing and for unseen values.
        tables.append(table[[*places, len(known), len(known) + 1]])
    return TargetPart(part.columns, keys, tables, part.suffixes), removed, 0


def _trimmed_similarity(part: SimilarityPart, rows: Mapping[str, pd.Series[Any]]) -> tuple[Part, int, int]:
    vocabularies, layers, removed, kept = [], [], 0, 0
    start = 0
    for name, vocabulary in zip(part.columns, part.vocabularies, strict=True):
        present = factorise(rows[name])[1]
        unused = np.flatnonzero(~np.isin(vocabulary.prototypes, present)) if vocabulary.prototypes else np.empty(0, int)
        alone = _unlike(vocabulary, unused, present)
        removed, kept = removed + len(alone), kept + len(unused) - len(alone)
        places = np.setdiff1d(np.arange(len(vocabulary)), alone)
        prototypes = [vocabulary.prototypes[place] for place in places[:-1]]
        vocabularies.append(Vocabulary(prototypes, vocabulary.similarity.ngram_range))
        layers.append(part.weights.w_in[start + places])
        start += len(vocabulary)
    if not removed:
        return part, 0, kept
    weights = dataclasses.replace(part.weights, w_in=np.concatenate(layers))
    return SimilarityPart(part.columns, vocabularies, weights, part.low, part.high), removed, kept


def _unlike(vocabulary: Vocabulary, unused: np.ndarray, present: list[str]) -> np.ndarray:
    """Return which of the unused prototypes share no n-gram with a string that is still there."""
    nearest = np.zeros(len(unused), dtype=np.float32)
    for start in range(0, len(present), 4_096):
        similar = vocabulary.similarity.to_known(present[start : start + 4_096])[:, unused]
        nearest = np.maximum(nearest, similar.max(axis=0))
    return unused[nearest == 0]
