"""Seeds from ``random_state``, which is None, an integer, a Generator or a RandomState, as in scikit-learn."""

from __future__ import annotations

from numbers import Integral
from typing import TypeAlias

import numpy as np

from c2tc_pipeline.common.errors import InputError

RandomStateLike: TypeAlias = int | np.random.Generator | np.random.RandomState | None

# Of seeds that are drawn; scikit-learn and torch take any of them.
_LARGEST = 2**31 - 1


def seed_of(random_state: RandomStateLike) -> int:
    """Return the seed: an integer as it is, or one drawn from a generator; None draws from NumPy's global state.

    Examples
    --------
    >>> seed_of(7), seed_of(np.random.default_rng(0)) == seed_of(np.random.default_rng(0))
    (7, True)
    """
    if random_state is None:
        return int(np.random.randint(_LARGEST))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LARGEST))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_LARGEST))
    if not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(
            f"random_state is {random_state!r}, but must be None, an integer from 0 up, a Generator or a RandomState."
        )
    return int(random_state)


def generator_of(random_state: RandomStateLike) -> np.random.Generator:
    """Return a generator: the given one itself, or a new one of the seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(seed_of(random_state))
