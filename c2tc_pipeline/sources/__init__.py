"""Read tables from files, folders, lakehouses, databases, the web and OpenML as Arrow batches, with a version."""

READING_VERSION = 2
"""Raise it when the same bytes are read as other values."""
