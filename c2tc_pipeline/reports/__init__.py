"""Reports: condensed tables and scores as figures, Markdown and self-contained pages; nothing here writes files."""

REPORT_VERSION = 3
"""Raise it when the same results give another page."""
