"""Target encoding of every categorical column, one of the paper's ablations."""

from __future__ import annotations

from collections.abc import Mapping

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.encoding.numeric import NumericPart
from c2tc_pipeline.encoding.parameters import check_at_least
from c2tc_pipeline.encoding.part import Part
from c2tc_pipeline.encoding.target import TargetPart
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.statistics import TableStatistics


class TargetEncoder(TableEncoder):
    """Smoothed target encoding of all categorical columns, with scaled numeric ones.

    Parameters
    ----------
    numeric : {"minmax", "quantile"}, default="minmax"
        Scaling of numeric columns.
    smoothing : float, default=10.0
        How many rows the overall class shares count for.
    scalar_target : bool, default=False
        Average class numbers, as printed in the paper, instead of one column per class.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong.
    random_state : int, default=0
        Determines the rows that quantiles are taken from.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"job": ["nurse", "cook", "nurse"]})
    >>> TargetEncoder().fit_transform(rows, [1, 0, 1]).ravel()
    array([1., 0., 1.], dtype=float32)
    """

    def __init__(
        self,
        numeric: str = "minmax",
        *,
        smoothing: float = 10.0,
        scalar_target: bool = False,
        roles: Mapping[str, Role | str] | None = None,
        random_state: int = 0,
    ) -> None:
        self.numeric = numeric
        self.smoothing = smoothing
        self.scalar_target = scalar_target
        self.roles = roles
        self.random_state = random_state

    def _fit_parts(self, statistics: TableStatistics, columns: list[str], progress: Progress | None) -> list[Part]:
        check_at_least(0, smoothing=self.smoothing)
        numeric = [name for name in columns if self.roles_[name].role is Role.NUMERIC]
        parts: list[Part] = [NumericPart.fit(statistics, numeric, self.numeric)]
        categorical = [name for name in columns if name not in numeric]
        if categorical:
            if not statistics.is_labelled:
                raise InputError(f"Column {categorical[0]!r} is encoded by the label's mean: pass the labels y to fit.")
            names = [str(value) for value in self.classes_]
            parts.append(
                TargetPart.fit(statistics, categorical, names, smoothing=self.smoothing, scalar=self.scalar_target)
            )
        return parts
