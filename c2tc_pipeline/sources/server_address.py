"""The address of a table on a database server: where, and which table or query; passwords have no place in it.

    postgresql://user@host:5432/sales?table=public.people
    postgresql://?table=people&dsn_env=WAREHOUSE
    mysql+pymysql://user@host/sales?query=SELECT+...

With ``dsn_env`` the environment variable of that name holds the address of the database, password and all.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.location import carries_user, without_secrets
from c2tc_pipeline.sources.selection import Selection

_OURS = ("table", "query", "dsn_env")
# Parts of the names of settings whose values are nobody's business.
_SECRET = ("pass", "pwd", "token", "secret", "credential", "access_key", "api_key", "apikey", "private_key")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


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
            # A user alone is no secret; where a password is not encoded, what comes before the host ends anywhere.
            has_password = parts.password is not None or (carries_user(address) and "@" not in parts.netloc)
            settings = dict(parse_qsl(parts.query, keep_blank_values=True))
            # Bytes of a command line that are no text can't be sent to a server.
            address.encode()
        except ValueError:
            raise InputError(f"The source {bare} is no address of a database; check it.") from None
        if has_password or any(part in name.lower() for name in settings for part in _SECRET):
            raise InputError(
                f"The source {bare} carries a password; remove it, and put the whole address into an environment "
                "variable that ?dsn_env= names, or a PostgreSQL password into PGPASSWORD."
            )
        selection = Selection(settings.get("table"), settings.get("query"))
        variable = settings.get("dsn_env")
        if variable is not None and not _VARIABLE.fullmatch(variable):
            # Not repeated: whoever mixes them up has put the address itself here, password and all.
            raise InputError(
                f"The source {bare} has something else than the name of an environment variable in dsn_env; put the "
                "address of the database into a variable, and its name there."
            )
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
