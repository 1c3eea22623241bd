"""Counts what an instance is asked: statements to its database, and records that it hands out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import dagster as dg
import sqlalchemy

# The ways in which the pipeline itself asks for events.
_READERS = ("get_latest_tags_by_partition", "get_latest_storage_id_by_partition", "fetch_materializations")


@contextmanager
def counted(instance: dg.DagsterInstance) -> Iterator[Counter[str]]:
    """Count ``statements`` of any instance in this process, and ``records`` that this one hands out to the pipeline."""
    counts: Counter[str] = Counter()

    def statement(*_: Any) -> None:
        counts["statements"] += 1

    def counting(reader: Callable[..., Any]) -> Callable[..., Any]:
        def read(*arguments: Any, **options: Any) -> Any:
            found = reader(*arguments, **options)
            counts["records"] += len(getattr(found, "records", found))
            return found

        return read

    sqlalchemy.event.listen(sqlalchemy.engine.Engine, "before_cursor_execute", statement)
    try:
        with ExitStack() as stack:
            for name in _READERS:
                holder = instance if hasattr(instance, name) else instance.event_log_storage
                stack.enter_context(patch.object(holder, name, counting(getattr(holder, name))))
            yield counts
    finally:
        sqlalchemy.event.remove(sqlalchemy.engine.Engine, "before_cursor_execute", statement)
