"""Encode, allocate, cluster: from a table to a condensed table.

What belongs here: the method end to end, its result, and how the result looks in the original schema. What does not:
how good the result is (see :mod:`c2tc_pipeline.evaluation`) and how it is shown (:mod:`c2tc_pipeline.reports`).
"""

from c2tc_pipeline.condensation.api import condense
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.representatives import SingletonWarning
from c2tc_pipeline.condensation.table import CondensedTable

__all__ = ["CondensedTable", "Condenser", "SingletonWarning", "condense"]
