"""Where tables come from: files, folders of parts, databases, S3 and OpenML behind one interface of Arrow batches.

What belongs here: how a table is reached and read, and in which state its source is. What does not: what its columns
are for.
"""

READING_VERSION = 1
"""Raise it when the same bytes are read as other values."""
