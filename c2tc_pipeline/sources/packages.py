"""Packages that only some sources need: the extra ``sources`` brings them."""

from __future__ import annotations

import importlib
from typing import Any

from c2tc_pipeline.common.errors import InputError


def needed(module: str, shown: str) -> Any:
    """Import a module, or say in one sentence how to get it.

    Parameters
    ----------
    module : str
        Its dotted name.
    shown : str
        The source that needs it.

    Examples
    --------
    >>> needed("no_such_database", "nosuch://host/db")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: The source nosuch://host/db needs the package no_such_database; install
    c2tc_pipeline with the extra 'sources'.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"The source {shown} needs the package {package}; install c2tc_pipeline with the extra 'sources'."
        ) from None
