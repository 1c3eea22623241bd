"""The types of assets' values, for annotations.

Dagster looks annotations up when the definitions load, and these classes bring torch and scikit-learn along, for which
loading must not wait. So only type checkers see them; Dagster sees ``Any``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.encoded import EncodedRows
    from c2tc_pipeline.condensation.plan import AllocationPlan
    from c2tc_pipeline.condensation.table import CondensedTable
    from c2tc_pipeline.encoding.base import TableEncoder
else:
    AllocationPlan = CondensedTable = EncodedRows = TableEncoder = Any

__all__ = ["AllocationPlan", "CondensedTable", "EncodedRows", "TableEncoder"]
