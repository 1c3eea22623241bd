"""Read tables from files, folders, databases, S3 and OpenML as Arrow batches, and tell the version of their source.

What columns are used for is decided in :mod:`c2tc_pipeline.tables`.
"""

READING_VERSION = 1
"""Raise it when the same bytes are read as other values."""
