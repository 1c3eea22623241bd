"""HCFE, the hybrid encoding of the paper (Section V-A), and our two departures from it.

The departures are parameters: ``strings="auto"`` encodes strings that are codes by their target, and
``numeric="quantile"`` scales by rank. :meth:`HybridEncoder.as_in_paper` returns the paper's own setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from c2tc_pipeline.common.defaults import STRING_ENCODINGS, check_choice
from c2tc_pipeline.common.devices import resolve_device
from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.common.seeds import RandomStateLike, seed_of
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import BinaryPart, NumericPart
from c2tc_pipeline.encoding.part import Part, check_at_least
from c2tc_pipeline.encoding.similarity import SimilarityPart
from c2tc_pipeline.encoding.strings import StringChoice, choose_string_encoding
from c2tc_pipeline.encoding.target import CrossFittedTargetPart, TargetPart, check_smoothing, untrusted_columns
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


@dataclass(eq=False, repr=False)
class HybridEncoder(TableEncoder):
    """Encode mixed columns into [0, 1]: numbers scaled, codes by target, strings by similarity or target.

    Parameters
    ----------
    strings : {"auto", "similarity", "target"}, default="auto"
        How string columns are encoded. ``"similarity"`` is the paper's: n-gram similarities, compressed by an
        autoencoder. ``"target"`` treats strings as codes. ``"auto"`` decides for each column and says why in
        ``string_choices_``.
    numeric : {"quantile", "minmax"}, default="quantile"
        Scaling of numeric columns; ``"minmax"`` is the paper's.
    ngram_range : tuple of int, default=(2, 4)
        Shortest and longest n-gram.
    latent_dim : int or None, default=None
        Width of the autoencoder's code; None is the number of string columns, as in the paper.
    hidden_dim : int, default=64
        Width of its hidden layers.
    epochs : int, default=10
        Passes of training.
    batch_size : int or None, default=None
        Distinct rows per step; None is a sixteenth of them, from 64 to 8,192.
    learning_rate : float, default=0.005
        Largest step of training.
    max_prototypes : int, default=1000
        Most strings of a column that others are compared with.
    smoothing : float or "auto", default="auto"
        Weight of the overall class shares in target encoding, in rows (lambda). ``"auto"`` is estimated for each
        column from its variance within and between categories; where chance explains most of the differences between
        categories, the column is scaled down, so that distances hardly depend on it.
    noise : float, default=0.0
        Standard deviation of the noise that :meth:`fit_transform` adds to target-encoded columns (sigma), in units of
        their range. The paper adds noise without saying how much; cluster means average it away, so it is off.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong: "numeric", "string", "code" or "drop".
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the autoencoder trains.
    cache_dir : path, optional
        Where trained weights are kept, under the hash of what determines them.
    random_state : int, Generator, RandomState or None, default=0
        Determines training, sampling and noise.

    Attributes
    ----------
    roles_ : dict of str to ColumnRole
        The role of each column, and why.
    string_choices_ : list of StringChoice
        How each string column is encoded, and why.
    parts_ : list of Part
        The fitted encodings.
    cache_hit_ : bool or None
        Whether :meth:`fit` took the weights from the cache; None when no autoencoder was needed, and after loading.
    losses_ : ndarray or None
        Reconstruction error after each epoch.
    notices_ : list of Notice
        What was done about large vocabularies and damaged caches.

    See Also
    --------
    condense : Encodes with this encoder, and condenses.
    Condenser : Condenses encoded rows.

    Notes
    -----
    Numeric columns with missing values get the median and a second column that marks them. Unseen strings keep their
    real similarities, unseen codes get the overall class shares, and missing categories are categories of their own.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"age": [25, 40, 61, 33], "job": ["nurse", "engineer", "senior engineer", "nurse"]})
    >>> encoder = HybridEncoder(random_state=0).fit(rows, ["no", "yes", "yes", "no"])
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'string_code_0']
    >>> encoder.transform(pd.DataFrame({"age": [50], "job": ["engineers"]})).shape
    (1, 2)
    """

    strings: str = "auto"
    numeric: str = "quantile"
    _: KW_ONLY
    ngram_range: tuple[int, int] = (2, 4)
    latent_dim: int | None = None
    hidden_dim: int = 64
    epochs: int = 10
    batch_size: int | None = None
    learning_rate: float = 5e-3
    max_prototypes: int = 1000
    smoothing: float | str = "auto"
    noise: float = 0.0
    roles: Mapping[str, Role | str] | None = None
    device: str = "auto"
    cache_dir: str | Path | None = None
    random_state: RandomStateLike = 0

    @classmethod
    def as_in_paper(cls, **changes: Any) -> HybridEncoder:
        """Return the encoder as the paper has it: similarity for all strings, min-max scaling, and noise.

        The amounts of noise, 0.01, and of smoothing, 10 rows, are ours: the paper names none. Class shares instead of a
        mean of class numbers, and out-of-fold encoding of training rows, are kept.

        Examples
        --------
        >>> HybridEncoder.as_in_paper(random_state=7).numeric
        'minmax'
        """
        return cls(**{"strings": "similarity", "numeric": "minmax", "smoothing": 10.0, "noise": 0.01, **changes})

    def for_training(self, statistics: TableStatistics, classes: np.ndarray | None = None) -> Self:
        """Return a copy whose :meth:`encode_rows` encodes the training rows, with ``noise`` if there is any."""
        training = super().for_training(statistics, classes)
        training.parts_ = [
            replace(part, noise=self.noise, seed=seed_of(self.random_state))
            if isinstance(part, CrossFittedTargetPart)
            else part
            for part in training.parts_
        ]
        return training

    def record(self) -> dict[str, Any]:
        """Return the choices of :meth:`fit` as JSON values, without notices about the cache."""
        return {
            "string_choices": [vars(choice) for choice in self.string_choices_],
            "notices": [notice.to_dict() for notice in self.notices_ if notice.kind != "damaged_cache"],
        }

    def restore(self, record: Mapping[str, Any]) -> None:
        """Set the attributes that :meth:`record` returned."""
        self.string_choices_ = [StringChoice(**choice) for choice in record["string_choices"]]
        self.notices_ = [Notice(**notice) for notice in record["notices"]]
        self.cache_hit_: bool | None = None
        self.losses_ = next((part.weights.losses for part in self.parts_ if isinstance(part, SimilarityPart)), None)

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_at_least(1, epochs=self.epochs, hidden_dim=self.hidden_dim, max_prototypes=self.max_prototypes)
        check_at_least(1, latent_dim=self.latent_dim, batch_size=self.batch_size)
        check_at_least(0, noise=self.noise, learning_rate=self.learning_rate)
        check_smoothing(self.smoothing)
        shortest, longest = self.ngram_range
        if not 1 <= shortest <= longest:
            raise InputError(
                f"Parameter 'ngram_range' is {shortest, longest}, but must be two lengths from 1 up, the shorter first."
            )
        self.notices_ = []
        by_role = {role: [c for c in columns if self.roles_[c].role is role] for role in Role}
        binary = [c for c in by_role[Role.CODE] if BinaryPart.fits(statistics.categories(c))]
        codes = [c for c in by_role[Role.CODE] if c not in binary]
        self.string_choices_ = self._choose_strings(statistics, by_role[Role.STRING])
        as_words = [choice.column for choice in self.string_choices_ if choice.encoding == "similarity"]
        as_codes = [choice.column for choice in self.string_choices_ if choice.encoding == "target"]
        parts: list[Part] = [
            NumericPart.fit(statistics, by_role[Role.NUMERIC], self.numeric),
            BinaryPart.fit(statistics, binary),
        ]
        if codes or as_codes:
            target = TargetPart.fit(statistics, codes + as_codes, smoothing=self.smoothing)
            parts.append(target)
            if self.smoothing == "auto":
                self.notices_ += untrusted_columns(target, statistics)
        self.cache_hit_, self.losses_ = None, None
        if as_words:
            parts.append(self._fit_similarity(statistics, as_words, progress))
        return parts

    def _choose_strings(self, statistics: TableStatistics, columns: list[str]) -> list[StringChoice]:
        check_choice("String encoding", self.strings, STRING_ENCODINGS)
        if self.strings != "auto":
            return [StringChoice(name, self.strings, "set by the user") for name in columns]
        if not statistics.is_labelled:
            return [StringChoice(name, "similarity", "no labels to choose by") for name in columns]
        limits: dict[str, Any] = {"ngram_range": self.ngram_range, "max_prototypes": self.max_prototypes}
        return [choose_string_encoding(name, statistics.categories(name), **limits) for name in columns]

    def _fit_similarity(
        self, statistics: TableStatistics, columns: list[str], progress: Progress | None
    ) -> SimilarityPart:
        for name in columns:
            if self.roles_[name].distinct > self.max_prototypes:
                message = (
                    f"has {self.roles_[name].distinct:,} distinct strings; they are compared with the "
                    f"{self.max_prototypes:,} most frequent ones (max_prototypes)"
                )
                self.notices_.append(Notice("many_strings", message, name))
        settings = AutoencoderSettings(
            latent=self.latent_dim or len(columns),
            hidden=self.hidden_dim,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            seed=seed_of(self.random_state),
        )
        part, found = SimilarityPart.fit(
            statistics,
            columns,
            ngram_range=self.ngram_range,
            max_prototypes=self.max_prototypes,
            settings=settings,
            device=resolve_device(self.device),
            cache=None if self.cache_dir is None else ContentCache(self.cache_dir),
            progress=progress,
        )
        self.cache_hit_, self.losses_ = found.hit, found.value.losses
        if found.damaged:
            message = "the cached autoencoder weights were damaged; they were trained again and replaced"
            self.notices_.append(Notice("damaged_cache", message))
        return part
