"""Pin the catalogue version of a code location and its runs, whatever happens to the file meanwhile.

A code location accepts the file when it loads: a correct one is stored beside the artefacts, and a copy below
DAGSTER_HOME is named in an environment variable, which the runs that it starts inherit. While the file is wrong, the
last one accepted stays in force.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.models import MODELS
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.manifest import hash_file
from c2tc_pipeline.storage.store import ArtefactStore, LostRace
from c2tc_pipeline.tables.catalogue import Catalogue, load_catalogue

_LOGGER = logging.getLogger(__name__)
IN_FORCE_VARIABLE = "C2TC_CATALOGUE_IN_FORCE"
STAYS_IN_FORCE = "The catalogue accepted last stays in force."
_KEY, _KIND, _FILE = "catalogue/accepted", "catalogue", "catalog.yaml"
_COPIES = "catalogues"


@dataclass(frozen=True)
class Accepted:
    """A catalogue in force, and the digest of the file that it was read from."""

    catalogue: Catalogue
    digest: str | None

    @classmethod
    def of_file(cls, path: Path) -> Accepted:
        """Read and check a catalogue; it is wrong also if it names a model that does not exist."""
        catalogue = load_catalogue(path)
        for spec in catalogue.values():
            for model in spec.evaluation.models:
                MODELS.check(model)
        return cls(catalogue, _digest(path))

    def digest_now(self) -> str | None:
        """Return the digest of the file as it is now, None if it can't be read."""
        return _digest(self.catalogue.path)

    def problem_now(self) -> str | None:
        """Return what is wrong with the file as it is now, or None."""
        try:
            Accepted.of_file(self.catalogue.path)
        except InputError as error:
            return str(error)
        return None


def accept(path: Path, root: str) -> Accepted:
    """Return the catalogue in force for this process; that of the file where the storage ``root`` can't be reached."""
    try:
        return _accept(path, root)
    except OSError as error:
        _LOGGER.warning("The storage could not be reached (%s), so the catalogue was not stored.", type(error).__name__)
        return Accepted.of_file(path)


def startable(path: Path, root: str) -> str | None:
    """Return what is wrong with the file if the catalogue accepted last is in force instead, else None.

    Without such a catalogue in the storage, a wrong file is an InputError.
    """
    try:
        Accepted.of_file(path)
    except InputError as error:
        if not ArtefactStore(root).newest_version(_KEY):
            raise
        return f"{error} {STAYS_IN_FORCE}"
    return None


def _accept(path: Path, root: str) -> Accepted:
    copy = Path(os.environ.get(IN_FORCE_VARIABLE, ""))
    if copy.is_file():
        return _copied(copy, path)
    store = ArtefactStore(root)
    newest = store.newest_version(_KEY)
    stored = _stored(store, newest, path) if newest else None
    try:
        accepted = Accepted.of_file(path)
    except InputError as error:
        if stored is None:
            raise
        _LOGGER.warning("%s %s", error, STAYS_IN_FORCE)
        accepted = stored
    else:
        if stored is None or stored.digest != accepted.digest:
            # Another code server may have stored the same file first.
            with suppress(LostRace):
                store.publish(_KEY, lambda folder: shutil.copy(path, folder / _FILE), kind=_KIND)
    os.environ[IN_FORCE_VARIABLE] = str(_copy(store, accepted))
    return accepted


def has_accepted(home: Path) -> bool:
    """Return whether a code location with this DAGSTER_HOME has accepted a catalogue before."""
    return any((home / _COPIES).glob("*.yaml"))


def _copy(store: ArtefactStore, accepted: Accepted) -> Path:
    """Copy an accepted catalogue to where this machine's runs find it without the storage; return its path."""
    home = Path(os.environ.get("DAGSTER_HOME") or tempfile.gettempdir()).absolute()
    copy = home / _COPIES / f"{accepted.digest}.yaml"
    if not copy.exists():
        with store.fetch(_KEY, kind=_KIND) as folder:
            Backend(copy.parent).put_if_absent(copy.name, (folder / _FILE).read_bytes())
    return copy


def _copied(copy: Path, path: Path) -> Accepted:
    # Relative sources start at the file's own place.
    return Accepted(Catalogue(path, dict(load_catalogue(copy))), _digest(copy))


def _stored(store: ArtefactStore, version: int, path: Path) -> Accepted:
    with store.fetch(_KEY, version=version, kind=_KIND) as folder:
        return _copied(folder / _FILE, path)


def _digest(path: Path) -> str | None:
    try:
        return hash_file(path)
    except OSError:
        return None
