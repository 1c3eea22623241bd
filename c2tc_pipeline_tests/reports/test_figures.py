"""Every figure is valid SVG, draws what it is given, and is the same for the same input."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from c2tc_pipeline.allocation.problem import Allocation, TraceStep
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.evaluation.row_worth import mean_scores, row_worth
from c2tc_pipeline.reports.distributions import Distribution, column_distributions
from c2tc_pipeline.reports.figures import (
    MAX_DISCS,
    TRAINING_SETS,
    allocation_trace,
    class_shares,
    distribution,
    loss_curves,
    projection,
    score_by_rows,
    score_dots,
)
from c2tc_pipeline.reports.picture import COLOURS, OTHER_COLOUR, ClassStyle, Picture, class_styles
from c2tc_pipeline.reports.wording import printable
from c2tc_pipeline_tests.reports.stand_in import made_scores, many_classes, nasty_stand_in, stand_in

SVG = "{http://www.w3.org/2000/svg}"


def by_rows(table: Any) -> Picture:
    counts = [int(count) for count in table.allocation.counts]
    scores = made_scores(counts, models=["<tree>"], lift=counts[0] / sum(counts) / 10)
    (worth,) = row_worth(scores, ["auc"]).to_dict("records")
    return score_by_rows(mean_scores(scores), "auc", "AUC", name="<tree>", worth=worth)


def dots(table: Any) -> Picture:
    shares = (table.allocation.counts / table.allocation.counts.sum()).tolist()
    return score_dots("F1", [str(name) for name in table.classes], {"whole": shares, "condensed": shares[::-1]})


def styles_of(table: Any) -> list[ClassStyle]:
    return class_styles(table.classes, table.class_rows)


PICTURES: dict[str, Callable[[Any], Picture]] = {
    "shares": lambda table: class_shares(styles_of(table), table.class_rows, list(table.allocation.counts)),
    "projection": lambda table: projection(styles_of(table), table.projection),
    "curves": lambda table: loss_curves(
        styles_of(table), table.curves, list(table.allocation.counts), table.allocation.gamma
    ),
    "trace": lambda table: allocation_trace(table.allocation),
    "rows": by_rows,
    "dots": dots,
    "categories": lambda table: distribution(column_distributions(table)[0]),
    "numbers": lambda table: distribution(column_distributions(table)[1]),
}
TABLES = {"plain": stand_in, "nasty": nasty_stand_in, "many": many_classes}


@cache
def svg_of(picture: str, table: str) -> str:
    return PICTURES[picture](TABLES[table]()).svg()


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def marks(svg: str, colour: str) -> int:
    """Count the filled marks in a colour: repeated ones refer to a shape, single ones are one."""
    root = ElementTree.fromstring(svg)
    shapes = {id(node) for defined in root.iter(f"{SVG}defs") for node in defined.iter()}
    found = (node for kind in ("use", "path") for node in root.iter(f"{SVG}{kind}") if id(node) not in shapes)
    return sum(f"fill: {colour}" in node.get("style", "") for node in found)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_a_drawing_that_refers_to_nothing_outside(picture: str) -> None:
    for table in TABLES:
        root = ElementTree.fromstring(svg_of(picture, table))
        assert root.tag == f"{SVG}svg"
        assert len(list(root.iter(f"{SVG}path"))) > 5
        assert not any(list(root.iter(f"{SVG}{kind}")) for kind in ("script", "image", "foreignObject", "a"))
        links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
        assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize("picture", PICTURES)
def test_the_same_input_gives_the_same_bytes_whatever_the_users_matplotlib_settings(picture: str) -> None:
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert PICTURES[picture](stand_in()).svg() == svg_of(picture, "plain")
        assert matplotlib.rcParams["font.size"] == 30
    other = stand_in(counts=(100, 105, 66, 41, 25), seed=1)
    assert PICTURES[picture](other).svg() != svg_of(picture, "plain")


@settings(max_examples=5, deadline=None)
@given(st.text(min_size=1, max_size=16))
def test_names_of_classes_arrive_as_they_are(name: str) -> None:
    svg = class_shares(class_styles([name, "$x_1^2$ & <b>"], [75, 25]), [75, 25], [6, 4]).svg()
    assert {printable(name), "$x_1^2$ & <b>"} - {""} <= {text.strip() for text in texts(svg)}


@pytest.mark.parametrize("classes", [["only"], ["no", "W" * 60], [f"class {i}" for i in range(50)]])
def test_nothing_is_cut_off(classes: list[str]) -> None:
    rows = [1000 // (i + 1) ** 2 + 1 for i in range(len(classes))]
    table = stand_in(classes=classes, class_rows=rows, counts=[1] * len(rows), sampled=20)
    for name in ("shares", "projection", "curves", "dots", "categories", "numbers"):
        with PICTURES[name](table).drawn() as figure:
            figure.canvas.draw()
            drawn, size = figure.get_tightbbox(), figure.get_size_inches()
        assert (drawn.min > -0.05).all()
        assert (drawn.max < size + 0.05).all()


@pytest.mark.parametrize("days", [0.01, 0.4, 3, 20, 75, 400, 1_500, 9_000, 20_000])
def test_dates_below_a_histogram_do_not_overlap(days: float) -> None:
    edges = np.linspace(1.58e9, 1.58e9 + 86_400 * days, 25)
    bars = np.full(24, 1 / 24)
    with distribution(Distribution("since", bars, bars, edges=edges, is_moment=True)).drawn() as figure:
        figure.canvas.draw()
        axes = figure.axes[0].bbox
        labels = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
        shown = [label for label in labels if axes.x0 - 1 < (label.x0 + label.x1) / 2 < axes.x1 + 1]
    assert len(shown) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(shown))


def test_a_png_has_the_colours_of_the_figure_and_is_the_same_again() -> None:
    picture = Picture(lambda figure: figure.subplots().barh([0, 1], [1, 2], color=COLOURS[:2]), height=90)
    data = picture.png()
    image = Image.open(io.BytesIO(data)).convert("RGB")
    assert image.size == (960, 120)
    assert {(0, 114, 178), (213, 94, 0), (255, 255, 255)} <= {colour for _, colour in image.getcolors(1 << 24) or []}
    assert picture.png() == data
    assert picture.data_uri().startswith("data:image/svg+xml;base64,")
    assert picture.data_uri(100).startswith("data:image/png;base64,")


def test_class_shares_show_every_share_and_add_up_the_smallest_classes() -> None:
    svg = class_shares(class_styles(["no", "yes"], [75, 25]), [75, 25], [6, 4]).svg()
    assert {"no", "yes", "75.0 %", "25.0 %", "60.0 %", "40.0 %"} <= set(texts(svg))
    rows, counts = [100] * 19 + [1] * 100, [5] * 19 + [1] * 100
    words = texts(class_shares(class_styles(range(119), rows), rows, counts).svg())
    # 1,100 of 2,000 source rows, 150 of 195 condensed rows.
    assert {"5.0 %", "55.0 %", "76.9 %", "8"} <= set(words)
    assert "9" not in words


@pytest.mark.parametrize(("name", "make"), [("plain", stand_in), ("nasty", nasty_stand_in)])
def test_projection_marks_every_point_in_the_colour_of_its_class(name: str, make: Callable[[], Any]) -> None:
    table, svg = make(), svg_of("projection", name)
    for value, style in zip(table.classes, styles_of(table), strict=True):
        # One more for the legend.
        assert marks(svg, style.colour) == (table.projection["label"] == value).sum() + 1


def test_projection_of_very_many_condensed_rows_stays_small() -> None:
    table = stand_in(classes=["a", "b"], class_rows=[9_000, 900], counts=[4_500, 500])
    svg = PICTURES["projection"](table).svg()
    sampled = (table.projection["kind"] == "source").sum()
    drawn = sum(marks(svg, style.colour) for style in styles_of(table))
    assert MAX_DISCS / 2 <= drawn - sampled - 2 <= MAX_DISCS


def test_loss_curves_mark_the_chosen_allocation_and_zeros_can_be_drawn() -> None:
    falls = LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
    flat = LossCurve(100, 1, np.array([1, 4]), np.array([0.0, 0.0]), 100)
    styles = class_styles(["no", "yes"], [100, 100])
    svg = loss_curves(styles, [falls, flat], [8, 1], 0.25).svg()
    # Three measured points, the chosen one and the legend; of the class without a loss not even its name.
    assert marks(svg, COLOURS[0]) == 5
    assert marks(svg, COLOURS[1]) == 0
    assert "no" in texts(svg)
    assert "yes" not in texts(svg)
    assert len(texts(loss_curves(styles, [flat, flat], [1, 1], 0.25).svg())) == 1, "nothing but a note"


def test_trace_shows_the_bound_only_when_there_is_one() -> None:
    proposed = [90.0, float("inf"), 1.0]
    steps = tuple(TraceStep(i, loss, min(loss, 90.0), loss < 100, 2, (2, 2)) for i, loss in enumerate(proposed))
    with_bound = Allocation("hfils", np.array([2, 2]), 1.0, 4, steps, 0.5, 0.25)
    words = texts(allocation_trace(with_bound).svg())
    without = texts(allocation_trace(replace(with_bound, bound=None)).svg())
    assert [word for word in words if "bound" in word] != [] == [word for word in without if "bound" in word]
    assert not [word for word in words if "reject" in word], "a proposal without a loss is not drawn"


def test_scores_against_rows_mark_every_sample_and_lead_from_the_condensed_table_to_the_curve() -> None:
    scores = made_scores([2, 3], models=["tree"], seeds=1)
    (worth,) = row_worth(scores, ["accuracy"]).to_dict("records")
    plain = score_by_rows(mean_scores(scores), "accuracy", "accuracy", name="tree")
    svg = score_by_rows(mean_scores(scores), "accuracy", "accuracy", name="tree", worth=worth).svg()
    assert {"tree", "5", "25", "random rows", "whole table"} <= set(texts(svg))
    # As many random rows, five times as many, and the legend; one condensed table and the legend.
    assert marks(svg, TRAINING_SETS["random"][1]["color"]) == 3
    assert marks(svg, TRAINING_SETS["condensed"][1]["color"]) == 2
    times = [text for text in texts(svg) if f"{worth['worth']:.2g}" in text]
    assert times
    assert not set(times) & set(texts(plain.svg()))


def test_dots_show_the_condensed_score_as_a_number_and_nothing_for_classes_without_test_rows() -> None:
    svg = score_dots("F1", ["a", "b"], {"whole": [0.9, np.nan], "condensed": [0.8, np.nan]}).svg()
    assert {"a", "b", "80.0"} <= set(texts(svg))
    assert "nan" not in " ".join(texts(svg))


def test_colours_go_to_the_largest_classes_and_are_distinct() -> None:
    styles = class_styles(list("abcdefghij"), [1, 50, 2, 60, 70, 80, 90, 100, 110, 3])
    assert {style.label for style in styles if style.named} == set("bdefghi")
    assert len({style.colour for style in styles if style.named}) == len(COLOURS)
    assert {style.colour for style in styles if not style.named} == {OTHER_COLOUR}
