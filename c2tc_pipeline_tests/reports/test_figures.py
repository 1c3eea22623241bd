"""Every picture is valid SVG, draws what it is given, and is the same for the same input."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.allocation.result import Allocation, TraceStep
from c2tc_pipeline.clustering.loss_curves import LossCurve
from c2tc_pipeline.reports.canvas import spread
from c2tc_pipeline.reports.class_styles import COLOURS, OTHER_COLOUR, class_styles
from c2tc_pipeline.reports.figures import MOST_DISCS, class_shares, projection, stage_seconds
from c2tc_pipeline.reports.score_figures import LOOKS, score_by_ratio
from c2tc_pipeline.reports.score_means import means_by_ratio
from c2tc_pipeline.reports.search_figures import allocation_trace, loss_curves
from c2tc_pipeline_tests.reports.stand_in import StandIn, made_scores, nasty_stand_in, stand_in

SVG = "{http://www.w3.org/2000/svg}"


def shares_of(table: StandIn) -> str:
    styles = class_styles(table.classes, table.class_rows)
    return class_shares(styles, table.class_rows, list(table.allocation.counts)).svg()


def projection_of(table: StandIn) -> str:
    return projection(class_styles(table.classes, table.class_rows), table.projection).svg()


def curves_of(table: StandIn) -> str:
    assert table.curves is not None
    styles = class_styles(table.classes, table.class_rows)
    return loss_curves(styles, table.curves, list(table.allocation.counts), table.allocation.gamma).svg()


def trace_of(table: StandIn) -> str:
    return allocation_trace(table.allocation).svg()


def seconds_of(table: StandIn) -> str:
    return stage_seconds(table.summary["seconds"]).svg()


def scores_of(table: StandIn) -> str:
    counts = [int(count) for count in table.allocation.counts]
    lift = counts[0] / sum(counts) / 10
    means = means_by_ratio({0.001: made_scores(counts), 0.01: made_scores(counts, models=["<tree>"], lift=lift)})
    return score_by_ratio(means, "accuracy", "accuracy").svg()


PICTURES = [shares_of, projection_of, curves_of, trace_of, seconds_of, scores_of]


def many_classes() -> StandIn:
    rows = [max(3, 1_000_000 // (i + 1) ** 2) for i in range(200)]
    return stand_in(classes=list(range(200)), class_rows=rows, counts=[min(n, 3) for n in rows])


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def uses(svg: str, colour: str) -> int:
    """Count the discs in a colour."""
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return sum(len(list(group.iter(f"{SVG}circle"))) for group in groups if group.get("fill") == colour)


def plotted(svg: str, colour: str) -> int:
    """Count the filled marks of matplotlib in a colour: repeated ones refer to a shape, single ones are one."""
    root = ElementTree.fromstring(svg)
    shapes = {id(node) for defined in root.iter(f"{SVG}defs") for node in defined.iter()}
    marks = (node for kind in ("use", "path") for node in root.iter(f"{SVG}{kind}") if id(node) not in shapes)
    return sum(f"fill: {colour}" in node.get("style", "") for node in marks)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("make", [stand_in, nasty_stand_in, many_classes])
def test_a_picture_is_a_drawing_that_refers_to_nothing_outside(
    picture: Callable[[StandIn], str], make: Callable[[], StandIn]
) -> None:
    root = ElementTree.fromstring(picture(make()))
    assert root.tag == f"{SVG}svg"
    assert sum(len(list(root.iter(f"{SVG}{kind}"))) for kind in ("path", "rect", "polyline", "circle")) > 5
    assert not list(root.iter(f"{SVG}script"))
    links = [value for node in root.iter() for name, value in node.attrib.items() if name.endswith("href")]
    assert all(link.startswith("#") for link in links)


@pytest.mark.parametrize("picture", PICTURES)
def test_the_same_input_gives_the_same_bytes_whatever_the_users_matplotlib_settings(
    picture: Callable[[StandIn], str],
) -> None:
    first = picture(stand_in())
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert picture(stand_in()) == first
        assert matplotlib.rcParams["font.size"] == 30
    other = stand_in(counts=(100, 105, 66, 41, 25), seed=1)
    other.summary["seconds"]["encode"] = 20.0
    assert picture(other) != first


def test_class_shares_say_every_share_before_and_after() -> None:
    svg = class_shares(class_styles(["no", "yes"], [75, 25]), [75, 25], [6, 4]).svg()
    assert {"no", "yes", "75 %", "25 %", "60 %", "40 %"} <= set(texts(svg))


def test_class_shares_of_many_classes_add_up_in_the_last_bars() -> None:
    rows, counts = [100] * 19 + [1] * 100, [5] * 19 + [1] * 100
    words = texts(class_shares(class_styles(range(119), rows), rows, counts).svg())
    assert "100 others together" in words
    assert "5 %" in words  # 100 of 2,000 source rows
    assert "51.3 %" in words  # 100 of 195 condensed rows
    assert "18" in words
    assert "19" not in words


@pytest.mark.parametrize("make", [stand_in, nasty_stand_in])
def test_projection_marks_every_point_in_the_colour_of_its_class(make: Callable[[], StandIn]) -> None:
    table = make()
    svg = projection_of(table)
    for value, style in zip(table.classes, class_styles(table.classes, table.class_rows), strict=True):
        # One more for the key.
        assert uses(svg, style.colour) == (table.projection["label"] == value).sum() + 1


def test_projection_of_very_many_condensed_rows_stays_small() -> None:
    table = stand_in(classes=["a", "b"], class_rows=[9_000, 900], counts=[4_500, 500])
    svg = projection_of(table)
    sampled = (table.projection["kind"] == "source").sum()
    marks = sum(uses(svg, style.colour) for style in class_styles(table.classes, table.class_rows))
    assert MOST_DISCS / 2 <= marks - sampled - 2 <= MOST_DISCS


def test_loss_curves_mark_the_chosen_allocation_and_skip_what_is_zero() -> None:
    styles = class_styles(["no", "yes"], [100, 100])
    falls = LossCurve(100, 100, np.array([1, 4, 16]), np.array([80.0, 20.0, 5.0]), 100)
    flat = LossCurve(100, 1, np.array([1, 4]), np.array([0.0, 0.0]), 100)
    svg = loss_curves(styles, [falls, flat], [8, 1], 0.25).svg()
    # Three measured points, the chosen one and the key; of the class without a loss not even its name.
    assert uses(svg, COLOURS[0]) == 5
    assert uses(svg, COLOURS[1]) == 0
    assert "no" in texts(svg)
    assert "yes" not in texts(svg)


def test_loss_curves_without_any_loss_say_so() -> None:
    flat = LossCurve(100, 1, np.array([1]), np.array([0.0]), 100)
    picture = loss_curves(class_styles(["a", "b"], [9, 9]), [flat, flat], [1, 1], 0.25)
    assert texts(picture.svg()) == ["Every class has a loss of zero."]


def test_trace_shows_the_bound_only_when_there_is_one() -> None:
    steps = (
        TraceStep(0, 90.0, 90.0, True, 2, (3, 1)),
        TraceStep(1, float("inf"), 90.0, False, 2, (1, 3)),
        TraceStep(2, 1.0, 1.0, True, 2, (2, 2)),
    )
    with_bound = Allocation("hfils", np.array([2, 2]), 1.0, 4, steps, 0.5, 0.25)
    assert "lower bound" in texts(allocation_trace(with_bound).svg())
    words = texts(allocation_trace(replace(with_bound, bound=None)).svg())
    assert "lower bound" not in words
    assert "accepted proposal" in words
    assert "rejected proposal" not in words


@pytest.mark.parametrize("ratios", [[0.001], [0.001, 0.002, 0.1]])
def test_scores_against_ratio_mark_every_mean_in_the_panel_of_its_model(ratios: list[float]) -> None:
    means = means_by_ratio({ratio: made_scores([2, 3], models=["mlp", "boosting", "tree"]) for ratio in ratios})
    svg = score_by_ratio(means, "macro_f1", "macro-F1").svg()
    assert {"mlp", "boosting", "tree", "condensed", "random rows", "whole table", "0.001"} <= set(texts(svg))
    for look in LOOKS.values():
        assert plotted(svg, str(look["color"])) >= 3 * len(ratios)


def test_stages_that_took_no_time_can_be_drawn() -> None:
    assert {"read", "0 ms"} <= set(texts(stage_seconds({"read": 0.0}).svg()))


def test_colours_go_to_the_largest_classes_and_are_distinct() -> None:
    rows = [1, 50, 2, 60, 70, 80, 90, 100, 110, 3]
    styles = class_styles(list("abcdefghij"), rows)
    assert {style.label for style in styles if style.named} == set("bdefghi")
    assert len({style.colour for style in styles if style.named}) == len(COLOURS)
    assert {style.colour for style in styles if not style.named} == {OTHER_COLOUR}


@given(st.lists(st.floats(0, 1), max_size=12))
def test_spread_positions_keep_their_order_and_their_distance(wanted: list[float]) -> None:
    placed = spread(wanted, 0.08)
    order = np.argsort(wanted, kind="stable")
    assert (np.diff(placed[order]) >= 0.08 - 1e-9).all()
    assert (placed <= 1 + 1e-9).all()
    if (np.diff(np.sort(wanted)) >= 0.08).all():
        assert placed.tolist() == wanted


def test_a_picture_is_what_matplotlib_would_save() -> None:
    """It is drawn once instead of twice, and the layout is the same."""
    picture = score_by_ratio(means_by_ratio({0.001: made_scores([2, 3])}), "accuracy", "accuracy")
    buffer = io.StringIO()
    with picture._drawn() as figure:
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    assert picture.svg() == buffer.getvalue()
