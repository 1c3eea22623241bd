"""What the setting ``engine`` may say: who computes curves and clusters.

The engines themselves are in :mod:`c2tc_pipeline.clustering`; catalogues and commands only need to know their names.
"""

from __future__ import annotations

import re

from c2tc_pipeline.common.errors import InputError

LOCAL_ENGINE = "local"
_ADDRESS = re.compile(r"(dask|tcp|tls)://([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}")


def check_engine(engine: str) -> str:
    """Refuse a setting that names no engine, and return one that does.

    Parameters
    ----------
    engine : str
        ``"local"``, or the address of a Dask scheduler: ``dask://host:port``, ``tcp://host:port`` or
        ``tls://host:port``.

    Examples
    --------
    >>> check_engine("dask://127.0.0.1:8786")
    'dask://127.0.0.1:8786'
    >>> check_engine("spark")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: The engine 'spark' is unknown; choose 'local', or the address of a Dask
    scheduler such as 'dask://127.0.0.1:8786'.
    """
    if not isinstance(engine, str) or (engine != LOCAL_ENGINE and not _ADDRESS.fullmatch(engine)):
        # An address that is refused may carry a password.
        shown = " " if "@" in str(engine) else f" {engine!r} "
        raise InputError(
            f"The engine{shown}is unknown; choose 'local', or the address of a Dask scheduler such as "
            "'dask://127.0.0.1:8786'."
        )
    return engine
