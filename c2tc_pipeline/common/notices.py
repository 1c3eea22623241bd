"""Notices: what was done to an imperfect table, said to the person who owns it.

A notice is data, not a log line: it travels with the result, into the summary, the report and the dashboard.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Notice:
    """One thing that was noticed about the input and what was done about it.

    Parameters
    ----------
    kind : str
        A short stable identifier, such as ``"constant_column"``, for code that filters notices.
    message : str
        One sentence for people: what was found, what was done, how to override it.
    column : str or None
        The column concerned, or None when the notice is about the whole table.

    Examples
    --------
    >>> str(Notice("constant_column", "holds one value only and was dropped", column="version"))
    "Column 'version': holds one value only and was dropped"
    """

    kind: str
    message: str
    column: str | None = None

    def __str__(self) -> str:
        return self.message if self.column is None else f"Column {self.column!r}: {self.message}"

    def to_dict(self) -> dict[str, str | None]:
        """Return the notice as plain JSON values."""
        return asdict(self)
