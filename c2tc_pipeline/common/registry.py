"""Registries of models, rivals, encoders and commands by name, imported when one is used."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from c2tc_pipeline.common.errors import InputError


class Registry(dict[str, Any]):
    """Names mapped to a class or to ``"module:Class"``, which is imported when an object is made.

    ``kind`` is what an entry is called in messages.

    Examples
    --------
    >>> counters = Registry("counter", {"count": "itertools:count"})
    >>> counters.load("count").__name__
    'count'
    >>> counters.load("cuont")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Counter 'cuont' is unknown; choose one of: count.
    """

    def __init__(self, kind: str, entries: Mapping[str, Any]) -> None:
        super().__init__(entries)
        self.kind = kind

    def check(self, name: str) -> None:
        """Raise InputError for a name that is not registered."""
        if name not in self:
            raise InputError(f"{self.kind.capitalize()} {name!r} is unknown; choose one of: {', '.join(self)}.")

    def load(self, name: str) -> Any:
        """Import and return the class of that name."""
        self.check(name)
        found = self[name]
        if not isinstance(found, str):
            return found
        module, _, attribute = found.partition(":")
        return getattr(import_module(module), attribute)

    def make(self, name: str, **settings: Any) -> Any:
        """Return an instance, with those of the settings that its constructor takes."""
        found = self.load(name)
        known = inspect.signature(found).parameters
        return found(**{key: value for key, value in settings.items() if key in known})


def bench_package(name: str) -> ModuleType:
    """Import a module of the extra ``bench``, or raise InputError with the command that installs it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        raise InputError(f"The package {package} is not installed; run: pip install 'c2tc_pipeline[bench]'.") from error
