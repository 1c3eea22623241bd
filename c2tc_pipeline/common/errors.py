"""The one exception that means "the person at the keyboard can fix this", and text that is safe to print.

Everything else that goes wrong is a bug or a broken machine and keeps its own type and traceback.
"""

from __future__ import annotations

_LONGEST = 1_000


class InputError(ValueError):
    """A mistake in a table, a setting or a command that its author can fix.

    The message is one sentence that says what is wrong, where, and what to do. The command line prints it without a
    traceback and exits with code 2; the pipeline fails the step without retrying it. Messages repeat names from files
    that nobody has looked at yet, so that they are shown in one line, without characters that steer a terminal, and
    shortened in the middle where a name is endless.

    Examples
    --------
    >>> raise InputError("Column 'income' is not in the table; choose one of: age, job.")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.common.errors.InputError: Column 'income' is not in the table; choose one of: age, job.
    >>> print(InputError("There is no file a\\x1b[31m.csv."))
    There is no file a\\x1b[31m.csv.
    """

    def __str__(self) -> str:
        text = one_line(super().__str__())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 4 :]}"


def one_line(text: str) -> str:
    """Return a text with escapes for line ends and for whatever else does not print.

    Examples
    --------
    >>> one_line("größe\\n\\ud800"), one_line("a\\u202eb")
    ('größe\\\\n\\\\ud800', 'a\\\\u202eb')
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in text)
