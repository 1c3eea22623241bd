"""Herding: rows whose mean follows the mean of their class."""

from __future__ import annotations

import numpy as np

from c2tc_pipeline.bench.rivals import ClassRival, CondensedClass, centred_float32


class Herding(ClassRival):
    """Herding (Welling, ICML 2009) on the encoded rows as features; deterministic, ``random_state`` has no effect.

    The paper assumes features of equal norm, which rows of a table are not: half a row's squared norm is subtracted
    from its product with the weight vector, so that each pick is exactly the row that brings the mean of the picks
    nearest to the class mean. No row is picked twice, where Welling allows it. Each pick costs one product of a matrix
    and a vector.
    """

    def condense_class(self, X: np.ndarray, count: int, rng: np.random.Generator) -> CondensedClass:
        # Around the class mean, mean minus row is minus the row.
        rows = centred_float32(X)
        half_squares = np.einsum("ij,ij->i", rows, rows) / 2
        weight = np.zeros(rows.shape[1])
        products = np.empty(len(rows), dtype=np.float32)
        chosen = np.empty(count, dtype=np.int64)
        for pick in range(count):
            np.dot(rows, weight.astype(np.float32), out=products)
            products -= half_squares
            best = int(products.argmax())
            chosen[pick] = best
            weight -= rows[best]
            half_squares[best] = np.inf
        return CondensedClass(chosen=chosen)
