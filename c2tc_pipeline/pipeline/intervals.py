"""How often the sensors look, where an operator wants it otherwise."""

from __future__ import annotations

import os

from c2tc_pipeline.common.errors import InputError

VARIABLE = "C2TC_SENSOR_SECONDS"


def seconds_between_looks(default: int) -> int:
    """Return the number of seconds in ``C2TC_SENSOR_SECONDS``, which holds for every sensor, or a sensor's own.

    Dagster looks at its sensors every five seconds, so fewer come to the same.

    Parameters
    ----------
    default : int
        What suits the sensor.

    Raises
    ------
    InputError
        When the variable holds no whole number above 0.

    Examples
    --------
    >>> seconds_between_looks(60)
    60
    """
    wanted = os.environ.get(VARIABLE, "").strip()
    if not wanted:
        return default
    if not wanted.isascii() or not wanted.isdigit() or int(wanted) == 0:
        raise InputError(f"{VARIABLE} is {wanted!r}; set it to a whole number of seconds above 0.")
    return int(wanted)
