"""The pictures of experiments draw and label what they are given."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from xml.etree import ElementTree

import pandas as pd
import pytest

from c2tc_pipeline.bench.reports.exhibits import experiment_exhibits, rank_exhibit
from c2tc_pipeline.bench.reports.score_figures import (
    looks,
    rank_diagram,
    scores_by_ratio,
    scores_by_setting,
)
from c2tc_pipeline.bench.reports.statistics import (
    p_value,
)
from c2tc_pipeline.bench.reports.time_figures import seconds_by_size, seconds_by_table
from c2tc_pipeline.bench.statistics.comparisons import rank_contenders
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.reports.exhibits import Exhibit
from c2tc_pipeline.reports.picture import COLOURS, Picture
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<b>$x_1$ & co"


def texts(svg: str) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def overall() -> pd.DataFrame:
    cells = itertools.product(("adult", HOSTILE), (0.01, 0.001), (("ours", 0.8), ("random", 0.7), ("herding", 0.75)))
    parts = [runs(m, [a, a + r], table=t, ratio=r) for t, r, (m, a) in cells]
    parts += [unfinished("mtt", table="adult", ratio=0.01), runs("whole", [0.9, 0.9], table="adult", ratio=1.0)]
    parts += [runs("mtt", [0.3], table="adult", ratio=0.001)]
    scores = together(*parts)
    return scores.assign(condense_seconds=scores["accuracy"] ** 4)


def swept() -> pd.DataFrame:
    values = (("0.25", 0.7), ("1", 0.8), ("auto", 0.75), ("0.5", 0.72))
    return together(
        *(runs("ours", [a, a], table=t, variant=f"gamma={v}") for v, a in values for t in ("adult", "jannis"))
    )


def scaled() -> pd.DataFrame:
    parts = []
    for share, method in itertools.product((0.2, 0.4, 0.8), ("ours", "dm")):
        seconds = 100 * share ** (2 if method == "dm" else 1)
        parts.append(runs(method, [0.5], variant=f"rows={share}").assign(condense_seconds=seconds))
    parts.append(unfinished("mtt", variant="rows=0.2").assign(condense_seconds=float("nan")))
    return together(*parts)


PICTURES: dict[str, Callable[[], list[Exhibit]]] = {
    "ratios": lambda: experiment_exhibits("ratios", overall()),
    "lines": lambda: experiment_exhibits("lines", swept()),
    "bars": lambda: experiment_exhibits("bars", swept()),
    "seconds": lambda: experiment_exhibits("seconds", overall()[overall()["ratio"] != 0.001]),
    "scaling": lambda: experiment_exhibits("scaling", scaled()),
    "ranks": lambda: [rank_exhibit(rank_contenders(overall(), "accuracy"), "accuracy")],
}
LABELS = {
    "ratios": {"adult", HOSTILE, "ours", "random", "herding", "mtt", "whole", "1 %", "0.1 %", "accuracy, %"},
    "ranks": {"ours 1.00", "1", "2", "3", "4", "4.00 mtt*"},
    "lines": {"adult", "jannis", "gamma", "0.25", "0.5", "1", "auto", "accuracy, %", "macro-F1, %"},
    "bars": {"adult", "jannis", "gamma=0.25", "gamma=auto", "70.0", "60.0", "accuracy, %", "macro-F1, %"},
    "seconds": {"adult", HOSTILE, "ours", "random", "mtt: OOT", "420 ms"},
    "scaling": {"ours: rows^1.00", "dm: rows^2.00", "mtt", "20 %", "80 %", "rows of the whole table", "10 s"},
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_says_what_it_shows(name: str) -> None:
    exhibit, *more = PICTURES[name]()
    # One picture for each of two metrics, or one for both.
    assert len(more) == (name == "ratios")
    assert exhibit.title
    assert exhibit.alternative
    assert exhibit.caption
    svg = exhibit.picture.svg()
    assert LABELS[name] <= set(texts(svg))
    assert "http" not in svg.replace("http://www.w3.org/", "")
    if name == "lines":
        # Values of a setting are in order, words last; the same scores give the same picture.
        shown = [text for text in texts(svg) if text in {"0.25", "0.5", "1", "auto"}]
        assert shown[:4] == ["0.25", "0.5", "1", "auto"]
        assert PICTURES[name]()[0].picture.svg() == svg


def crowded() -> Picture:
    names = ("ours", "cluster_centroids", "a_rival_whose_name_is_far_too_long_for_a_key")
    cells = itertools.product(enumerate(names), ("label", "hcfe_paper"))
    scores = together(*(runs(name, [0.9 - place / 10], space=space) for (place, name), space in cells))
    return rank_diagram(rank_contenders(scores, "accuracy"))


@pytest.mark.parametrize("make", [lambda: PICTURES["seconds"]()[0].picture, crowded])
def test_nothing_is_cut_off(make: Callable[[], Picture]) -> None:
    with make().drawn() as figure:
        figure.canvas.draw()
        drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) > -0.02
    assert drawn.x1 < width + 0.02
    assert drawn.y1 < height + 0.02


def test_variants_may_be_values_themselves_and_spaces_have_lines_of_their_own() -> None:
    levels = itertools.product(("1:1", "100:1", "10:1"), ("hcfe", "label"))
    scores = together(*(runs("ours", [0.8], variant=level, space=space) for level, space in levels))
    assert {"ours (1:1), hcfe", "ours (1:1), label"} <= set(texts(scores_by_ratio(scores, "accuracy").svg()))
    (exhibit,) = experiment_exhibits("lines", scores, ["accuracy", "objective"])
    shown = texts(exhibit.picture.svg())
    assert {"t, hcfe", "t, label"} <= set(shown)
    assert [text for text in shown if text.endswith(":1")] == ["1:1", "10:1", "100:1"]
    assert "objective, %" not in shown


def test_no_two_contenders_look_alike() -> None:
    given = looks(["random", *(f"rival {place}" for place in range(24)), "ours", "whole"])
    seen = [(look.colour, look.marker, look.line) for look in given.values()]
    assert len(set(seen)) == len(seen)
    # Without lines, colour and mark alone must do.
    assert len({(look.colour, look.marker) for look in given.values()}) == len(seen)
    assert given["ours"].colour == COLOURS[0]
    assert given["ours"].width == max(look.width for look in given.values())


def test_the_bars_of_a_diagram_join_what_is_not_told_apart() -> None:
    tables = [f"table {place}" for place in range(30)]
    scores = together(
        *(
            runs(m, [a], table=t)
            for place, t in enumerate(tables)
            for m, a in (("ours", 0.9), ("dm", 0.5 + 0.1 * (place % 2)), ("gm", 0.55))
        )
    )
    ranking = rank_contenders(scores, "accuracy")
    assert ranking.groups == (("dm", "gm"),)
    svg = rank_diagram(ranking).svg()
    assert svg.count("stroke-width: 4.5") == 1
    assert f"critical difference {ranking.critical_difference:.2f}" in texts(svg)


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (lambda: scores_by_setting(swept(), "decay"), "decay"),
        (lambda: seconds_by_size(scaled(), "columns"), "columns"),
        (lambda: seconds_by_table(overall().assign(condense_seconds=float("nan"))), "condense_seconds"),
        (lambda: experiment_exhibits("pie", overall()), "pie"),
        (lambda: experiment_exhibits("lines", overall()), "variant"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw: Callable[[], object], named: str) -> None:
    with pytest.raises(InputError, match=named):
        draw()


@pytest.mark.parametrize(("figure", "make"), [("seconds", overall), ("none", overall)])
def test_seconds_that_nobody_finished_are_not_drawn(figure: str, make: Callable[[], pd.DataFrame]) -> None:
    scores = make().assign(fit_seconds=1.0)
    # A method that ran out of time took some.
    lost = scores.assign(status=["ok" if method == "whole" else "OOT" for method in scores["method"]])
    assert experiment_exhibits(figure, lost) == []
    drawn = experiment_exhibits(figure, scores.assign(condense_seconds=0.0), ["condense_seconds", "fit_seconds"])
    assert [exhibit.title[:14] for exhibit in drawn] == (["Seconds to fit"] if figure != "none" else [])


def test_p_values_never_become_zero() -> None:
    assert [p_value(p) for p in (0.0625, 0.00042, 3e-7, float("nan"))] == ["0.062", "0.0004", "< 0.0001", "—"]
