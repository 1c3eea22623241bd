"""Make big tables small without losing what models learn from them.

>>> from c2tc_pipeline import condense, Condenser, HybridEncoder, CondensedTable
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.api import condense
    from c2tc_pipeline.condensation.condenser import Condenser
    from c2tc_pipeline.condensation.table import CondensedTable
    from c2tc_pipeline.encoding.hybrid import HybridEncoder
    from c2tc_pipeline.evaluation.row_worth import row_worth
    from c2tc_pipeline.evaluation.scores import evaluate

__all__ = ["CondensedTable", "Condenser", "HybridEncoder", "condense", "evaluate", "row_worth"]
__version__ = "0.2.0"

_HOME = {
    "CondensedTable": "c2tc_pipeline.condensation.table",
    "Condenser": "c2tc_pipeline.condensation.condenser",
    "HybridEncoder": "c2tc_pipeline.encoding.hybrid",
    "condense": "c2tc_pipeline.condensation.api",
    "evaluate": "c2tc_pipeline.evaluation.scores",
    "row_worth": "c2tc_pipeline.evaluation.row_worth",
}


def __getattr__(name: str) -> Any:
    """Import on first use: torch takes seconds, and `c2tc --help` should not."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names, which are imported on first use."""
    return sorted([*__all__, "__version__"])
