"""Reports: condensed tables shown to people, as pictures and as pages that need nothing else.

What belongs here: drawing and wording of results that exist. What does not: computing anything about the
data, and writing files; the caller stores what is returned.
"""

from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline.reports.leaderboard import render_leaderboard, render_leaderboard_markdown
from c2tc_pipeline.reports.markdown import picture_markdown
from c2tc_pipeline.reports.table_report import render_table_report

__all__ = [
    "picture_markdown",
    "render_leaderboard",
    "render_leaderboard_markdown",
    "render_report",
    "render_table_report",
]
