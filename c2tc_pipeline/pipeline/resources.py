"""Resources of assets beside the storage: a device, and a cache of costly results. Nothing here holds a credential."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from c2tc_pipeline.common.devices import DEVICES, resolve_device
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.cache import ContentCache, default_cache_directory


class DeviceResource(dg.ConfigurableResource):
    """The device of heavy steps; ``auto`` takes CUDA, else MPS, else the CPU, unless a table's settings name one."""

    device: str = "auto"

    def choose(self, wanted: str) -> str:
        """Return the device for a table whose settings name ``wanted``."""
        if self.device not in DEVICES:
            raise InputError(f"Device {self.device!r} is unknown; choose one of: {', '.join(DEVICES)}.")
        return resolve_device(self.device if wanted == "auto" else wanted)


class CacheResource(dg.ConfigurableResource):
    """A cache of autoencoder weights, loss curves and scores, in a local directory.

    By default that is ``$C2TC_CACHE_DIR`` or the user's cache directory.
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
