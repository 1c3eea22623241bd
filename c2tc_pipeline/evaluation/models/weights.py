"""Sample weights as models take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from c2tc_pipeline.common.errors import InputError


def checked_weights(sample_weight: Any, rows: np.ndarray) -> np.ndarray:
    """Return one weight a row, 1 by default; refuse negative ones and all zeros.

    Examples
    --------
    >>> checked_weights(None, np.zeros((2, 1))).tolist()
    [1.0, 1.0]
    """
    if sample_weight is None:
        return np.ones(len(rows), dtype=rows.dtype)
    weights = np.asarray(check_array(sample_weight, ensure_2d=False, dtype=rows.dtype, input_name="sample_weight"))
    if weights.shape != (len(rows),):
        raise InputError(f"Sample weights have the shape {weights.shape}; give one for each of {len(rows)} rows.")
    if (weights < 0).any():
        raise InputError(f"Sample weight {weights.min():g} is negative; give weights of at least 0.")
    if not weights.any():
        raise InputError("All sample weights are zero, so that no row is left to learn from; give one that is above 0.")
    return weights
