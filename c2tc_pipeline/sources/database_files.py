"""What SQLite and DuckDB files have in common: a local copy where the file lies elsewhere, and their state."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.file_state import file_version
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.sources.selection import Selection
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.values import ValuesHash
from c2tc_pipeline.storage.artefact import ScratchDirectory
from c2tc_pipeline.storage.hashing import hash_json

# What is written but not yet part of the file lies beside it.
_LOGS = ("-wal", ".wal")


class DatabaseFile(Source):
    """One table of a file that is a database, or a query's result.

    Parameters
    ----------
    location : Location
        The file. Where it is remote, it is copied before it is read.
    selection : Selection
        What to read; with neither table nor query the file's only table.
    """

    hashes_values = True
    endings: tuple[str, ...] = ()

    def __init__(self, location: Location, selection: Selection) -> None:
        self.location = location
        self._selection = selection

    @property
    def shown(self) -> str:
        chosen = self._selection
        return str(self.location) + (f"?{chosen}" if chosen != Selection() else "")

    @property
    def name(self) -> str:
        return self._selection.name if self._selection.table is not None else self.location.stem(self.endings)

    def version(self) -> str:
        states = [file_version(self.location)]
        if self.location.scheme == "file":
            for ending in _LOGS:
                log = Path(self.location.path + ending)
                if log.is_file() and log.stat().st_size:
                    states.append(file_version(Location("file", str(log))))
        # Not the size in bytes at the beginning: other tables of the file have their share in it.
        return f"db-{hash_json(states)[:32]}"

    def digest(self) -> str:
        values = ValuesHash()
        for batch in self.batches():
            values.update(batch)
        return values.hexdigest()

    @contextmanager
    def local_file(self) -> Iterator[Path]:
        """Yield the path of the file, or of a copy."""
        if self.location.scheme == "file":
            # Opened only to say in our own words what is wrong with the path.
            with self.location.open():
                pass
            yield Path(self.location.path)
            return
        with ScratchDirectory() as folder:
            path = Path(folder) / (self.location.name or "file")
            with self.location.open() as remote, path.open("wb") as copy:
                shutil.copyfileobj(remote, copy, 1 << 22)
            yield path

    def chosen_selection(self, tables: list[str]) -> Selection:
        """Return what to read, or say that it has to be named."""
        if self._selection != Selection():
            return self._selection.checked(self.shown)
        if len(tables) != 1:
            listed = ", ".join(repr(name) for name in tables[:10]) or "none"
            raise InputError(f"The file {self.shown} holds several tables or none ({listed}); name one with ?table=.")
        return Selection(table=tables[0])
