"""One line of the speed table: what was measured, beside what, and whether that is what it should be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

import pandas as pd

_TYPES = {"int": "int64", "float": "float64", "float | None": "float64", "bool": "bool", "bool | None": "boolean"}


@dataclass(frozen=True, kw_only=True)
class SpeedRow:
    """A measurement and its reference.

    Parameters
    ----------
    part : str
        The part of the benchmark.
    what : str
        What was measured, in words.
    table : str
        The table it was measured on; empty for made rows.
    ratio : float or None
        Condensed rows as a share of the rows.
    repeats : int
        How often ours was measured; references are measured once, unless they are quick.
    seconds, seconds_least, seconds_most : float or None
        Median, least and most.
    reference : str
        What it is compared with.
    reference_seconds, times_faster : float or None
        How long that took, and how many times longer than ours.
    at_least : bool
        Whether the reference was cut off, so that it would have taken longer.
    amount, reference_amount : float or None
        What was measured beside the time, or instead of it.
    unit : str
        What the amounts are.
    objective, reference_objective : float or None
        The objective of the allocation, over all rows.
    aim : str
        What should be reached.
    holds : bool or None
        Whether it is; None where there is no aim, or where it can't be told.
    probe_seconds : float or None
        The longest time that the probe of the machine's noise took around these measurements.
    noisy : bool
        Whether that is much longer than usual.
    note : str
        What else there is to say.

    Examples
    --------
    >>> SpeedRow(part="whole", what="condense", seconds=2.0, reference="k-means", reference_seconds=9.0).sentence()
    'whole: condense: 2 s, 4.5 times as fast as k-means (9 s)'
    """

    part: str
    what: str
    table: str = ""
    ratio: float | None = None
    repeats: int = 1
    seconds: float | None = None
    seconds_least: float | None = None
    seconds_most: float | None = None
    reference: str = ""
    reference_seconds: float | None = None
    times_faster: float | None = None
    at_least: bool = False
    amount: float | None = None
    reference_amount: float | None = None
    unit: str = ""
    objective: float | None = None
    reference_objective: float | None = None
    aim: str = ""
    holds: bool | None = None
    probe_seconds: float | None = None
    noisy: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.times_faster is None and self.reference_seconds is not None and self.seconds:
            object.__setattr__(self, "times_faster", self.reference_seconds / self.seconds)

    def sentence(self) -> str:
        """Return the row as a line of text, for people who wait for the next one."""
        where = f"{self.table}{'' if self.ratio is None else f' at {100 * self.ratio:g} %'}"
        said = [] if self.seconds is None else [f"{self.seconds:.3g} s"]
        if self.times_faster is not None:
            took = "" if self.reference_seconds is None else f" ({self.reference_seconds:.3g} s)"
            least = "at least " if self.at_least else ""
            said.append(f"{least}{self.times_faster:.3g} times as fast as {self.reference}{took}")
        if self.amount is not None:
            beside = "" if self.reference_amount is None else f" against {self.reference_amount:.4g}"
            said.append(f"{self.amount:.4g}{beside} {self.unit}")
        if self.objective is not None and self.reference_objective is not None:
            said.append(f"objective {self.objective:.5g} against {self.reference_objective:.5g}")
        return f"{', '.join(filter(None, [self.part, where]))}: {self.what}: {', '.join(said)}"


def to_frame(rows: Iterable[SpeedRow]) -> pd.DataFrame:
    """Return rows as a tidy table, with the same columns and types whatever was measured.

    Examples
    --------
    >>> frame = to_frame([SpeedRow(part="stages", what="read", seconds=1.5)])
    >>> frame["seconds"].tolist(), frame["holds"].isna().tolist()
    ([1.5], [True])
    """
    types = {field.name: _TYPES.get(str(field.type), "str") for field in fields(SpeedRow)}
    return pd.DataFrame([asdict(row) for row in rows], columns=list(types)).astype(types)


def reaches(times_faster: float | None, least: float, at_least: bool) -> bool | None:
    """Return whether a reference took so many times longer; None when it was cut off before that could be told.

    Examples
    --------
    >>> reaches(50.0, 40, False), reaches(30.0, 40, False), reaches(30.0, 40, True)
    (True, False, None)
    """
    if times_faster is None:
        return None
    return True if times_faster >= least else (None if at_least else False)
