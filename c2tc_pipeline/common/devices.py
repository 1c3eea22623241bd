"""The settings ``device`` and ``engine``, and the out-of-memory ladder from whole batches over smaller ones to the CPU.

Each step cuts its own batches, so that its result changes by no more than rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from c2tc_pipeline.common.defaults import check_choice
from c2tc_pipeline.common.errors import InputError

DEVICES = ("auto", "cpu", "cuda", "mps")
_NOT_AVAILABLE = "Device {!r} was asked for but is not available; use 'auto' or 'cpu'."
LOCAL_ENGINE = "local"
_DASK_ADDRESS = re.compile(r"(dask|tcp|tls)://([\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}")
# Numbers of parts into which a batch is cut, one after the other.
_PARTS = (1, 2, 4, 8)
# Texts of torch's out-of-memory errors: CUDA and MPS, the CPU on Linux and on Windows, cuBLAS and cuDNN.
_SHORT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory", "status_alloc_failed")

Result = TypeVar("Result")


def check_device(device: str) -> None:
    """Refuse an unknown device, and one that this build of torch lacks; torch is not imported."""
    check_choice("Device", device, DEVICES)
    if device == "cuda" and version("torch").endswith("+cpu"):
        raise InputError(_NOT_AVAILABLE.format(device))


def resolve_device(device: str) -> str:
    """Turn a device setting into a device that exists here."""
    check_choice("Device", device, DEVICES)
    if device == "cpu":
        return device
    # torch takes seconds to import; a setting of "cpu" should not pay for it.
    import torch

    available = [
        name
        for name, is_available in (("cuda", torch.cuda.is_available), ("mps", torch.backends.mps.is_available))
        if is_available()
    ]
    if device == "auto":
        return available[0] if available else "cpu"
    if device not in available:
        raise InputError(_NOT_AVAILABLE.format(device))
    return device


def check_engine(engine: str) -> str:
    """Return the setting ``engine`` if it is ``"local"`` or the address of a Dask scheduler; refuse it otherwise."""
    if not isinstance(engine, str) or (engine != LOCAL_ENGINE and not _DASK_ADDRESS.fullmatch(engine)):
        # A refused address may contain a password.
        shown = " " if "@" in str(engine) else f" {engine!r} "
        raise InputError(
            f"The engine{shown}is unknown; choose 'local', or the address of a Dask scheduler such as "
            "'dask://127.0.0.1:8786'."
        )
    return engine


@dataclass(frozen=True)
class Place:
    """Device of a step, and the number of parts into which it cuts a batch there."""

    device: str
    parts: int = 1

    def __str__(self) -> str:
        return self.device if self.parts == 1 else f"{self.device}, 1/{self.parts} batch"

    def part_of(self, rows: int) -> int:
        """Return how many of a batch's rows go through the device at once; at least one."""
        return max(1, -(-rows // self.parts))


@dataclass(frozen=True)
class Fallback:
    """A step that did not fit into memory and continued in smaller batches or on the CPU."""

    step: str
    from_: str
    to: str
    reason: str

    def __str__(self) -> str:
        return f"{self.step}: {self.from_} -> {self.to} ({self.reason})"


_watchers: ContextVar[tuple[list[Fallback], ...]] = ContextVar("fallback_watchers", default=())


@contextmanager
def watch_fallbacks() -> Iterator[list[Fallback]]:
    """Collect the fallbacks inside a block; nested watches also report to the outer ones."""
    seen: list[Fallback] = []
    token = _watchers.set((*_watchers.get(), seen))
    try:
        yield seen
    finally:
        _watchers.reset(token)


def on_device(step: str, start: str | Place, work: Callable[[Place], Result]) -> Result:
    """Do some work on a device; if its memory is too small, with half the batch, down to an eighth, then on the CPU.

    The CPU begins with whole batches again, so that its result equals that of a run on the CPU bit by bit. If a
    device lacks an operation (as MPS lacks some), the work goes to the CPU at once. Other errors are raised, and so
    is the error of the last attempt.

    Examples
    --------
    >>> def work(place):
    ...     if place.parts < 4:
    ...         raise RuntimeError("CUDA out of memory")
    ...     return place
    >>> with watch_fallbacks() as fallbacks:
    ...     on_device("k-means", "cuda", work)
    Place(device='cuda', parts=4)
    >>> [fallback.to for fallback in fallbacks]
    ['cuda, 1/2 batch', 'cuda, 1/4 batch']
    """
    ladder = _ladder(start if isinstance(start, Place) else Place(start))
    while len(ladder) > 1:
        place, *below = ladder
        try:
            return work(place)
        except RuntimeError as error:
            if isinstance(error, NotImplementedError):
                below = [other for other in below if other.device != place.device]
            elif not is_out_of_memory(error):
                raise
            if not below:
                raise
            reason = str(error).partition("\n")[0]
        # After the except block, because the traceback keeps the tensors of this attempt alive.
        _empty_cache(place.device)
        fallback = Fallback(step, str(place), str(below[0]), reason)
        for seen in _watchers.get():
            seen.append(fallback)
        ladder = below
    return work(ladder[0])


def _ladder(start: Place) -> list[Place]:
    """Return the places to try, from the start downwards."""
    places = [Place(device, parts) for device in dict.fromkeys((start.device, "cpu")) for parts in _PARTS]
    return places[places.index(start) :]


def is_out_of_memory(error: RuntimeError) -> bool:
    import torch

    text = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(sign in text for sign in _SHORT_OF_MEMORY)


def _empty_cache(device: str) -> None:
    """Free the unused memory that the device's allocator holds."""
    import torch

    if device.startswith("cuda"):
        torch.cuda.empty_cache()
    elif device == "mps":
        torch.mps.empty_cache()
