"""Artefacts: published whole or not at all, listed in a manifest, verified when read, cached by content.

What belongs here: how bytes reach storage and come back. What does not: what the bytes mean.
"""

from c2tc_pipeline.storage.artefact import (
    MANIFEST_NAME,
    publish_directory,
    read_manifest,
    verify_directory,
)
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache, default_cache_directory
from c2tc_pipeline.storage.hashing import hash_array, hash_json
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline.storage.s3_backend import S3Access
from c2tc_pipeline.storage.store import ArtefactStore, LostRace, NumberCollectedError, Published

__all__ = [
    "MANIFEST_NAME",
    "ArtefactStore",
    "CacheLookup",
    "ContentCache",
    "DamagedArtefactError",
    "LostRace",
    "NumberCollectedError",
    "Published",
    "S3Access",
    "default_cache_directory",
    "hash_array",
    "hash_json",
    "publish_directory",
    "read_manifest",
    "verify_directory",
]
