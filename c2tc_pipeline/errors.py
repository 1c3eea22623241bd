"""The one exception that means "the person at the keyboard can fix this".

Everything else that goes wrong is a bug or a broken machine and keeps its own type and traceback.
"""

from __future__ import annotations


class InputError(ValueError):
    """A mistake in a table, a setting or a command that its author can fix.

    The message is one sentence that says what is wrong, where, and what to do. The command line prints it without a
    traceback and exits with code 2; the pipeline fails the step without retrying it.

    Examples
    --------
    >>> raise InputError("Column 'income' is not in the table; choose one of: age, job.")
    Traceback (most recent call last):
    ...
    c2tc_pipeline.errors.InputError: Column 'income' is not in the table; choose one of: age, job.
    """
