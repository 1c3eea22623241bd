"""Column spaces: a table's split, encoded one way or another, as arrays that methods and models share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation.steps import fit_encoder
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.onehot import OneHotPcaEncoder
from c2tc_pipeline.encoding.target import TargetEncoder
from c2tc_pipeline.evaluation.trial import LabelledRows, class_codes
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.tables.kinds import plain
from c2tc_pipeline.tables.preparation import prepare_table
from c2tc_pipeline.tables.validated import ValidatedTable

EncoderFactory = Callable[[int, "Path | None"], TableEncoder]

SPACES: dict[str, EncoderFactory] = {
    "hcfe": lambda seed, cache: HybridEncoder(random_state=seed, cache_dir=cache),
    "hcfe_paper": lambda seed, cache: HybridEncoder("similarity", "minmax", random_state=seed, cache_dir=cache),
    "hcfe_minmax": lambda seed, cache: HybridEncoder(numeric="minmax", random_state=seed, cache_dir=cache),
    "label": lambda seed, cache: LabelEncoder(random_state=seed),
    "onehot_pca": lambda seed, cache: OneHotPcaEncoder(random_state=seed),
    "target": lambda seed, cache: TargetEncoder(random_state=seed),
}
"""Encoders by the names of their spaces: ours as it is by default, as the paper describes it, with the paper's scaling
of numbers, and the three it is compared with."""


@dataclass(frozen=True)
class EncodedSplit:
    """The three parts of a table in one column space.

    Parameters
    ----------
    train, validation, test : LabelledRows
        Encoded rows; a class that training rows lack has the number after the last.
    classes : int
        Classes that training rows have.
    """

    train: LabelledRows
    validation: LabelledRows
    test: LabelledRows
    classes: int

    @cached_property
    def known_validation(self) -> LabelledRows:
        """Validation rows of classes that training rows have."""
        kept = self.validation.codes < self.classes
        return LabelledRows(self.validation.X[kept], self.validation.codes[kept])

    @cached_property
    def seen(self) -> str:
        """The hash of all that a method may see: no test row is part of it."""
        return hash_json([self.train.digest, self.validation.digest, self.classes])


def encode_split(
    validated: ValidatedTable,
    space: str,
    *,
    seed: int,
    cache_dir: Path | None = None,
    train: pd.DataFrame | None = None,
) -> EncodedSplit:
    """Fit the encoder of a space to the training rows and encode all three parts.

    Parameters
    ----------
    validated : ValidatedTable
        The table and its split.
    space : str
        One of :data:`SPACES`.
    seed : int
        The encoder's ``random_state``.
    cache_dir : path, optional
        Where autoencoder weights are kept.
    train : DataFrame, optional
        Training rows instead of those of the split, as they were read.

    Examples
    --------
    >>> from c2tc_pipeline.tables.spec import TableSpec
    >>> from c2tc_pipeline.tables.validated import validate_table
    >>> frame = pd.DataFrame({"x": np.arange(100.0) % 60, "y": ["a", "b"] * 50})
    >>> split = encode_split(validate_table(frame, TableSpec(name="t", source="t", label="y")), "hcfe", seed=0)
    >>> split.train.X.shape, len(split.test), split.classes
    ((80, 1), 10, 2)
    """
    prepared = validated.prepared()
    if train is not None:
        prepared = prepare_table(train, label=validated.label, decided=validated.roles)
    encoder = SPACES[space](seed, cache_dir)
    fit_encoder(encoder, prepared)
    classes = np.unique(plain(prepared.y).to_numpy())
    parts = {"train": prepared, "validation": validated.prepared("validation"), "test": validated.prepared("test")}
    encoded = {
        side: LabelledRows(
            np.ascontiguousarray(encoder.encode_rows(part.X), dtype=np.float32),
            class_codes(plain(part.y).to_numpy(), classes),
        )
        for side, part in parts.items()
    }
    return EncodedSplit(**encoded, classes=len(classes))
