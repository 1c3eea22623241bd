"""What is read of a database: one of its tables, or the result of a query."""

from __future__ import annotations

from dataclasses import dataclass

from c2tc_pipeline.common.errors import InputError


@dataclass(frozen=True)
class Selection:
    """A table or a query.

    Parameters
    ----------
    table : str or None
        A table's name, after its schema and a dot where it has one.
    query : str or None
        A SELECT.

    Examples
    --------
    >>> Selection(table="sales.people").sql()
    'SELECT * FROM "sales"."people"'
    >>> Selection(query="SELECT 1 AS a;").sql(["a"])
    'SELECT "a" FROM (SELECT 1 AS a) AS selected'
    """

    table: str | None = None
    query: str | None = None

    def checked(self, shown: str) -> Selection:
        """Return itself, or say that one of the two is needed."""
        if (self.table is None) == (self.query is None):
            raise InputError(f"The source {shown} must say what to read: give either ?table= or ?query=.")
        return self

    def __str__(self) -> str:
        return f"table={self.table}" if self.table is not None else "query=..."

    @property
    def name(self) -> str:
        """What the table may be called."""
        return self.table.rpartition(".")[2] if self.table is not None else "query"

    def origin(self) -> str:
        """Return what stands behind FROM."""
        if self.table is not None:
            return ".".join(quoted(part) for part in self.table.split("."))
        return f"({(self.query or '').strip().rstrip(';').rstrip()}) AS selected"

    def sql(self, columns: list[str] | None = None) -> str:
        """Return the statement that reads it, or some of its columns."""
        chosen = "*" if columns is None else ", ".join(quoted(name) for name in columns)
        return f"SELECT {chosen} FROM {self.origin()}"


def quoted(name: str) -> str:
    """Quote a name as standard SQL does.

    Examples
    --------
    >>> quoted('a "b" c')
    '"a ""b"" c"'
    """
    return '"' + name.replace('"', '""') + '"'
