"""Whether a table's source holds bytes that were not ingested yet.

The last materialisation of ``raw_table`` says what was ingested: its data version is the digest of the source's bytes,
its tag ``c2tc/source`` their fingerprint. What follows from news is decided by the sensor and the schedules.
"""

from __future__ import annotations

from dataclasses import dataclass

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.ledger import DATA_VERSION_TAG
from c2tc_pipeline.tables.fingerprint import fingerprint_size, source_digest

SOURCE_TAG = "c2tc/source"


@dataclass(frozen=True)
class Ingested:
    """What was last read from a table's source.

    Parameters
    ----------
    event : int
        The number of the event in the instance's log; 0 when nothing was read yet.
    fingerprint : str or None
        The source's fingerprint then.
    digest : str or None
        The sha256 of its bytes.

    Examples
    --------
    >>> Ingested().event
    0
    """

    event: int = 0
    fingerprint: str | None = None
    digest: str | None = None

    @classmethod
    def last(cls, instance: dg.DagsterInstance, table: str) -> Ingested:
        """Return what the instance recorded last for a table.

        Examples
        --------
        >>> Ingested.last(dg.DagsterInstance.ephemeral(), "adult")
        Ingested(event=0, fingerprint=None, digest=None)
        """
        wanted = dg.AssetRecordsFilter(asset_key=dg.AssetKey("raw_table"), asset_partitions=[table])
        for record in instance.fetch_materializations(wanted, limit=1).records:
            if record.asset_materialization is not None:
                tags = record.asset_materialization.tags or {}
                return cls(record.storage_id, tags.get(SOURCE_TAG), tags.get(DATA_VERSION_TAG))
        return cls()

    def is_older_than(self, source: str, fingerprint: str) -> bool:
        """Return whether a source with this fingerprint holds other bytes than those ingested.

        It is read only where nothing cheaper decides: the same fingerprint means the same bytes, another size other
        ones.

        Examples
        --------
        >>> Ingested(7, "1204-1700000000-3", "d41d").is_older_than("adult.csv", "1204-1700000000-3")
        False
        >>> Ingested(7, "1204-1700000000-3", "d41d").is_older_than("adult.csv", "1371-1700086400-3")
        True
        """
        if self.fingerprint is None or self.digest is None:
            return True
        if fingerprint == self.fingerprint:
            return False
        sizes = fingerprint_size(fingerprint), fingerprint_size(self.fingerprint)
        return (None not in sizes and sizes[0] != sizes[1]) or source_digest(source) != self.digest


def unreadable(error: InputError | OSError) -> str:
    """Say why a source can't be read; the text of an error that is not the project's own may hold anything.

    Examples
    --------
    >>> unreadable(InputError("There is no file adult.csv.")), unreadable(TimeoutError("of https://token@host"))
    ('There is no file adult.csv.', 'Its source could not be read (TimeoutError).')
    """
    return str(error) if isinstance(error, InputError) else f"Its source could not be read ({type(error).__name__})."
