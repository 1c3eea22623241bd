"""Draw the pictures of docs/how.md and README.md: ``python docs/make_pictures.py`` writes them to ``docs/pictures``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from sklearn.datasets import make_moons

from c2tc_pipeline import Condenser

PICTURES = Path(__file__).with_name("pictures")
COLORS = {"common": "#1f77b4", "rare": "#d9542b"}
STEPS = {
    "source": "files, SQL, S3",
    "checked table": "roles, schema,\nsplit",
    "encoded rows": "numbers in\n[0, 1]",
    "allocation": "rows for\neach class",
    "condensed table": "mean, spread,\nlabel, weight",
    "training rows": "as many as\nyou like",
}
CHANGES = {
    "new rows": 0,
    "another role": 1,
    "another gamma": 3,
    "min_category_rows": 4,
    "expand_rows": 5,
}


def rows_picture() -> None:
    """Draw source rows, condensed rows with their spread, drawn rows, and as many random rows as condensed ones."""
    X, _ = make_moons((3_000, 300), shuffle=False, noise=0.13, random_state=0)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    y = np.repeat(["common", "rare"], [3_000, 300])
    condenser = Condenser(rows=24, column_weights="none", random_state=0)
    few, classes = condenser.fit_resample(X, y)
    drawn, drawn_classes, _ = condenser.expand(3_000, class_mix="source")
    chosen = np.random.default_rng(1).choice(len(X), len(few), replace=False)
    figure, axes = plt.subplots(2, 2, figsize=(7, 4.4), sharex=True, sharey=True, layout="constrained")
    panels = [
        (f"{len(X):,} source rows", X, y),
        (f"{len(few)} condensed rows and their spread", few, classes),
        (f"{len(drawn):,} rows drawn from these {len(few)}", drawn, drawn_classes),
        (f"for comparison: {len(few)} random rows", X[chosen], y[chosen]),
    ]
    for axis, (title, rows, labels) in zip(axes.flat, panels, strict=True):
        for name, color in COLORS.items():
            own = rows[labels == name]
            size = 2 if len(rows) > 100 else 28
            axis.scatter(*own.T, s=size, color=color, linewidths=0)
        axis.set_title(title, fontsize=9)
        axis.set(xticks=[], yticks=[], xlim=(-0.03, 1.03), ylim=(-0.05, 1.05))
    for row, deviation, label in zip(few, condenser.spread_.deviation, classes, strict=True):
        correlation = condenser.spread_.correlation_of(list(condenser.classes_).index(label))
        values, vectors = np.linalg.eigh(correlation * np.outer(deviation, deviation))
        angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
        width, height = 4 * np.sqrt(np.maximum(values[::-1], 0))
        axes[0, 1].add_patch(Ellipse(row, width, height, angle=angle, color=COLORS[label], alpha=0.15))
    save(figure, "rows")

    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    clusters = np.arange(1, 60)
    for curve, name, count in zip(condenser.curves_, condenser.classes_, condenser.allocation_.counts, strict=True):
        losses = curve.at(clusters) / curve.rows**condenser.allocation_.gamma
        axes.loglog(
            clusters, losses, color=COLORS[str(name)], label=f"{name} class: {curve.rows:,} rows, {count} condensed"
        )
        axes.plot(count, losses[count - 1], "o", color=COLORS[str(name)])
    axes.set(xlabel="condensed rows of the class", ylabel="loss, as it counts in the objective")
    axes.legend()
    save(figure, "curves")


def worth_picture() -> None:
    """Draw how the worth of a condensed row is read off; a sketch, without measured values."""
    rows = np.geomspace(100, 10_000, 50)
    score = 0.9 - 0.25 * (rows / 100) ** -0.5
    reached = 0.9 - 0.25 * 15**-0.5
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.semilogx(rows, score, label="random rows")
    axes.plot(100, reached, "o", color="C1", label="100 condensed rows")
    axes.plot([100, 1500, 1500], [reached, reached, 0.6], "--", color="C1")
    axes.annotate("as good as 1,500 random rows:\none is worth 15", (1500, 0.61), (1650, 0.62), fontsize=9)
    axes.set(xlabel="rows", ylabel="score of a model", ylim=(0.6, None), yticks=[])
    axes.legend(loc="lower right", bbox_to_anchor=(1, 0.25))
    save(figure, "worth")


def steps_picture() -> None:
    """Draw the steps of the pipeline, and which are made again after a change."""
    figure, axes = plt.subplots(figsize=(10, 3.4), layout="constrained")
    for place, (name, text) in enumerate(STEPS.items()):
        axes.text(place, 0, f"{name}\n", ha="center", va="center", weight="bold", fontsize=8)
        axes.text(place, -0.35, text, ha="center", va="center", fontsize=8, color="0.35")
        axes.add_patch(plt.Rectangle((place - 0.45, -0.75), 0.9, 1.15, facecolor="#e8f0f7", edgecolor="#1f5f8b"))
        if place:
            axes.annotate("", (place - 0.45, -0.15), (place - 0.55, -0.15), arrowprops={"arrowstyle": "->"})
    for line, (change, first) in enumerate(CHANGES.items()):
        height = -1.3 - 0.45 * line
        axes.text(-0.55, height, change, ha="right", va="center", fontsize=9)
        for place in range(len(STEPS)):
            color = "#d9542b" if place >= first else "0.9"
            axes.barh(height, 0.86, 0.25, left=place - 0.43, color=color)
    axes.text(-0.55, -0.15, "step", ha="right", va="center", fontsize=9)
    axes.set(xlim=(-1.9, 5.5), ylim=(-3.4, 0.55))
    axes.axis("off")
    save(figure, "steps")


def save(figure: plt.Figure, name: str) -> None:
    """Write one picture without a date, so that equal pictures are equal files."""
    figure.savefig(PICTURES / f"{name}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    mpl.use("agg")
    rows_picture()
    worth_picture()
    steps_picture()
