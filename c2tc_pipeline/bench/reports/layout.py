"""Which part of an experiment's scores is a row of its table and which a column.

What belongs here: the choice, the check that the scores fit it, and the order of rows and columns. What a cell says is
in ``experiment_table.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from c2tc_pipeline.bench.statistics.runs import WHOLE
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports.wording import share

DIMENSIONS = ("table", "ratio", "model", "space", "method", "variant")


@dataclass(frozen=True)
class Layout:
    """How a table of results is laid out.

    Parameters
    ----------
    rows : sequence of str
        Columns of the scores that tell rows apart; each metric is a row of its own.
    columns : str or sequence of str
        Columns of the scores that tell columns apart: ``"method"``, ``("space", "method")``, ``"model"``,
        ``"variant"``.
    metrics : sequence of str
        Which scores.
    paper : {"brackets", "column"}
        Whether the paper's numbers follow ours in brackets or in a column of their own.
    names : mapping of str to str
        What values are called in heads; an empty variant is ``"full"`` unless it is named here.

    Examples
    --------
    >>> Layout(columns="variant").shown
    ('table', 'ratio', 'variant')
    """

    rows: Sequence[str] = ("table", "ratio")
    columns: str | Sequence[str] = ("method",)
    metrics: Sequence[str] = METRICS
    paper: Literal["brackets", "column"] = "brackets"
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def across(self) -> tuple[str, ...]:
        """What tells columns apart, always as a tuple."""
        return (self.columns,) if isinstance(self.columns, str) else tuple(self.columns)

    @property
    def shown(self) -> tuple[str, ...]:
        """All that tells cells apart but the metric."""
        return (*self.rows, *self.across)

    def name(self, dimension: str, value: Any) -> str:
        """Return what a value is called.

        Examples
        --------
        >>> Layout().name("ratio", 0.001), Layout().name("variant", ""), Layout(names={"k_center": "k-center"}).name(
        ...     "method", "k_center")
        ('0.1 %', 'full', 'k-center')
        """
        if dimension == "ratio":
            return share(float(value))
        return self.names.get(str(value), str(value) or "full")

    def fitted(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Return the scores that the layout shows, the whole table's repeated at every ratio.

        Raises
        ------
        InputError
            When the layout names what is not a column, or would put different things into one cell.

        Examples
        --------
        >>> two = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": ["hcfe", "label"],
        ...                     "method": "ours", "variant": ""})
        >>> Layout().fitted(two)
        Traceback (most recent call last):
        ...
        c2tc_pipeline.common.errors.InputError: The scores hold several values of 'space' (hcfe, label), which the
        layout does not show; keep one of them or add it to the rows or columns.
        """
        for name in self.shown:
            if name not in DIMENSIONS:
                raise InputError(f"The layout names {name!r}; choose from: {', '.join(DIMENSIONS)}.")
        whole = scores["method"] == WHOLE
        parts = [scores[~whole]]
        if "method" in self.shown and whole.any():
            parts.append(_at_every_ratio(scores[whole], scores[~whole]) if "ratio" in self.shown else scores[whole])
        for part in parts:
            for name in DIMENSIONS:
                hidden = name not in self.shown and not (name == "ratio" and (part["method"] == WHOLE).all())
                if hidden and part[name].nunique() > 1:
                    values = ", ".join(str(value) or "''" for value in part[name].unique())
                    raise InputError(
                        f"The scores hold several values of {name!r} ({values}), which the layout does not show; "
                        "keep one of them or add it to the rows or columns."
                    )
        return pd.concat(parts, ignore_index=True)

    def ordered(self, cells: pd.DataFrame, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the different values of some columns in the order in which they are shown.

        Values come as they appear, ratios from the largest to the smallest, the whole table last.
        """
        place: dict[str, dict[Any, int]] = {}
        for name in names:
            values = list(cells[name].unique())
            if name == "ratio":
                values.sort(reverse=True)
            values.sort(key=lambda value: value == WHOLE)
            place[name] = {value: index for index, value in enumerate(values)}
        keys = list(dict.fromkeys(cells[list(names)].itertuples(index=False, name=None)))
        return sorted(keys, key=lambda key: [place[name][value] for name, value in zip(names, key, strict=True)])


def _at_every_ratio(whole: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Repeat the whole table's scores at every ratio of the same table; keep their own where there is no other."""
    ratios = others[["table", "ratio"]].drop_duplicates()
    repeated = whole.rename(columns={"ratio": "own"}).merge(ratios, on="table", how="left")
    return repeated.assign(ratio=repeated["ratio"].fillna(repeated["own"])).drop(columns="own")
