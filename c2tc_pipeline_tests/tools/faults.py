"""Simulated GPU devices and out-of-memory errors for tests of torch steps."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from c2tc_pipeline.common.devices import Fallback

MESSAGE = "CUDA out of memory. Tried to allocate 20.00 GiB."
_CPU = ["cpu", "cpu, 1/2 batch", "cpu, 1/4 batch", "cpu, 1/8 batch"]
LADDERS = {"cpu": _CPU, "cuda": ["cuda", "cuda, 1/2 batch", "cuda, 1/4 batch", "cuda, 1/8 batch", *_CPU]}
# Device, number of out-of-memory errors, and whether batches have full size at the end: some steps of the ladders, all
# of which are in common/test_devices.py.
ENDINGS = [("cpu", 3, False), ("cuda", 1, False), ("cuda", 4, True)]


def expected_fallbacks(step: str, device: str, times: int) -> list[Fallback]:
    """Return the fallbacks of a step that runs out of memory ``times`` times."""
    return [Fallback(step, a, b, MESSAGE) for a, b in pairwise(LADDERS[device][: times + 1])]


class Memory:
    """Memory that runs out at chosen uses, counted from 1, and for more than ``most_rows`` rows at once."""

    def __init__(self, *, at: Container[int] = (), most_rows: int = 10**9, error: Exception | None = None) -> None:
        self.at = at
        self.most_rows = most_rows
        self.error = error
        self.uses = 0

    def take(self, rows: int) -> None:
        """Use it for some rows."""
        self.uses += 1
        if self.uses in self.at or rows > self.most_rows:
            raise self.error or torch.OutOfMemoryError(MESSAGE)

    def under(self, function: Callable[..., Any], rows_of: Callable[..., int]) -> Callable[..., Any]:
        """Wrap a function so that it uses this memory; ``rows_of`` counts the rows in its arguments."""

        def limited(*arguments: Any) -> Any:
            self.take(rows_of(*arguments))
            return function(*arguments)

        return limited


class Always:
    """Contains everything."""

    def __contains__(self, value: object) -> bool:
        return True


class _OnTheCpu(TorchFunctionMode):
    """Run CUDA and MPS calls on the CPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        def real(value: Any) -> Any:
            return "cpu" if isinstance(value, str | torch.device) and str(value) in ("cuda", "mps") else value

        return function(*map(real, args), **{name: real(value) for name, value in (kwargs or {}).items()})


@contextmanager
def pretended_devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulate ``"cuda"`` and ``"mps"`` on the CPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    with _OnTheCpu():
        yield
