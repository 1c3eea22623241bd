"""The address of a table on a database server: where, and which table or query; passwords have no place in it.

    postgresql://user@host:5432/sales?table=public.people
    postgresql://?table=people&dsn_env=WAREHOUSE
    mysql+pymysql://user@host/sales?query=SELECT+...

With ``dsn_env`` the environment variable of that name holds the address of the database, password and all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.sources.location import without_secrets
from c2tc_pipeline.sources.selection import Selection

_OURS = ("table", "query", "dsn_env")
_SECRET = ("password", "passwd", "pwd", "sslpassword", "token", "secret", "passfile", "access_key", "secret_key")


@dataclass(frozen=True)
class ServerAddress:
    """A parsed address.

    Parameters
    ----------
    shown : str
        The address as it may be shown.
    selection : Selection
        What to read.
    url : str
        The address of the database alone; without a password, unless it came from the environment.

    Examples
    --------
    >>> address = ServerAddress.parse("postgresql://ann@db.example/sales?table=people&sslmode=require")
    >>> address.shown
    'postgresql://db.example/sales?table=people'
    >>> address.url
    'postgresql://ann@db.example/sales?sslmode=require'
    """

    shown: str
    selection: Selection
    url: str

    def __repr__(self) -> str:
        return f"ServerAddress({self.shown!r})"

    @classmethod
    def parse(cls, address: str) -> ServerAddress:
        """Read an address; a password in it is refused without being repeated."""
        bare = without_secrets(address)
        try:
            parts = urlsplit(address)
            has_password = parts.password is not None
            settings = dict(parse_qsl(parts.query, keep_blank_values=True))
        except ValueError:
            raise InputError(f"The source {bare} is no address of a database; check it.") from None
        if has_password or any(name.lower() in _SECRET for name in settings):
            raise InputError(
                f"The source {bare} carries a password; remove it, and put the whole address into an environment "
                "variable that ?dsn_env= names, or a PostgreSQL password into PGPASSWORD."
            )
        selection = Selection(settings.get("table"), settings.get("query"))
        variable = settings.get("dsn_env")
        shown = f"{bare}?{selection}" + (f"&dsn_env={variable}" if variable else "")
        selection.checked(bare)
        if variable is not None:
            url = os.environ.get(variable, "").strip()
            if not url:
                raise InputError(f"The source {shown} needs the environment variable {variable}; set it.")
            return cls(shown, selection, url)
        rest = {name: value for name, value in settings.items() if name not in _OURS}
        url = address.partition("?")[0] + (f"?{urlencode(rest, quote_via=quote)}" if rest else "")
        return cls(shown, selection, url)
