"""A part of an encoder: some input columns in, some columns of numbers in [0, 1] out.

Parts are fitted by their own class methods, encode any rows, and give their state as JSON values and arrays, so that an
encoder can be stored without pickle.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from c2tc_pipeline.encoding.row_block import Rows


@dataclass(frozen=True)
class PartState:
    """What a part needs to be rebuilt: plain JSON values and plain arrays."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


class Part(ABC):
    """One kind of encoding, for the columns it was fitted on."""

    kind: ClassVar[str]
    columns: list[str]

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the output columns."""

    def sources(self) -> list[list[str]]:
        """Return the input columns behind each output column; all of them, where a part mixes its columns."""
        return [self.columns] * len(self.names())

    @abstractmethod
    def encode(self, frame: Rows) -> np.ndarray:
        """Return float32 of shape (rows, outputs), within [0, 1]."""

    @abstractmethod
    def state(self) -> PartState:
        """Return what :meth:`from_state` needs."""

    @classmethod
    @abstractmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        """Rebuild the part."""


def unit_scale(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Scale to [0, 1] by limits seen in training; values outside are clipped, a constant column becomes 0.

    Examples
    --------
    >>> unit_scale(np.array([[5.0, 7.0], [99.0, 7.0]]), np.array([0.0, 7.0]), np.array([10.0, 7.0]))
    array([[0.5, 0. ],
           [1. , 0. ]], dtype=float32)
    """
    span = np.where(high > low, high - low, 1.0)
    return np.clip((values - low) / span, 0, 1).astype(np.float32)
