"""Reports: condensed tables shown to people, as pictures and as pages that need nothing else.

What belongs here: drawing and wording of results that exist. What does not: computing anything about the
data, and writing files; the caller stores what is returned.
"""

REPORT_VERSION = 1
"""Raise it when the same results give another page."""
