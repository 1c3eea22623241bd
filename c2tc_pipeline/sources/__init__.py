"""Where tables come from: files, folders of parts, databases, S3 and OpenML behind one interface of Arrow batches.

What belongs here: how a table is reached and read, and in which state its source is. What does not: what its columns
are for.
"""

from __future__ import annotations

from c2tc_pipeline.sources.addresses import address_of, open_source, resolve_address
from c2tc_pipeline.sources.source import BATCH_ROWS, Source, TableHeader
from c2tc_pipeline.sources.values import ValuesHash

__all__ = ["BATCH_ROWS", "Source", "TableHeader", "ValuesHash", "address_of", "open_source", "resolve_address"]
