"""Seconds of an experiment as pictures: by table and method, and against the size of the table.

What belongs here: one function a picture, the tidy frame of scores in.
"""

from __future__ import annotations

import pandas as pd

from c2tc_pipeline.bench.reports.looks import draw_legend, legend_height, looks, series
from c2tc_pipeline.bench.statistics import fitted_exponent
from c2tc_pipeline.bench.statistics.runs import WHOLE, cell_scores
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.reports.canvas import log_scale
from c2tc_pipeline.reports.picture import FAINT_INK, INK, RULE, Figure, Picture
from c2tc_pipeline.reports.wording import number, seconds, share, shortened


def seconds_by_table(scores: pd.DataFrame, metric: str = "condense_seconds") -> Picture:
    """Draw how long each contender took on each table, on a logarithmic axis.

    Parameters
    ----------
    scores : DataFrame
        One row a trained model, or a condensation where nothing was trained.
    metric : str
        The column with the seconds.

    Returns
    -------
    Picture
        The picture; what did not finish has its ending written at the far side.

    Raises
    ------
    InputError
        When nothing took any time.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "adult", "ratio": 0.001, "model": "", "space": "hcfe",
    ...     "method": ["ours", "random", "mtt"], "variant": "", "split": 0, "seed": 0, "model_seed": 0,
    ...     "status": ["ok", "ok", "OOT"], "condense_seconds": [1.5, 0.002, float("nan")]})
    >>> text = seconds_by_table(scores).svg()
    >>> "1.5 s" in text, "OOT" in text
    (True, True)
    """
    cells = _timed(series(scores[scores["method"] != WHOLE], metric), metric)
    places = list(dict.fromkeys(cells[["table", "ratio"]].itertuples(index=False, name=None)))
    several = cells["ratio"].nunique() > 1
    given = looks(list(cells["series"].unique()))
    step = 0.84 / len(given)
    low, high = cells["mean"].min(), cells["mean"].max()
    # Room at the end for a duration in words, on a scale where distances are ratios.
    low, high = low / 1.8, high * max(3.0, (high / low) ** 0.25)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        log_scale(axes, "x", low, high)
        axes.xaxis.set_major_formatter(lambda value, _: f"{number(value)} s")
        for cell in cells.to_dict("records"):
            look = given[cell["series"]]
            height = (
                places.index((cell["table"], cell["ratio"])) - 0.42 + (list(given).index(cell["series"]) + 0.5) * step
            )
            done = cell["status"] == "ok"
            place = cell["mean"] if done else high / 1.02
            if done:
                axes.plot([low, place], [height, height], color=RULE, linewidth=1.0)
                axes.plot(place, height, color=look.colour, marker=look.marker, markersize=7.5)
            axes.annotate(
                seconds(place) if done else shortened(f"{cell['series']}: {cell['status']}", 44),
                (place, height),
                xytext=(7 if done else -2, 0),
                textcoords="offset points",
                ha="left" if done else "right",
                va="center_baseline",
                fontsize=9,
                color=FAINT_INK if done else INK,
            )
        names = [f"{shortened(table, 24)}{f', {share(ratio)}' if several else ''}" for table, ratio in places]
        axes.set_yticks(range(len(places)), names, color=INK)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        axes.grid(visible=False, axis="y")
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color=RULE, linewidth=0.8)
        draw_legend(figure, given)

    return Picture(draw, height=max(60 + len(places) * (16 + 15 * len(given)), legend_height(len(given))))


def seconds_by_size(scores: pd.DataFrame, what: str, metric: str = "condense_seconds") -> Picture:
    """Draw how the time grows with the table, both axes logarithmic, with the exponent of the closest power law.

    Parameters
    ----------
    scores : DataFrame
        One row a condensation; its variant holds ``"<what>=<number>"``, a share of the table or a count.
    what : str
        What varies: ``"rows"`` or ``"columns"``.
    metric : str
        The column with the seconds.

    Returns
    -------
    Picture
        The picture; the key says how the time of each method grows.

    Raises
    ------
    InputError
        When no variant says a size.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "made", "ratio": 0.001, "model": "", "space": "hcfe", "method": "ours",
    ...     "variant": ["rows=0.2", "rows=0.4", "rows=0.8"], "split": 0, "seed": 0, "model_seed": 0, "status": "ok",
    ...     "condense_seconds": [1.0, 2.0, 4.0]})
    >>> "ours: rows^1.00" in seconds_by_size(scores, "rows").svg()
    True
    """
    sizes = scores["variant"].astype(str).str.extract(rf"(?:^|[ ,;]){what}=([0-9.eE+-]+)", expand=False)
    sized = scores.assign(size=pd.to_numeric(sizes, errors="coerce"))
    sized = sized[(sized["method"] != WHOLE) & sized["size"].notna()]
    if sized.empty:
        raise InputError(f"The scores have no variant that says a size; variants are written '{what}=<number>'.")
    cells = pd.concat(
        [cell_scores(part.assign(variant=""), metric).assign(size=size) for size, part in sized.groupby("size")],
        ignore_index=True,
    )
    for name in ("space", "table"):
        if cells[name].nunique() > 1:
            cells["contender"] = cells["contender"] + ", " + cells[name]
    cells = _timed(cells, metric)
    given = looks(list(cells["contender"].unique()))
    shares = cells["size"].max() <= 1
    texts = {}
    for name in given:
        line = cells[cells["contender"] == name]
        exponent = fitted_exponent(line["size"].to_numpy(), line["mean"].to_numpy())
        texts[name] = name if pd.isna(exponent) else f"{name}: {what}^{exponent:.2f}"

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low, high = cells["mean"].min(), cells["mean"].max()
        log_scale(axes, "x", cells["size"].min() / 1.15, cells["size"].max() * 1.15)
        log_scale(axes, "y", low / 1.6, high * 1.6)
        for name, look in given.items():
            line = cells[(cells["contender"] == name) & (cells["status"] == "ok")].sort_values("size")
            axes.plot(line["size"], line["mean"], markersize=6, **look.style)
        points = sorted(cells["size"].unique())
        if len(points) <= 8:
            axes.set_xticks(points, [share(size) if shares else f"{size:,.12g}" for size in points])
        axes.yaxis.set_major_formatter(lambda value, _: f"{number(value)} s")
        axes.set_xlabel(f"{what} of the whole table" if shares else what)
        draw_legend(figure, given, texts)

    return Picture(draw, height=max(320, legend_height(len(given))))


def _timed(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the cells with times above nothing, which a logarithmic axis cannot show."""
    if not (cells["mean"] > 0).any():
        raise InputError(f"The scores have no time in column {metric!r}; run the experiment that measures it.")
    return cells.assign(mean=cells["mean"].clip(lower=1e-4))
