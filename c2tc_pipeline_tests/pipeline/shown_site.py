"""A site on which one table went all the way, for tests that look at its pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from c2tc_pipeline_tests.pipeline.live import Site

TABLE = "people"
CELL = f"{TABLE}|0.1"
CLOSED = "[...document.querySelectorAll('a')].filter(link => link.innerText == '[Show Markdown]')"
"""The dashboard shows long Markdown, as every picture is, when one of these is clicked."""


@contextmanager
def shown_site(folder: Path, frame: pd.DataFrame, **entry: Any) -> Iterator[Site]:
    """Make everything of a table, given what else its entry in the catalogue says."""
    with Site(folder) as site:
        site.add(TABLE, frame, **entry)
        site.run_all()
        yield site
