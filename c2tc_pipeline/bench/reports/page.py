"""The page of an experiment: its table, its pictures, its statistics and how to get them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from c2tc_pipeline.bench.reports.layout import Layout
from c2tc_pipeline.bench.reports.shown import ShownTable
from c2tc_pipeline.bench.reports.table import experiment_table
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.markup import Markup, element
from c2tc_pipeline.reports.page import page


def experiment_page(
    name: str,
    scores: pd.DataFrame,
    layout: Layout,
    *,
    paper: pd.DataFrame | None = None,
    exhibits: Sequence[Exhibit] = (),
    statistics: Mapping[str, ShownTable] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return an experiment's results as one self-contained HTML page.

    Parameters
    ----------
    name : str
        The experiment's name.
    scores : DataFrame
        One row a trained model.
    layout : Layout
        Rows and columns of its table.
    paper : DataFrame or None
        The paper's numbers, to be put beside ours.
    exhibits : sequence of Exhibit
        Its pictures.
    statistics : mapping of str to ShownTable, optional
        Further tables by their headings; see ``experiment_statistics.py`` and
        ``experiment_standings.py``.
    notes : sequence of str
        Paragraphs below the title: what was asked, the machine, the command that makes the page again.

    Returns
    -------
    str
        The page; the same input gives the same text.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "<b>", "ratio": 0.1, "model": "mlp", "space": "hcfe", "method": ["ours"],
    ...     "variant": "", "split": 0, "seed": 0, "model_seed": 0, "status": "ok", "accuracy": 0.78, "macro_f1": 0.6})
    >>> text = experiment_page("overall", scores, Layout())
    >>> "<title>Experiment: overall</title>" in text, "&lt;b&gt;" in text
    (True, True)
    """
    sections = [element("section", *(element("p", note) for note in notes))] if notes else []
    sections.append(_section("Results", experiment_table(scores, layout, paper).html()))
    sections += [_section(exhibit.title, exhibit.html()) for exhibit in exhibits]
    sections += [_section(title, shown.html()) for title, shown in (statistics or {}).items()]
    return page("Experiment", name, *sections)


def _section(title: str, content: Markup) -> Markup:
    return element("section", element("h2", title), content)
