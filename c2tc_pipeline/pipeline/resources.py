"""What assets work with, beside their inputs: a device, a cache of costly results, the paper's tables.

Where artefacts are stored is in :mod:`c2tc_pipeline.pipeline.io_managers`. Nothing here holds a credential.
"""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from c2tc_pipeline.common.devices import DEVICES, resolve_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory


class DeviceResource(dg.ConfigurableResource):
    """Where heavy steps run.

    Parameters
    ----------
    device : {"auto", "cpu", "cuda", "mps"}
        ``"auto"`` takes CUDA, else MPS, else the CPU, unless a table's settings name one.

    Examples
    --------
    >>> DeviceResource(device="cpu").choose("auto")
    'cpu'
    """

    device: str = "auto"

    def choose(self, wanted: str) -> str:
        """Return the device for a table whose settings say ``wanted``."""
        if self.device not in DEVICES:
            raise InputError(f"Device {self.device!r} is unknown; choose one of: {', '.join(DEVICES)}.")
        return resolve_device(self.device if wanted == "auto" else wanted)


class CacheResource(dg.ConfigurableResource):
    """Where autoencoder weights, loss curves and scores are kept under the hash of what determines them.

    Parameters
    ----------
    directory : str
        A local directory; empty stands for ``$C2TC_CACHE_DIR`` or the user's cache directory.

    Examples
    --------
    >>> CacheResource(directory="cache").path
    PosixPath('cache')
    """

    directory: str = ""

    @property
    def path(self) -> Path:
        """The directory."""
        return Path(self.directory) if self.directory else default_cache_directory()

    @property
    def cache(self) -> ContentCache:
        """The cache in it."""
        return ContentCache(self.path)
