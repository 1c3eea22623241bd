"""Checks of a part's stored state before anything is built on it: lists of text, arrays of numbers that fit together.

A file may have been made by anyone; what does not fit is a ``ValueError``, which the reader of encoders turns into one
sentence. What fits can be encoded with, whatever the numbers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def texts(value: Any) -> list[str]:
    """Return a list of texts, each of them once.

    Examples
    --------
    >>> texts(["a", "b"])
    ['a', 'b']
    >>> texts(["a", 7])
    Traceback (most recent call last):
    ...
    ValueError: not a list of texts
    """
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value) or len(set(value)) < len(value):
        raise ValueError("not a list of texts")
    return value


def text_lists(value: Any, count: int) -> list[list[str]]:
    """Return so many lists of texts."""
    return [texts(inner) for inner in listed(value, count)]


def numbers(value: Any, count: int) -> list[float]:
    """Return so many numbers; true and false are none.

    Examples
    --------
    >>> numbers([1, 2.5], 2)
    [1.0, 2.5]
    """
    found = listed(value, count)
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in found):
        raise ValueError("not a list of numbers")
    return [float(number) for number in found]


def flags(value: Any, count: int) -> list[bool]:
    """Return so many times true or false."""
    found = listed(value, count)
    if not all(isinstance(flag, bool) for flag in found):
        raise ValueError("not a list of flags")
    return found


def listed(value: Any, count: int) -> list[Any]:
    """Return a list of so many values."""
    if not isinstance(value, list) or len(value) != count:
        raise ValueError(f"not a list of {count}")
    return value


def array(arrays: Mapping[str, np.ndarray], name: str, *shape: int | None) -> np.ndarray:
    """Return an array of real numbers by its name; None stands for any length but none at all.

    Examples
    --------
    >>> array({"low": np.zeros(3)}, "low", 3).shape
    (3,)
    >>> array({"low": np.zeros(3)}, "low", 3, None)
    Traceback (most recent call last):
    ...
    ValueError: array 'low' has shape (3,)
    """
    found = arrays[name]
    fits = len(found.shape) == len(shape) and all(
        length > 0 if wanted is None else length == wanted for length, wanted in zip(found.shape, shape, strict=True)
    )
    if not fits:
        raise ValueError(f"array {name!r} has shape {found.shape}")
    if found.dtype.kind not in "fiu":
        raise ValueError(f"array {name!r} is of {found.dtype}")
    return found
