"""From Arrow batches to one data frame in memory, if there is enough of it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT_VARIABLE = "C2TC_MOST_TABLE_MB"


def within_memory(batches: Iterable[pa.RecordBatch], shown: str) -> Iterator[pa.RecordBatch]:
    """Pass batches on as long as all of them together fit into this machine's memory.

    A file of a few kilobytes can unpack to a terabyte, and a table may just be too large: both end in one sentence
    instead of a killed process.

    Parameters
    ----------
    batches : iterable of RecordBatch
        The table.
    shown : str
        Its source, for the message.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"a": [1, 2]})
    >>> sum(batch.num_rows for batch in within_memory([batch, batch], "t.csv"))
    4
    """
    limit = most_table_bytes()
    size = rows = 0
    for batch in batches:
        # A cell counts even where Arrow needs nothing for it.
        size += max(batch.nbytes, batch.num_rows * max(batch.num_columns, 1))
        rows += batch.num_rows
        if size > limit:
            raise InputError(
                f"The table {shown} needs more than {limit / 1e6:,.0f} MB of memory, after {rows:,} rows; read fewer "
                f"columns or rows, or raise {LIMIT_VARIABLE} (megabytes) if the machine has more."
            )
        yield batch


def most_table_bytes() -> int:
    """Return how large a table may be in memory: ``$C2TC_MOST_TABLE_MB``, or half of what this machine has."""
    chosen = os.environ.get(LIMIT_VARIABLE, "").strip()
    if chosen:
        if not chosen.isascii() or not chosen.isdigit() or int(chosen) < 1:
            raise InputError(f"The variable {LIMIT_VARIABLE} is {chosen!r}; give a number of megabytes.")
        return int(chosen) * 10**6
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_allowances()]) // 2


def _allowances() -> list[int]:
    """Return what a container may use, where this is one."""
    found = []
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return found


def frame_of(batches: Iterable[pa.RecordBatch], shown: str) -> pd.DataFrame:
    """Join batches to a table; whole numbers and flags stay what they are where cells are missing.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Of one schema, one at least.
    shown : str
        Their source, for messages.

    Returns
    -------
    DataFrame
        Rows numbered from 0.

    Raises
    ------
    InputError
        When the table does not fit into memory, or holds values that Python has no place for.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame_of([pa.record_batch({"a": [1, None]}), pa.record_batch({"a": [3]})], "t.csv")["a"].dtype
    Int64Dtype()
    """
    import pyarrow as pa

    # In a list, so that nobody but the conversion holds on to it.
    held = [pa.Table.from_batches(within_memory(batches, shown))]
    try:
        return in_one_piece(_converted(held))
    except (ValueError, ArithmeticError, TypeError):
        raise InputError(
            f"The table {shown} holds values that their own types do not allow, such as the 25th hour of a day; write "
            "it anew."
        ) from None


def in_one_piece(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose strings are in one piece each; a table without strings in several is returned as it is.

    Arrow joins all pieces of a column whenever rows are picked from it. Whoever picks rows block by block would join
    the whole column for every block.

    Parameters
    ----------
    frame : DataFrame
        The table, which is left as it is.

    Examples
    --------
    >>> parts = pd.concat([pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["y"]})], ignore_index=True)
    >>> in_one_piece(parts)["a"].array.__arrow_array__().num_chunks
    1
    """
    joined = frame
    for position, (_, column) in enumerate(frame.items()):
        array = column.array
        if isinstance(array, pd.arrays.ArrowExtensionArray) and array.__arrow_array__().num_chunks > 1:
            joined = frame.copy(deep=False) if joined is frame else joined
            joined.isetitem(position, array.take(np.arange(len(array))))
    return joined


def _converted(held: list[pa.Table]) -> pd.DataFrame:
    import pyarrow.types as types

    table = held.pop()
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
