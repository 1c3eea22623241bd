"""Packages that only some networks need, imported when one of them is built."""

from __future__ import annotations

import importlib
from types import ModuleType

from c2tc_pipeline.common.errors import InputError


def bench_package(name: str) -> ModuleType:
    """Import a module of the extra ``bench``, or say how to install it.

    Parameters
    ----------
    name : str
        The module, such as ``"rtdl_num_embeddings"``.

    Examples
    --------
    >>> bench_package("rtdl_of_old")
    Traceback (most recent call last):
    c2tc_pipeline.common.errors.InputError: The package rtdl_of_old is not installed; run: pip install
    'c2tc_pipeline[bench]'
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise InputError(f"The package {package} is not installed; run: pip install 'c2tc_pipeline[bench]'") from error
