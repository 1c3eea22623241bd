"""What became of a case: a value, a refusal in one sentence, or a crash."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Literal

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.memory import peak_memory

SECONDS = 10.0
"""Of the processor. A case that takes longer hangs: a good one takes milliseconds."""
MEGABYTES = 512
"""A case that makes the process grow by more is a bomb: the inputs are a megabyte at most."""
LONGEST_SENTENCE = 1500


@dataclass(frozen=True)
class Verdict:
    """How a case ended.

    Parameters
    ----------
    kind : {"value", "refusal", "crash"}
        A crash is anything but a value or the project's own error with one sentence.
    told : str
        The sentence, or what crashed and where.
    where : str
        Of a crash: the innermost line of the project, by which crashes are told apart.
    """

    kind: Literal["value", "refusal", "crash"]
    told: str = ""
    where: str = ""


def judge(call: Callable[[], object]) -> Verdict:
    """Run one case in this process."""
    before = _peak_megabytes()
    try:
        with _bounded_time():
            call()
        verdict = Verdict("value")
    except InputError as refusal:
        told = str(refusal)
        fault = what_is_wrong_with(told)
        verdict = Verdict("refusal", told) if fault is None else Verdict("crash", f"{fault}: {told!r}", _place(refusal))
    except Exception as error:
        verdict = Verdict("crash", f"{type(error).__name__}: {str(error)[:300]}", _place(error))
    grown = _peak_megabytes() - before
    if verdict.kind != "crash" and grown > MEGABYTES:
        return Verdict("crash", f"memory rose by {grown} MB", f"memory, {verdict.told[:40]}")
    return verdict


def what_is_wrong_with(sentence: str) -> str | None:
    """Say why a text is not one clear sentence, or return None.

    Examples
    --------
    >>> what_is_wrong_with("There is no file a.csv; check the path."), what_is_wrong_with("a\\nb.")
    (None, 'holds characters that no terminal should get')
    """
    if not sentence.isprintable():
        return "holds characters that no terminal should get"
    if len(sentence) > LONGEST_SENTENCE:
        return f"has {len(sentence)} characters"
    if not sentence.endswith(".") or not sentence[:1].isprintable() or len(sentence) < 20:
        return "is no sentence"
    return None


class _TookTooLong(Exception):
    """The alarm rang."""


@contextmanager
def _bounded_time() -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise _TookTooLong(f"more than {SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(error: Exception) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/c2tc_pipeline/" in frame.filename]
    inner = frames[-1] if frames else None
    file = inner.filename.rpartition("/c2tc_pipeline/")[2] if inner else "outside"
    return f"{type(error).__name__} at {file}:{inner.lineno if inner else 0}"


def _peak_megabytes() -> int:
    return peak_memory() // 2**20
