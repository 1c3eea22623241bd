"""What a report needs to know of a condensed table, and nothing more.

The report is written against this contract and not against a class, so that anything with these attributes
can be reported on: a table just condensed, one read back from disk, or a small stand-in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import pandas as pd

from c2tc_pipeline.allocation.result import Allocation
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.common.errors import Notice


class ReportSubject(Protocol):
    """A condensed table as the report sees it; everything per class is in the order of ``classes``."""

    @property
    def label_name(self) -> str:
        """The name of the label column."""

    @property
    def classes(self) -> Sequence[Any]:
        """The class values."""

    @property
    def class_rows(self) -> Sequence[int]:
        """Source rows per class."""

    @property
    def allocation(self) -> Allocation:
        """Condensed rows per class, and how they were found."""

    @property
    def curves(self) -> Sequence[ClassCurve] | None:
        """Loss curves per class, or None when the allocator drew none."""

    @property
    def weight(self) -> pd.Series:
        """Source rows behind each condensed row."""

    @property
    def original(self) -> pd.DataFrame:
        """The condensed rows in the original schema, the label last."""

    @property
    def projection(self) -> pd.DataFrame:
        """Source and condensed rows in two dimensions: columns x, y, label, kind and weight."""

    @property
    def notices(self) -> Sequence[Notice]:
        """What was noticed about the input."""

    @property
    def roles(self) -> pd.DataFrame:
        """One row a column: column, role, encoding, reason, distinct and missing."""

    @property
    def summary(self) -> dict[str, Any]:
        """The headline numbers, settings, versions and seconds by stage, as JSON values."""
