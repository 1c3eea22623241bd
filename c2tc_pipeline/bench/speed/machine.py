"""What a run was measured on: cores, processor, versions."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("c2tc_pipeline", "numpy", "pandas", "scikit-learn", "torch", "imbalanced-learn")


def machine_facts() -> dict[str, Any]:
    """Return what is worth knowing about this machine, as JSON values.

    Examples
    --------
    >>> facts = machine_facts()
    >>> facts["cores"] >= 1, "numpy" in facts["versions"]
    (True, True)
    """
    import torch
    from threadpoolctl import threadpool_info

    return {
        "cores": os.cpu_count() or 1,
        "torch_threads": torch.get_num_threads(),
        "threads": {pool["internal_api"]: pool["num_threads"] for pool in threadpool_info()},
        "processor": processor_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def processor_name(description: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name as the system tells it, or its family where it does not.

    Examples
    --------
    >>> processor_name(Path("nowhere")) == (platform.processor() or platform.machine())
    True
    """
    if description.is_file():
        for line in description.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def load_now() -> float | None:
    """Return how many processes wanted to run in the last minute, on average; None where the system doesn't say.

    Examples
    --------
    >>> (load_now() or 0.0) >= 0
    True
    """
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
