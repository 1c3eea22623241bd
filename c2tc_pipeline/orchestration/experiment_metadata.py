"""What the dashboard shows of experiments; of tables it is in :mod:`c2tc_pipeline.orchestration.metadata`."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import dagster as dg

from c2tc_pipeline.orchestration.experiment_files import ExperimentResult

# Metadata goes through the event log, again for each materialisation.
MOST_CHARACTERS = 20_000
_MOST_FIGURES = 6
_MOST_REASONS = 10
_STATUSES = ("ok", "OOT", "OOM", "failed")


def of_experiment_scores(result: ExperimentResult) -> dict[str, Any]:
    """Return how the cells ended, how good ours is on average, and what was run."""
    scores = result.scores
    ended = scores["status"].value_counts()
    ours = scores[(scores["method"] == "ours") & (scores["status"] == "ok")]
    means = {f"ours_{metric}": float(ours[metric].mean()) for metric in ("accuracy", "macro_f1")}
    told: dict[str, Any] = {
        "dagster/row_count": len(scores),
        "results": len(scores),
        **{f"results_{status}": int(ended.get(status, 0)) for status in _STATUSES},
        "tables": int(scores["table"].nunique()),
        # Where only seconds count there is no score to take the mean of.
        **{name: mean for name, mean in means.items() if mean == mean},
        "experiment": dg.MetadataValue.json(result.experiment.model_dump(mode="json")),
    }
    reasons = scores.loc[scores["status"] != "ok", "reason"].value_counts()
    if len(reasons):
        told["why_not_ok"] = dg.MetadataValue.json({str(why): int(n) for why, n in reasons[:_MOST_REASONS].items()})
    return told


def of_experiment_report(files: Mapping[str, bytes], page: str, table: str) -> dict[str, Any]:
    """Return the tables and the figures of a report.

    Parameters
    ----------
    files : mapping of str to bytes
        All of the report.
    page, table : str
        The names of its page and of its tables in Markdown.
    """
    figures = sorted(name for name in files if name.endswith(".png"))
    pictures = {_key(name): _picture(name, files[name]) for name in figures[:_MOST_FIGURES]}
    return {
        "kilobytes": round(len(files[page]) / 1e3, 1),
        "figures": len(figures),
        "table": dg.MetadataValue.md(shortened(files[table].decode(), MOST_CHARACTERS)),
        **pictures,
    }


def _picture(figure: str, png: bytes) -> dg.MarkdownMetadataValue:
    # Figures are named after their titles.
    title = PurePosixPath(figure).stem.replace("-", " ")
    return dg.MetadataValue.md(f"![{title}](data:image/png;base64,{base64.b64encode(png).decode()})")


def _key(figure: str) -> str:
    return "figure_" + PurePosixPath(figure).stem.replace("-", "_")


def shortened(markdown: str, most: int) -> str:
    """Return whole lines of a text up to a number of characters, and say so where some are missing.

    Examples
    --------
    >>> shortened("one\\ntwo\\nthree", 8).splitlines()
    ['one', 'two', '', 'Shortened; all of it is on the page.']
    >>> shortened("one", 8)
    'one'
    """
    if len(markdown) <= most:
        return markdown
    kept = markdown[:most].rpartition("\n")[0]
    return f"{kept}\n\nShortened; all of it is on the page."
