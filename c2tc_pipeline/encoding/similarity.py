"""String columns through similarities and the autoencoder: the string half of HCFE."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save

from c2tc_pipeline.common.processes import one_blas_thread
from c2tc_pipeline.encoding import AUTOENCODER_VERSION
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings, TrainedAutoencoder, distinct_rows, train_autoencoder
from c2tc_pipeline.encoding.part import Part, PartState, unit_scale
from c2tc_pipeline.encoding.strings import CHUNK_STRINGS, Vocabulary
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.manifest import hash_array, hash_json
from c2tc_pipeline.tables.kinds import factorise
from c2tc_pipeline.tables.statistics import TableStatistics

# Longer n-grams than any string of a table has would only cost time.
_MAX_NGRAM = 1_000


@dataclass(eq=False)
class SimilarityPart(Part):
    """String columns as the code of an autoencoder over their n-gram similarities.

    An unseen string gets its real similarities to the known ones; a missing value is a category of its own.
    """

    kind = "similarity"

    columns: list[str]
    vocabularies: list[Vocabulary]
    weights: TrainedAutoencoder
    low: np.ndarray
    high: np.ndarray

    def __post_init__(self) -> None:
        edges = np.cumsum([0, *map(len, self.vocabularies)])
        self._layers = [self.weights.w_in[a:b] for a, b in itertools.pairwise(edges)]
        # The contribution of every known category to the first layer, so that encoding is one look-up per cell.
        with one_blas_thread():
            self._known = [v.similarities() @ layer for v, layer in zip(self.vocabularies, self._layers, strict=True)]

    @classmethod
    def fit(
        cls,
        statistics: TableStatistics,
        columns: Sequence[str],
        *,
        ngram_range: tuple[int, int],
        max_prototypes: int,
        settings: AutoencoderSettings,
        device: str,
        cache: ContentCache | None,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[SimilarityPart, CacheLookup[TrainedAutoencoder]]:
        """Learn vocabularies and train the autoencoder on the sample, or fetch its weights from the cache."""
        vocabularies, places = [], []
        for name in columns:
            vocabularies.append(Vocabulary.of_counts(statistics.categories(name), ngram_range, max_prototypes))
            places.append(vocabularies[-1].nearest_places(*factorise(statistics.sample[name])))
        tables = [vocabulary.similarities() for vocabulary in vocabularies]
        rows = np.stack(places, axis=1)

        def compute() -> TrainedAutoencoder:
            return train_autoencoder(tables, rows, settings, device=device, progress=progress)

        if cache is None:
            found = CacheLookup(compute(), hit=False)
        else:
            hashes = [hash_array(array) for array in (*tables, rows)]
            key = hash_json([AUTOENCODER_VERSION, device, list(astuple(settings)), hashes])
            found = cache.fetch("autoencoder", key, compute=compute, write=_write_weights, read=_read_weights)
        width = settings.latent
        part = cls(list(columns), vocabularies, found.value, np.zeros(width), np.ones(width))
        part._learn_limits(rows[distinct_rows(rows)[0]])
        return part, found

    def _learn_limits(self, rows: np.ndarray) -> None:
        hidden = sum(known[places] for known, places in zip(self._known, rows.T, strict=True))
        code = self._code(np.asarray(hidden))
        self.low, self.high = code.min(axis=0), code.max(axis=0)

    def _code(self, hidden: np.ndarray) -> np.ndarray:
        return np.maximum(hidden + self.weights.b_in, 0) @ self.weights.w_code + self.weights.b_code

    def names(self) -> list[str]:
        return [f"string_code_{index}" for index in range(len(self.low))]

    def sources(self) -> list[list[str]]:
        return [self.columns] * len(self.low)

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        hidden = np.zeros((len(frame), self.weights.w_in.shape[1]), dtype=np.float32)
        for name, vocabulary, known, layer in zip(
            self.columns, self.vocabularies, self._known, self._layers, strict=True
        ):
            positions, keys = factorise(frame[name])
            places = vocabulary.places(keys)
            table = np.vstack([known[places], known[vocabulary.missing]])
            unseen = np.flatnonzero(places < 0)
            for start in range(0, len(unseen), CHUNK_STRINGS):
                chunk = unseen[start : start + CHUNK_STRINGS]
                similarities = vocabulary.similarity.to_known([keys[i] for i in chunk])
                table[chunk] = similarities @ layer[: vocabulary.missing]
            hidden += table[positions]
        return unit_scale(self._code(hidden), self.low, self.high)

    def state(self) -> PartState:
        values = {
            "columns": self.columns,
            "prototypes": [vocabulary.prototypes for vocabulary in self.vocabularies],
            "ngram_range": list(self.vocabularies[0].similarity.ngram_range),
        }
        return PartState(values, {**self.weights.to_arrays(), "low": self.low, "high": self.high})

    @classmethod
    def from_state(cls, state: PartState) -> Self:
        columns = state.texts("columns")
        prototypes = state.text_lists("prototypes", len(columns))
        shortest, longest = state.integers("ngram_range", 2)
        if not 1 <= shortest <= longest <= _MAX_NGRAM:
            raise ValueError("n-gram lengths out of range")
        weights = TrainedAutoencoder.from_state(state)
        inputs, (_, outputs) = sum(len(known) + 1 for known in prototypes), weights.w_code.shape
        if len(weights.w_in) != inputs:
            raise ValueError("weights of other strings")
        low, high = state.array("low", outputs), state.array("high", outputs)
        return cls(columns, [Vocabulary(known, (shortest, longest)) for known in prototypes], weights, low, high)

    def without_unused(self, present: Sequence[list[str]]) -> tuple[Part, int, int]:
        """Remove unused prototypes that share no n-gram with a remaining string, whose codes depend on all others."""
        vocabularies, layers, removed, kept = [], [], 0, 0
        for vocabulary, layer, here in zip(self.vocabularies, self._layers, present, strict=True):
            unused = np.flatnonzero(~pd.Index(vocabulary.prototypes).isin(here))
            nearest = np.zeros(len(unused), dtype=np.float32)
            for start in range(0, len(here), CHUNK_STRINGS):
                similar = vocabulary.similarity.to_known(here[start : start + CHUNK_STRINGS])[:, unused]
                nearest = np.maximum(nearest, similar.max(axis=0))
            removable = unused[nearest == 0]
            removed, kept = removed + len(removable), kept + len(unused) - len(removable)
            places = np.setdiff1d(np.arange(len(vocabulary)), removable)
            prototypes = [vocabulary.prototypes[place] for place in places[:-1]]
            vocabularies.append(Vocabulary(prototypes, vocabulary.similarity.ngram_range))
            layers.append(layer[places])
        if not removed:
            return self, 0, kept
        weights = replace(self.weights, w_in=np.concatenate(layers))
        return SimilarityPart(self.columns, vocabularies, weights, self.low, self.high), removed, kept


def _write_weights(weights: TrainedAutoencoder, directory: Path) -> None:
    (directory / "weights.safetensors").write_bytes(save(weights.to_arrays()))


def _read_weights(directory: Path) -> TrainedAutoencoder:
    return TrainedAutoencoder.from_state(PartState({}, load_file(directory / "weights.safetensors")))
