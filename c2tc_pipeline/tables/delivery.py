"""One delivery of a table: what its source held when it was read."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.values import ValuesHash
from c2tc_pipeline.tables.fingerprint import fingerprint_size
from c2tc_pipeline.tables.frames import frame_of


@dataclass(frozen=True)
class Delivery:
    """A table and the state of the source that it came from.

    Parameters
    ----------
    frame : DataFrame
        The table.
    shown_address : str
        Where it came from, without secrets.
    fingerprint : str
        The source's cheap mark, see :func:`~c2tc_pipeline.tables.source_fingerprint`.
    digest : str
        The hash of its content, see :func:`~c2tc_pipeline.tables.source_digest`.
    """

    frame: pd.DataFrame
    shown_address: str
    fingerprint: str
    digest: str

    @property
    def size(self) -> int | None:
        """The source's size in bytes, where it is a file."""
        return fingerprint_size(self.fingerprint)


def read_delivery(source: str) -> Delivery:
    """Read a table together with the version of its source.

    Parameters
    ----------
    source : str
        As for :func:`~c2tc_pipeline.tables.read_table`.

    Raises
    ------
    InputError
        When the source can't be read.
    ConnectionError
        When it changed in the meantime; another try may find it at rest.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age\\n31\\n")
    >>> delivery = read_delivery(str(path))
    >>> len(delivery.frame), delivery.size
    (1, 7)
    """
    opened = open_source(source)
    return with_retries(lambda: _read(opened), opened.tries)


def _read(source: Source) -> Delivery:
    before = source.version()
    if source.hashes_values:
        # One statement sees one state, and the digest is that of what it saw.
        values = ValuesHash()
        frame = frame_of(values.watching(source.batches()), source.shown)
        return Delivery(frame, source.shown, before, values.hexdigest())
    frame = frame_of(source.batches(), source.shown)
    digest = source.digest()
    if source.version() != before:
        raise ConnectionError(f"The source {source.shown} changed while it was being read.")
    return Delivery(frame, source.shown, before, digest)
