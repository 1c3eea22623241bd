"""What a ratio may be, said once for the command line and the core."""

from __future__ import annotations

from c2tc_pipeline.common.errors import InputError


def checked_ratio(ratio: float) -> float:
    """Return the ratio, or refuse one outside (0, 1].

    Examples
    --------
    >>> checked_ratio(0.001)
    0.001
    """
    if not 0 < ratio <= 1:
        raise InputError(f"Ratio is {ratio:g}, but must be above 0 and at most 1 (0.001 keeps one row in a thousand).")
    return ratio
