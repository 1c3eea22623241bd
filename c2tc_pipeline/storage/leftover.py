"""What a leftover is: bytes that no reader will ever ask for, of writers that lost or were killed.

What belongs here: the record, and the rule by which one may be removed. Where leftovers are found is in
:mod:`c2tc_pipeline.storage.store_leftovers` and :mod:`c2tc_pipeline.storage.folder_leftovers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Whether a leftover may go."""

    READY = "ready"
    YOUNG = "too young"
    HELD = "in use"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Leftover:
    """Files that belong to nothing.

    Parameters
    ----------
    address : str
        Where they are.
    what : str
        What they are, in a few words.
    size : int
        Bytes.
    state : State
        Whether they may be removed now.

    Examples
    --------
    >>> str(Leftover("store/encoder/people/data/W00", "files of a writer that published nothing", 2048, State.YOUNG))
    'store/encoder/people/data/W00: files of a writer that published nothing, 2,048 bytes (too young)'
    """

    address: str
    what: str
    size: int
    state: State

    def __str__(self) -> str:
        note = "" if self.state is State.READY else f" ({self.state})"
        return f"{self.address}: {self.what}, {self.size:,} bytes{note}"


@dataclass(frozen=True)
class Rule:
    """When a leftover may be removed.

    Parameters
    ----------
    now : float
        The time, in seconds.
    older_than : float
        How long, in seconds, nothing of it may have changed. What has a time in the future counts as new.

    Examples
    --------
    >>> rule = Rule(now=1000.0, older_than=60.0)
    >>> [str(rule.state(modified, held=False)) for modified in (900.0, 999.0, 5000.0)]
    ['ready', 'too young', 'too young']
    """

    now: float
    older_than: float

    def state(self, modified: float, *, held: bool) -> State:
        """Return whether something that changed last at a moment may go."""
        if held:
            return State.HELD
        return State.READY if self.now - modified >= self.older_than else State.YOUNG
