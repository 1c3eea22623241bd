"""The table of an experiment says means, marks the best, and puts the paper's numbers where they belong."""

from __future__ import annotations

import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments.grid import paper_numbers
from c2tc_pipeline.bench.reports.exhibits import experiment_page
from c2tc_pipeline.bench.reports.table import Layout, experiment_table, experiment_table_markdown
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.reports.markdown import Cell, Column, ShownTable
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished
from c2tc_pipeline_tests.reports.page_parser import Page

ACCURACY = Layout(metrics=["accuracy"])


def lines(scores: pd.DataFrame, layout: Layout = ACCURACY, paper: pd.DataFrame | None = None) -> list[str]:
    """Return the lines of the table without its rule."""
    head, _, *body = experiment_table_markdown(scores, layout, paper).split("\n\n")[0].splitlines()
    return [head, *body]


def legend(scores: pd.DataFrame, layout: Layout = ACCURACY, paper: pd.DataFrame | None = None) -> str:
    return experiment_table(scores, layout, paper).legend


def test_a_whole_table_by_hand() -> None:
    scores = together(
        runs("whole", [0.9, 0.92], table="adult", ratio=1.0),
        *(runs("random", [a, a], table="adult", ratio=r) for r, a in ((0.001, 0.6), (0.01, 0.7))),
        *(runs("ours", [a, a + 0.02], table="adult", ratio=r) for r, a in ((0.001, 0.8), (0.01, 0.81))),
        unfinished("mtt", "OOM", table="adult", ratio=0.01),
    )
    assert lines(scores, Layout()) == [
        "| table | ratio | metric | random | ours | mtt | whole |",
        "| adult | 1 % | accuracy | <u>70.0 ± 0.0</u> | **82.0 ± 1.0** | OOM | 91.0 ± 1.0 |",
        "| adult | 1 % | macro-F1 | <u>60.0 ± 0.0</u> | **72.0 ± 1.0** | OOM | 81.0 ± 1.0 |",
        "| adult | 0.1 % | accuracy | <u>60.0 ± 0.0</u> | **81.0 ± 1.0** | — | 91.0 ± 1.0 |",
        "| adult | 0.1 % | macro-F1 | <u>50.0 ± 0.0</u> | **71.0 ± 1.0** | — | 81.0 ± 1.0 |",
    ]
    assert all(part in legend(scores, Layout()) for part in ("over 2 runs", "MTT: with", "OOM: out of memory"))


@pytest.mark.parametrize(
    ("accuracies", "expected"),
    [
        # Equal as printed is equal, whatever the further digits.
        ([0.8001, 0.8004, 0.7], "**80.0** | **80.0** | <u>70.0</u>"),
        ([0.8, 0.7001, 0.7004], "**80.0** | <u>70.0</u> | <u>70.0</u>"),
        ([0.8, 0.8, 0.8], "80.0 | 80.0 | 80.0"),
        ([0.6, 0.8, 0.7], "60.0 | **80.0** | <u>70.0</u>"),
    ],
)
def test_ties_are_marked_alike(accuracies: list[float], expected: str) -> None:
    scores = together(*(runs(name, [a]) for name, a in zip(("ours", "dm", "gm"), accuracies, strict=True)))
    assert lines(scores)[1] == f"| t | 1 % | accuracy | {expected} |"


def test_the_least_seconds_are_the_best() -> None:
    scores = together(runs("ours", [0.5, 0.5]), runs("dm", [0.5, 0.5]), runs("whole", [0.9, 0.9], ratio=1.0))
    scores["condense_seconds"] = [1.0, 2.0, 2000.0, 2340.4, float("nan"), float("nan")]
    found = lines(scores, Layout(metrics=["condense_seconds"]))
    assert found == [
        "| table | ratio | metric | ours | dm |",
        "| t | 1 % | seconds to condense | **1.5 ± 0.5** | <u>2,170 ± 170</u> |",
    ]
    assert "percent" not in legend(scores, Layout(metrics=["condense_seconds"]))


def test_partly_finished_cells_are_marked_and_explained() -> None:
    scores = together(runs("ours", [0.8, 0.8]), runs("gm", [0.7]), unfinished("gm", splits=2).iloc[1:])
    assert lines(scores)[1].endswith("**80.0 ± 0.0** | <u>70.0 †</u> |")
    assert "†: some runs did not finish" in legend(scores)
    assert "over 1 to 2 runs" in legend(scores)


def test_other_layouts_serve_the_other_experiments() -> None:
    spaces = together(
        *(runs(m, [a], space=s) for m, s, a in (("ours", "hcfe", 0.8), ("dm", "hcfe", 0.7), ("dm", "label", 0.6)))
    )
    assert lines(spaces, Layout(columns=("space", "method"), metrics=["accuracy"])) == [
        "| table | ratio | metric | hcfe / ours | hcfe / dm | label / dm |",
        "| t | 1 % | accuracy | **80.0** | <u>70.0</u> | 60.0 |",
    ]
    variants = together(
        runs("ours", [0.8]), runs("ours", [0.7], variant="soft_step=off"), runs("whole", [0.9], ratio=1.0)
    )
    assert lines(variants, Layout(columns="variant", metrics=["accuracy"], names={"soft_step=off": "hard step"})) == [
        "| table | ratio | metric | full | hard step |",
        "| t | 1 % | accuracy | **80.0** | <u>70.0</u> |",
    ]
    models = together(
        *(runs(m, [a], model=j) for m, j, a in (("ours", "mlp", 0.8), ("ours", "tabr", 0.7), ("dm", "mlp", 0.6)))
    )
    assert lines(models, Layout(rows=("table", "method"), columns="model", metrics=["accuracy"])) == [
        "| table | method | metric | mlp | tabr |",
        # One method under two models is no race.
        "| t | ours | accuracy | 80.0 | 70.0 |",
        "| t | dm | accuracy | 60.0 | — |",
    ]
    assert "Bold" not in legend(models, Layout(rows=("table", "method"), columns="model", metrics=["accuracy"]))
    side_by_side = Layout(rows=("table",), columns=("model", "method"), metrics=["accuracy"])
    whole = runs("whole", [0.9], model="mlp", ratio=1.0)
    assert lines(together(models, whole, runs("dm", [0.75], model="tabr")), side_by_side) == [
        "| table | metric | mlp / ours | mlp / dm | mlp / whole | tabr / ours | tabr / dm |",
        "| t | accuracy | **80.0** | <u>60.0</u> | 90.0 | <u>70.0</u> | **75.0** |",
    ]
    assert "best of the row under each model" in legend(models, side_by_side)


def test_rivals_that_ran_shorter_than_in_their_papers_are_named() -> None:
    assert "DM, GM: with" in legend(together(runs("ours", [0.8]), runs("gm", [0.7]), unfinished("dm")))
    assert "relay" not in legend(together(runs("ours", [0.8]), runs("herding", [0.7])))


def test_what_the_layout_hides_must_be_one_thing() -> None:
    with pytest.raises(InputError, match=r"several values of 'model' \(mlp, tabr\)"):
        experiment_table(together(runs("ours", [0.8]), runs("ours", [0.7], model="tabr")), ACCURACY)
    with pytest.raises(InputError, match=r"several values of 'table'"):
        experiment_table(together(runs("ours", [0.8]), runs("ours", [0.7], table="b")), Layout(rows=("ratio",)))
    with pytest.raises(InputError, match="names 'split'; choose from: table"):
        experiment_table(runs("ours", [0.8]), Layout(rows=("split",)))


def test_the_papers_numbers_stand_beside_ours() -> None:
    scores = together(
        runs("ours", [0.8, 0.8], table="adult", ratio=0.001),
        runs("mtt", [0.7, 0.7], table="adult", ratio=0.001),
        runs("stratified", [0.6, 0.6], table="adult", ratio=0.001),
        runs("whole", [0.9, 0.9], table="adult", ratio=1.0),
        runs("mtt", [0.6, 0.6], table="epsilon", ratio=0.001),
    )
    paper = paper_numbers("overall")
    assert paper is not None
    printed = (
        paper.set_index(["table", "ratio", "method", "metric"])[["mean", "std"]].mul(100).round(1).T.to_dict("list")
    )
    ours, mtt, whole = (
        "{} ± {}".format(*printed["adult", ratio, method, "accuracy"])
        for method, ratio in (("ours", 0.001), ("mtt", 0.001), ("whole", 1.0))
    )
    assert ours == "81.5 ± 0.6"
    assert lines(scores, ACCURACY, paper)[1:] == [
        f"| adult | 0.1 % | accuracy | **80.0 ± 0.0** ({ours}) | <u>70.0 ± 0.0</u> ({mtt}) | 60.0 ± 0.0 "
        f"| 90.0 ± 0.0 ({whole}) |",
        # What we have not run, the paper may have.
        "| epsilon | 0.1 % | accuracy | — (75.2 ± 1.5) | **60.0 ± 0.0** (OOT) | — | — (86.7 ± 0.2) |",
    ]
    head, adult, _ = lines(scores, Layout(metrics=["accuracy"], paper="column"), paper)
    assert (
        head == "| table | ratio | metric | ours | ours, paper | mtt | mtt, paper | stratified | whole | whole, paper |"
    )
    assert adult.split(" | ")[3:7] == ["**80.0 ± 0.0**", ours, "<u>70.0 ± 0.0</u>", mtt]
    assert "In brackets: the paper's numbers" in legend(scores, ACCURACY, paper)
    assert "brackets" not in legend(scores, ACCURACY)


def test_the_papers_numbers_match_by_space_where_spaces_are_shown() -> None:
    scores = together(
        *(runs(m, [a], table="adult", ratio=0.001, space=s)
          for m, s, a in (("ours", "hcfe", 0.8), ("random", "hcfe", 0.7), ("random", "label", 0.6)))
    )  # fmt: skip
    layout = Layout(columns=("space", "method"), metrics=["accuracy"])
    _, ours, hcfe, label = lines(scores, layout, paper_numbers("overall"))[1].rsplit(" | ", 3)
    assert "(81.5 ± 0.6)" in ours
    assert "(" not in hcfe
    assert "(75.7" in label
    # Both are the paper's encoding, as it is described and as it is here.
    varieties = together(*(runs("ours", [0.8], table="adult", ratio=0.001, space=s) for s in ("hcfe_paper", "hcfe")))
    assert lines(varieties, layout, paper_numbers("overall"))[1].count("(81.5 ± 0.6)") == 2


def test_a_number_of_another_models_or_variants_is_not_beside_ours() -> None:
    place = {"table": "adult", "ratio": 0.001}
    boosted = runs("ours", [0.8], model="boosting", **place)
    assert lines(boosted, ACCURACY, paper_numbers("overall"))[1].endswith("| 80.0 |")
    one = runs("ours", [0.8], variant="ratio", **place)
    assert lines(one, ACCURACY, paper_numbers("allocation"))[1].endswith("| 80.0 (80.4) |")


def test_a_bound_of_the_papers_is_one() -> None:
    scores = runs("ours", [0.5], table="epsilon", ratio=0.001).assign(condense_seconds=3.0)
    found = lines(scores, Layout(metrics=["condense_seconds"]), paper_numbers("time"))
    assert found[1].endswith("| 3 (< 72) |")


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>", "a|b\n| c", "[x](javascript:alert(1))", "`a` **b** \\| _c_"]
)
def test_hostile_names_stay_in_their_cell(name: str) -> None:
    scores = together(runs("ours", [0.8], table=name), runs(name, [0.7], table=name))
    for line in lines(scores):
        bare = line.replace("\\\\", "").replace("<u>", "").replace("</u>", "").replace("**", "")
        assert len([part for part in bare.split("|") if not part.endswith("\\")]) == 7
        for mark in "<[]`*_":
            assert bare.count(mark) == bare.count(f"\\{mark}")
    page = Page(experiment_page(name, scores, ACCURACY, notes=[name]))
    page.tags -= {"b", "u"}
    page.check_harmless()
    assert page.words.count(" ".join(name.split())) >= 3


def test_the_page_marks_what_the_table_marks() -> None:
    scores = together(runs("ours", [0.8]), runs("dm", [0.7]))
    further = {"Mean ranks": ShownTable([Column("method")], [[Cell("ours", "best")]], "One unit.")}
    text = experiment_page("overall", scores, ACCURACY, statistics=further, notes=["Run by hand."])
    assert "<b>80.0</b>" in text
    assert "<u>70.0</u>" in text
    assert {"Run by hand.", "Mean ranks", "One unit.", "Results"} <= set(Page(text).words)
    assert text == experiment_page("overall", scores, ACCURACY, statistics=further, notes=["Run by hand."])
