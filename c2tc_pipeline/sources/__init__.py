"""Read tables from files, folders, databases, S3 and OpenML as Arrow batches, with the version of their source."""

READING_VERSION = 1
"""Raise it when the same bytes are read as other values."""
