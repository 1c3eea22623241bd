"""One delivery of a table: what its source held when it was read."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from c2tc_pipeline.tables.fingerprint import fingerprint_size, source_digest, source_fingerprint
from c2tc_pipeline.tables.location import without_secrets
from c2tc_pipeline.tables.readers import read_table


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
        The sha256 of its bytes.
    """

    frame: pd.DataFrame
    shown_address: str
    fingerprint: str
    digest: str

    @property
    def size(self) -> int:
        """The source's size in bytes."""
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
    before = source_fingerprint(source)
    frame = read_table(source)
    digest = source_digest(source)
    if source_fingerprint(source) != before:
        raise ConnectionError(f"The source {without_secrets(source)} changed while it was being read.")
    return Delivery(frame, without_secrets(source), before, digest)
