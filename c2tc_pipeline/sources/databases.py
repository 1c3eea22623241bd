"""Shared parts of sources in databases: the table or query to read, and addresses of servers without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import carries_user, without_secrets
from c2tc_pipeline.sources.source import Source

# Parts of the names of settings whose values are secret.
_SECRET = ("pass", "pwd", "token", "secret", "credential", "access_key", "api_key", "apikey", "private_key")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Selection:
    """A table, after its schema and a dot where it has one, or a query."""

    table: str | None = None
    query: str | None = None

    def checked(self, shown: str) -> Selection:
        """Return itself; refuse both or neither of table and query."""
        if (self.table is None) == (self.query is None):
            raise InputError(f"The source {shown} must say what to read: give either ?table= or ?query=.")
        return self

    def __str__(self) -> str:
        return f"table={self.table}" if self.table is not None else "query=..."

    @property
    def name(self) -> str:
        """Default name of the table."""
        return self.table.rpartition(".")[2] if self.table is not None else "query"

    def origin(self) -> str:
        """Return the SQL after FROM."""
        if self.table is not None:
            return ".".join(quoted(part) for part in self.table.split("."))
        return f"({(self.query or '').strip().rstrip(';').rstrip()}) AS selected"

    def sql(self, columns: list[str] | None = None) -> str:
        """Return the statement that reads it, or some of its columns."""
        chosen = "*" if columns is None else ", ".join(quoted(name) for name in columns)
        return f"SELECT {chosen} FROM {self.origin()}"


def quoted(name: str) -> str:
    """Quote a name as standard SQL does."""
    return '"' + name.replace('"', '""') + '"'


def checked_fields(kind: str, fields: Any, known: set[str]) -> str:
    """Refuse unknown fields of a description; return the settings table, query and dsn_env as in an address."""
    if not isinstance(fields, Mapping) or not set(fields) <= known:
        raise ValueError(f"a source of {kind} may have the fields {', '.join(sorted(known))}")
    given = {name: str(fields[name]) for name in ("table", "query", "dsn_env") if name in fields}
    return f"?{urlencode(given, quote_via=quote)}" if given else ""


@dataclass(frozen=True)
class ServerAddress:
    """The address of a table or query on a database server; ``url`` has a password only if it is from ``dsn_env``."""

    shown: str
    selection: Selection
    url: str

    def __repr__(self) -> str:
        return f"ServerAddress({self.shown!r})"

    @classmethod
    def parse(cls, address: str) -> ServerAddress:
        """Parse an address; refuse a password in it without repeating it."""
        bare = without_secrets(address)
        try:
            parts = urlsplit(address)
            # A user name is not a secret; where a password is not encoded, the user part may end anywhere.
            has_password = parts.password is not None or (carries_user(address) and "@" not in parts.netloc)
            settings = dict(parse_qsl(parts.query, keep_blank_values=True))
            # Bytes of a command line that are not text can't be sent to a server.
            address.encode()
        except ValueError:
            raise InputError(f"The source {bare} is not the address of a database; check it.") from None
        if has_password or any(part in name.lower() for name in settings for part in _SECRET):
            raise InputError(
                f"The source {bare} carries a password; remove it, and put the whole address into an environment "
                "variable that ?dsn_env= names, or a PostgreSQL password into PGPASSWORD."
            )
        selection = Selection(settings.pop("table", None), settings.pop("query", None)).checked(bare)
        variable = settings.pop("dsn_env", None)
        if variable is None:
            url = address.partition("?")[0] + (f"?{urlencode(settings, quote_via=quote)}" if settings else "")
            return cls(f"{bare}?{selection}", selection, url)
        if not _VARIABLE.fullmatch(variable):
            # Not repeated: it may be the address itself, password and all.
            raise InputError(
                f"The source {bare} has something else than the name of an environment variable in dsn_env; put the "
                "address of the database into a variable, and its name there."
            )
        shown = f"{bare}?{selection}&dsn_env={variable}"
        url = os.environ.get(variable, "").strip()
        if not url:
            raise InputError(f"The source {shown} needs the environment variable {variable}; set it.")
        return cls(shown, selection, url)


class ServerSource(Source):
    """Base of sources that are a table or query of a database server."""

    tries = 3

    def __init__(self, address: ServerAddress) -> None:
        self._address = address

    @property
    def shown(self) -> str:
        return self._address.shown

    @property
    def name(self) -> str:
        return self._address.selection.name
