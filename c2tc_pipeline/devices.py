"""Which processor runs the torch and clustering steps."""

from __future__ import annotations

from c2tc_pipeline.errors import InputError

DEVICES = ("auto", "cpu", "cuda", "mps")


def resolve_device(device: str) -> str:
    """Turn a device setting into a device that exists here.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "mps"}
        ``"auto"`` takes CUDA when there is one and the CPU otherwise. MPS is taken only when asked for.

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    if device not in DEVICES:
        raise InputError(f"Device {device!r} is unknown; choose one of: {', '.join(DEVICES)}.")
    if device == "cpu":
        return device
    # torch takes seconds to import; a setting of "cpu" should not pay for it.
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    available = torch.cuda.is_available() if device == "cuda" else torch.backends.mps.is_available()
    if not available:
        raise InputError(f"Device {device!r} was asked for but is not available; use 'auto' or 'cpu'.")
    return device
