"""Codes with two values keep {0, 1} (binary pass-through)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from c2tc_pipeline.encoding.categories import MISSING, factorise, natural_order
from c2tc_pipeline.encoding.part import Part, PartState


class BinaryPart(Part):
    """Two-valued columns as 0 and 1, the smaller value first; anything else becomes the training mean.

    Examples
    --------
    >>> part = BinaryPart.fit(pd.DataFrame({"sex": [1, 2, 2, 2]}), ["sex"])
    >>> part.encode(pd.DataFrame({"sex": [1, 2, 9]})).ravel()
    array([0.  , 1.  , 0.75], dtype=float32)
    """

    kind = "binary"

    def __init__(self, columns: list[str], values: list[list[str]], means: list[float]) -> None:
        self.columns = columns
        self.values = values
        self.means = means

    @classmethod
    def fit(cls, frame: pd.DataFrame, columns: Sequence[str]) -> BinaryPart:
        """Learn which two values each column has."""
        part = cls(list(columns), [], [])
        for name in part.columns:
            positions, keys = factorise(frame[name])
            ordered = sorted(keys, key=natural_order)
            part.values.append(ordered)
            part.means.append(float(np.array([ordered.index(key) for key in keys])[positions].mean()))
        return part

    @staticmethod
    def fits(positions: np.ndarray, keys: list[str]) -> bool:
        """Return whether a factorised column has two values and no gaps."""
        return len(keys) <= 2 and not (positions == MISSING).any()

    def names(self) -> list[str]:
        return list(self.columns)

    def sources(self) -> list[list[str]]:
        return [[name] for name in self.columns]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        out = np.empty((len(frame), len(self.columns)), dtype=np.float32)
        for index, (name, values, mean) in enumerate(zip(self.columns, self.values, self.means, strict=True)):
            positions, keys = factorise(frame[name])
            known = {value: float(place) for place, value in enumerate(values)}
            out[:, index] = np.array([*(known.get(key, mean) for key in keys), mean], dtype=np.float32)[positions]
        return out

    def state(self) -> PartState:
        return PartState({"columns": self.columns, "values": self.values, "means": self.means})

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        return cls(list(values["columns"]), list(values["values"]), list(values["means"]))
