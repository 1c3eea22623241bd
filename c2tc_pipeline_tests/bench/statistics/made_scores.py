"""Small frames of scores, written down by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

FIXED: dict[str, Any] = {
    "experiment": "overall",
    "table": "t",
    "ratio": 0.01,
    "space": "hcfe",
    "variant": "",
    "model": "mlp",
    "model_seed": 0,
    "status": "ok",
    "rows": 10,
    **dict.fromkeys(("auc", "log_loss", "brier"), float("nan")),
}


def runs(method: str, accuracies: Sequence[float], **fields: Any) -> pd.DataFrame:
    """Return one row an accuracy, each on a split of its own; macro-F1 is a tenth lower."""
    frame = pd.DataFrame({"accuracy": list(accuracies), "split": range(len(accuracies)), "seed": 0})
    frame["macro_f1"] = frame["accuracy"] - 0.1
    return frame.assign(method=method, **{**FIXED, **fields})


def unfinished(method: str, status: str = "OOT", splits: int = 2, **fields: Any) -> pd.DataFrame:
    """Return runs that ended without a score."""
    return runs(method, [float("nan")] * splits, status=status, **fields)


def together(*parts: pd.DataFrame) -> pd.DataFrame:
    """Put frames below each other."""
    return pd.concat(parts, ignore_index=True)
