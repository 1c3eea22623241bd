"""What a table is: its description, its columns' roles, how it is read, checked and split.

Nothing here knows about encoding or clustering.
"""

PREPARATION_VERSION = 4
"""Raise it when the same source gives other values, roles or reasons, classes, schema or split."""
