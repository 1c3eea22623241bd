"""A part of an encoder: some input columns in, some columns of numbers in [0, 1] out.

Parts are fitted by their own class methods, encode any rows, and give their state as JSON values and arrays, so that an
encoder can be stored without pickle. A subclass is known to :func:`~c2tc_pipeline.encoding.storage.load_encoder` by its
``kind``. Also here: checks of parameters and of stored state, which may have been written by anyone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.kinds import factorise, to_codes, to_numbers, to_text
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics, refuse_infinities, row_named


@dataclass(frozen=True)
class PartState:
    """State from which a part is rebuilt: JSON values and arrays.

    The methods return entries by name, or raise ValueError where they are of another form.
    """

    values: Mapping[str, Any]
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)

    def texts(self, name: str) -> list[str]:
        """Return a list of distinct strings."""
        return checked_texts(self.values[name])

    def text_lists(self, name: str, count: int) -> list[list[str]]:
        """Return that many lists of distinct strings."""
        return [checked_texts(inner) for inner in self._list(name, count, list)]

    def integers(self, name: str, count: int) -> list[int]:
        """Return that many integers."""
        return self._list(name, count, int)

    def numbers(self, name: str, count: int) -> list[float]:
        """Return that many numbers."""
        return [float(number) for number in self._list(name, count, int, float)]

    def flags(self, name: str, count: int) -> list[bool]:
        """Return that many booleans."""
        return self._list(name, count, bool)

    def array(self, name: str, *shape: int | None) -> np.ndarray:
        """Return an array of real numbers; None in the shape stands for any length but 0."""
        found = self.arrays[name]
        lengths = zip(found.shape, shape, strict=False)
        fits = found.ndim == len(shape) and all(n == wanted if wanted is not None else n > 0 for n, wanted in lengths)
        if not fits or found.dtype.kind not in "fiu":
            raise ValueError(f"array {name!r} has shape {found.shape} and type {found.dtype}")
        return found

    def _list(self, name: str, count: int, *types: type) -> list[Any]:
        found = self.values[name]
        if not isinstance(found, list) or len(found) != count or any(type(value) not in types for value in found):
            raise ValueError(f"{name!r} is not a list of {count} values of the right type")
        return found


def checked_texts(value: Any) -> list[str]:
    """Return a list of distinct strings; raise ValueError for anything else."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value) or len(set(value)) < len(value):
        raise ValueError("not a list of distinct strings")
    return value


class Part(ABC):
    """One kind of encoding, for the columns it was fitted on."""

    kinds: ClassVar[dict[str, type[Part]]] = {}
    kind: ClassVar[str]
    columns: list[str]

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            Part.kinds[cls.kind] = cls

    def names(self) -> list[str]:
        """Return the names of the output columns."""
        return list(self.columns)

    def sources(self) -> list[list[str]]:
        """Return the input columns behind each output column."""
        return [[name] for name in self.columns]

    @abstractmethod
    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return float32 of shape (rows, outputs), within [0, 1].

        Columns are in the form of :func:`as_role`; the index holds the positions of the rows in the source.
        """

    def for_training(self, statistics: TableStatistics, classes: np.ndarray) -> Part:
        """Return the part that encodes the training rows, given their statistics; by default the part itself.

        ``classes`` are the numbers that the classes of the statistics had when the part was fitted.
        """
        return self

    @abstractmethod
    def state(self) -> PartState:
        """Return what :meth:`from_state` needs."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: PartState) -> Self:
        """Rebuild the part; raise ValueError for a state that does not fit together."""

    def known(self) -> list[list[str]]:
        """Return the values of each column that the part holds."""
        return [[] for _ in self.columns]

    def without_unused(self, present: Sequence[list[str]]) -> tuple[Part, int, int]:
        """Remove values that no remaining row has; return the part, how many were removed and how many had to be kept.

        ``present`` are the remaining values of each column. By default no value can go, because the codes of all others
        depend on it.
        """
        return self, 0, sum(len(set(known) - set(here)) for known, here in zip(self.known(), present, strict=True))


def category_rows(column: pd.Series[Any], known: Sequence[str], *, unseen: int) -> np.ndarray:
    """Return the place of each cell's category among the known ones, with missing values after the last of these."""
    positions, keys = factorise(column)
    places = {key: place for place, key in enumerate(known)}
    return np.array([*(places.get(key, unseen) for key in keys), len(known)], dtype=np.int64)[positions]


def unit_scale(values: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Scale to [0, 1] by limits seen in training; values outside are clipped, a constant column becomes 0."""
    span = np.where(high > low, high - low, 1.0)
    return np.clip((values - low) / span, 0, 1).astype(np.float32)


def check_at_least(limit: float, **parameters: float | None) -> None:
    """Raise InputError for parameters below a limit; None means that the encoder chooses."""
    for name, value in parameters.items():
        if value is not None and not value >= limit:
            raise InputError(f"Parameter {name!r} is {value}, but must be at least {limit}.")


def as_role(series: pd.Series[Any], role: Role) -> pd.Series[Any]:
    """Bring a column into the form that its role's part takes."""
    if role is Role.NUMERIC:
        plain_number = isinstance(series.dtype, np.dtype) and series.dtype.kind in "iuf"
        return series if plain_number else to_numbers(series).values
    if role is Role.STRING and not isinstance(series.dtype, pd.StringDtype):
        return to_text(series)
    return series


def check_values(column: pd.Series[Any], role: Role, row_ids: np.ndarray) -> None:
    """Refuse text in a column of numbers or codes, fractions in one of codes, and infinities.

    ``row_ids`` are the rows' positions in the source, for the message.
    """
    if role not in (Role.NUMERIC, Role.CODE) or (isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu"):
        return
    values, refused = to_numbers(column) if role is Role.NUMERIC else to_codes(column)
    if refused.size and role is Role.CODE:
        # Among other objects a boolean is the code that it is in a column of its own.
        refused = refused[[not isinstance(column.iloc[place], bool | np.bool_) for place in refused]]
    if refused.size:
        wanted, first = "numbers" if role is Role.NUMERIC else "integers", int(refused[0])
        raise InputError(
            f"Column {str(column.name)!r} holds {len(refused)} values that are not {wanted}, the first, "
            f"{str(column.iloc[first])!r}, in {row_named(int(row_ids[first]))}; correct them or leave them empty."
        )
    if values.dtype.kind == "f":
        infinite = np.flatnonzero(np.isinf(values.to_numpy()))
        if infinite.size:
            refuse_infinities(str(column.name), len(infinite), int(row_ids[infinite[0]]))
