"""Reports: a condensed table shown to people, as pictures and as one page that needs nothing else.

What belongs here: drawing and wording of results that exist. What does not: computing anything about the
data, and writing files; the caller stores what :func:`render_report` returns.
"""

from c2tc_pipeline.reports.html import render_report

__all__ = ["render_report"]
