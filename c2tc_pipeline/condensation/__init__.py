"""Encode, allocate, cluster: from a table to a condensed table.

What belongs here: the method end to end, and its result, also in the original schema. Its quality is measured in
:mod:`c2tc_pipeline.evaluation` and shown in :mod:`c2tc_pipeline.reports`.
"""

CONDENSED_VERSION = 11
"""Raise it when the same clusters give another condensed table."""
WEIGHTS_VERSION = 1
"""Raise it when the same rows get other column weights."""
EXPANSION_VERSION = 2
"""Raise it when the same condensed table gives other training rows."""

ARTEFACT_KIND = "condensed-table"
"""What manifests of saved condensed tables call them."""
