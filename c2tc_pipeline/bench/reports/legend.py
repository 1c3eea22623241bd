"""The line below the table of an experiment: what its numbers, marks and words mean, and what to hold against them."""

from __future__ import annotations

import pandas as pd

from c2tc_pipeline.bench.reports.layout import Layout
from c2tc_pipeline.bench.rivals import COSTLY
from c2tc_pipeline.bench.statistics.runs import MEAN_OF_MODELS, WHOLE
from c2tc_pipeline.evaluation.averages import METRICS
from c2tc_pipeline.reports import wording

PARTLY = "†"
ENDINGS = {"OOT": "out of time", "OOM": "out of memory", "failed": "ended in an error"}


def legend(cells: pd.DataFrame, layout: Layout, *, marked: bool, beside: bool) -> str:
    """Return how to read the table of an experiment.

    Parameters
    ----------
    cells : DataFrame
        What the table shows: ``method``, ``model``, ``status``, ``runs`` and ``unfinished`` of each cell.
    layout : Layout
        Its rows and columns.
    marked : bool
        Whether the best are marked.
    beside : bool
        Whether numbers of the paper's stand beside ours.

    Examples
    --------
    >>> cells = pd.DataFrame({"method": ["ours", "mtt"], "model": "mlp", "status": ["ok", "OOT"], "runs": [5, 0],
    ...                       "unfinished": [0, 5]})
    >>> legend(cells, Layout(), marked=False, beside=False)
    'Mean ± standard deviation over 5 runs (split and condensation seed), in percent. MTT: with a multilayer perceptron
    as relay and far fewer steps than in its paper, unless the settings say otherwise. OOT: out of time.'
    """
    done = cells[cells["status"] == "ok"]
    runs = sorted(set(done.loc[done["method"] != WHOLE, "runs"]) or set(done["runs"]))
    often = wording.counted(runs[-1], "run", "runs") if runs else "no run"
    if len(runs) > 1:
        often = f"{runs[0]} to {often}"
    percent = ", in percent" if set(layout.metrics) & set(METRICS) else ""
    parts = [f"Mean ± standard deviation over {often} (split and condensation seed){percent}."]
    if marked:
        aside = "; the whole table takes no part" if (cells["method"] == WHOLE).any() else ""
        best = "best of the row under each model" if "model" in layout.across else "best of the row"
        parts.append(f"Bold: {best}, underlined: second{aside}.")
    if (cells["model"] == MEAN_OF_MODELS).any():
        parts.append(f"{MEAN_OF_MODELS.capitalize()}: each run averaged over all models first.")
    if beside:
        place = "In brackets" if layout.paper == "brackets" else "In columns of their own"
        parts.append(f"{place}: the paper's numbers, whose rivals ran on label-encoded columns.")
    costly = [name.upper() for name in COSTLY if (cells["method"] == name).any()]
    if costly:
        papers = "its paper" if len(costly) == 1 else "their papers"
        parts.append(
            f"{', '.join(costly)}: with a multilayer perceptron as relay and far fewer steps than in {papers}, "
            "unless the settings say otherwise."
        )
    for status in dict.fromkeys(cells.loc[cells["status"] != "ok", "status"]):
        parts.append(f"{wording.shortened(status, 20)}: {ENDINGS.get(status, 'not finished')}.")
    if ((cells["unfinished"] > 0) & (cells["status"] == "ok")).any():
        parts.append(f"{PARTLY}: some runs did not finish, the mean is over the others.")
    return " ".join(parts)
