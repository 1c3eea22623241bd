"""What sources on a database server have in common: an address without secrets, and content known by its values."""

from __future__ import annotations

from c2tc_pipeline.common.retries import with_retries
from c2tc_pipeline.sources.server_address import ServerAddress
from c2tc_pipeline.sources.source import Source
from c2tc_pipeline.sources.values import ValuesHash


class ServerSource(Source):
    """Base of sources that are a table or a query of a database server.

    Parameters
    ----------
    address : ServerAddress
        Where, and what to read.
    """

    hashes_values = True
    tries = 3

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    @property
    def shown(self) -> str:
        return self._address.shown

    @property
    def name(self) -> str:
        return self._address.selection.name

    def version(self) -> str:
        """Return a mark of the content: what is cheaper differs from database to database."""
        return f"db-{self.digest()[:32]}"

    def digest(self) -> str:
        def read() -> str:
            values = ValuesHash()
            for batch in self.batches():
                values.update(batch)
            return values.hexdigest()

        return with_retries(read, self.tries)
