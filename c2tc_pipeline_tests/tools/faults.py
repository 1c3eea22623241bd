"""Devices that do not exist here and memory that runs out: stand-ins for the tests of every torch step."""

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
# A device, how many times memory runs out there, and whether batches are whole in the end.
ENDINGS = [
    *(("cpu", 0, True), ("cpu", 1, False), ("cpu", 3, False)),
    *(("cuda", 0, True), ("cuda", 1, False), ("cuda", 3, False), ("cuda", 4, True), ("cuda", 7, False)),
]


def expected_fallbacks(step: str, device: str, times: int) -> list[Fallback]:
    """Return the records of a step that ran out of memory so many times."""
    return [Fallback(step, a, b, MESSAGE) for a, b in pairwise(LADDERS[device][: times + 1])]


class Memory:
    """Memory that runs out at chosen uses, counted from 1, or whenever too many rows come at once.

    Parameters
    ----------
    at : container of int
        The uses at which it runs out.
    most_rows : int
        Rows that it holds at once.
    error : Exception
        What is raised.
    """

    def __init__(self, *, at: Container[int] = (), most_rows: int = 10**9, error: Exception | None = None) -> None:
        self.at = at
        self.most_rows = most_rows
        self.error = error
        self.uses = 0

    def take(self, rows: int) -> None:
        """Use it for so many rows."""
        self.uses += 1
        if self.uses in self.at or rows > self.most_rows:
            raise self.error or torch.OutOfMemoryError(MESSAGE)

    def under(self, function: Callable[..., Any], rows_of: Callable[..., int]) -> Callable[..., Any]:
        """Return the function with this memory under it; ``rows_of`` counts the rows in its arguments."""

        def limited(*arguments: Any) -> Any:
            self.take(rows_of(*arguments))
            return function(*arguments)

        return limited


class Always:
    """Contains everything."""

    def __contains__(self, value: object) -> bool:
        return True


class _OnTheCpu(TorchFunctionMode):
    """Where torch is told to use CUDA or MPS, it uses the CPU."""

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        def real(value: Any) -> Any:
            return "cpu" if isinstance(value, str | torch.device) and str(value) in ("cuda", "mps") else value

        return function(*map(real, args), **{name: real(value) for name, value in (kwargs or {}).items()})


@contextmanager
def pretended_devices(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ``"cuda"`` and ``"mps"`` exist, and compute on the CPU what is sent there."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: None)
    with _OnTheCpu():
        yield
