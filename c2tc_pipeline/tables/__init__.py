"""Tables: catalogue, roles, blocks, statistics, split, schema.

Nothing here knows about encoding or clustering.
"""

PREPARATION_VERSION = 4
"""Raise it when the same source gives other values, roles or reasons, classes, schema or split."""
