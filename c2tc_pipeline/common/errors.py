"""Messages for users, with suggested names, and another try after errors that pass.

Mistakes that users can fix are errors; remarks about their table are notices.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TypeVar

Value = TypeVar("Value")

_MAX_LENGTH = 1_000
_MAX_LISTED = 10
PAUSE_SECONDS = 0.5


class InputError(ValueError):
    """A mistake in a table, a setting or a command that its author can fix.

    The message is one sentence that says what is wrong, where, and what to do. The command line prints it without a
    traceback and exits with code 2; the pipeline fails the step without a retry. Messages quote names from untrusted
    files, so unprintable characters are escaped and long messages are shortened in the middle.
    """

    def __str__(self) -> str:
        text = one_line(super().__str__())
        return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH // 2]} ... {text[-_MAX_LENGTH // 4 :]}"


def one_line(text: str) -> str:
    """Escape line ends and other unprintable characters.

    >>> one_line("größe\\n\\ud800"), one_line("a\\u202eb")
    ('größe\\\\n\\\\ud800', 'a\\\\u202eb')
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)


def closest(name: str, known: Iterable[str]) -> str:
    """Suggest known names that are similar to a wrong one, or list them; a clause without the full stop.

    >>> closest("incom", ["age", "income"]), closest("zzz", ["age", "income"])
    ("did you mean 'income'", "choose one of: 'age', 'income'")
    """
    names = list(known)
    by_folded = {candidate.casefold().strip(): candidate for candidate in reversed(names)}
    close = difflib.get_close_matches(name.casefold().strip(), list(by_folded), n=3, cutoff=0.65)
    if close:
        return "did you mean " + " or ".join(repr(by_folded[folded]) for folded in close)
    if not names:
        return "there are none"
    listed = ", ".join(repr(candidate) for candidate in names[:_MAX_LISTED])
    more = len(names) - _MAX_LISTED
    return f"choose one of: {listed}" + (f" and {more} more" if more > 0 else "")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "cell"), counted(2_000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


@dataclass(frozen=True)
class Notice:
    """A remark about the input table and how it was handled, shown in the summary, the report and the dashboard."""

    kind: str
    message: str
    column: str | None = None

    def __str__(self) -> str:
        return self.message if self.column is None else f"Column {self.column!r}: {self.message}"

    def to_dict(self) -> dict[str, str | None]:
        """Return the notice as JSON values."""
        return asdict(self)


def with_retries(action: Callable[[], Value], tries: int, *, pause: float = PAUSE_SECONDS) -> Value:
    """Call an idempotent action up to ``tries`` times; after a ConnectionError wait, twice as long each time.

    >>> answers = iter([ConnectionError("busy"), 7])
    >>> def request():
    ...     answer = next(answers)
    ...     if isinstance(answer, Exception):
    ...         raise answer
    ...     return answer
    >>> with_retries(request, 3, pause=0)
    7
    """
    for attempt in range(tries - 1):
        try:
            return action()
        except ConnectionError:
            time.sleep(pause * 2**attempt)
    return action()
