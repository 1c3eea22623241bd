"""Checks of the encoders' parameters: a setting that makes no sense is refused before any work."""

from __future__ import annotations

from c2tc_pipeline.common.errors import InputError


def check_at_least(least: float, **parameters: float | None) -> None:
    """Refuse parameters below a limit; None means that the encoder chooses.

    Examples
    --------
    >>> check_at_least(1, epochs=10, batch_size=None)
    >>> check_at_least(1, epochs=0)
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Parameter 'epochs' is 0, but must be at least 1.
    """
    for name, value in parameters.items():
        if value is not None and not value >= least:
            raise InputError(f"Parameter {name!r} is {value}, but must be at least {least}.")


def check_ngram_range(ngram_range: tuple[int, int]) -> None:
    """Refuse a range of n-gram lengths that is empty or starts below 1.

    Examples
    --------
    >>> check_ngram_range((2, 4))
    """
    shortest, longest = ngram_range
    if not 1 <= shortest <= longest:
        raise InputError(
            f"Parameter 'ngram_range' is {shortest, longest}, but must be two lengths from 1 up, the shorter first."
        )
