"""From Arrow batches to one data frame in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import pyarrow as pa


def frame_of(batches: Iterable[pa.RecordBatch]) -> pd.DataFrame:
    """Join batches to a table; whole numbers and flags stay what they are where cells are missing.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Of one schema, one at least.

    Returns
    -------
    DataFrame
        Rows numbered from 0.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame_of([pa.record_batch({"a": [1, None]}), pa.record_batch({"a": [3]})])["a"].dtype
    Int64Dtype()
    """
    import pyarrow as pa
    import pyarrow.types as types

    table = pa.Table.from_batches(batches)
    names = table.column_names
    with_gaps = {
        name: _with_gaps(table.column(name))
        for name in names
        if table.column(name).null_count
        and (types.is_integer(table.schema.field(name).type) or types.is_boolean(table.schema.field(name).type))
    }
    table = table.drop_columns(list(with_gaps))
    rows = table.num_rows
    # Each column's Arrow memory is given back as soon as it is converted.
    frame = table.to_pandas(self_destruct=True)
    del table
    if not with_gaps:
        return frame.reset_index(drop=True)
    columns = {name: with_gaps[name] if name in with_gaps else frame[name] for name in names}
    return pd.DataFrame(columns, index=pd.RangeIndex(rows), copy=False)


def _with_gaps(values: pa.ChunkedArray) -> pd.Series[Any]:
    """Convert to pandas' types with a mask: floats would round large numbers."""
    import pyarrow.types as types

    missing = np.asarray(values.is_null().to_numpy(), dtype=bool)
    if types.is_boolean(values.type):
        return pd.Series(pd.arrays.BooleanArray(np.asarray(values.fill_null(False).to_numpy(), dtype=bool), missing))
    return pd.Series(pd.arrays.IntegerArray(np.array(values.fill_null(0).to_numpy()), missing))
