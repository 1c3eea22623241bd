"""The written results of an experiment: its table, the paper's numbers in it, statistics and protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from c2tc_pipeline.bench.experiments.grid import Experiment, load_experiment, paper_numbers
from c2tc_pipeline.bench.job import layout_of, write_experiment
from c2tc_pipeline.bench.reports.exhibits import experiment_page
from c2tc_pipeline.bench.reports.table import Layout, experiment_table
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.bench.statistics.made_scores import runs, together, unfinished
from c2tc_pipeline_tests.reports.page_parser import Page

ACCURACY = Layout(metrics=["accuracy"])


def lines(scores: pd.DataFrame, layout: Layout = ACCURACY, paper: pd.DataFrame | None = None) -> list[str]:
    """Return the lines of the table without its rule."""
    head, _, *body = experiment_table(scores, layout, paper).markdown().split("\n\n")[0].splitlines()
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
        "| adult | 1 % | accuracy | <u>70.0</u> | **82.0 ± 1.0** | OOM | 91.0 ± 1.0 |",
        "| adult | 1 % | macro-F1 | <u>60.0</u> | **72.0 ± 1.0** | OOM | 81.0 ± 1.0 |",
        "| adult | 0.1 % | accuracy | <u>60.0</u> | **81.0 ± 1.0** | — | 91.0 ± 1.0 |",
        "| adult | 0.1 % | macro-F1 | <u>50.0</u> | **71.0 ± 1.0** | — | 81.0 ± 1.0 |",
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
    assert lines(scores)[1].endswith("**80.0** | <u>70.0 †</u> |")
    assert "†: some runs did not finish" in legend(scores)
    assert "over 1 to 2 runs" in legend(scores)


def test_other_layouts_serve_the_other_experiments() -> None:
    models = together(
        *(runs(m, [a], model=j) for m, j, a in (("ours", "mlp", 0.8), ("ours", "tabr", 0.7), ("dm", "mlp", 0.6)))
    )
    # One method under two models is no race.
    by_model = Layout(rows=("table", "method"), columns=["model"], metrics=["accuracy"])
    assert lines(models, by_model)[1:] == ["| t | ours | accuracy | 80.0 | 70.0 |", "| t | dm | accuracy | 60.0 | — |"]
    side_by_side = Layout(rows=("table",), columns=("model", "method"), metrics=["accuracy"])
    whole = runs("whole", [0.9], model="mlp", ratio=1.0)
    assert lines(together(models, whole, runs("dm", [0.75], model="tabr")), side_by_side) == [
        "| table | metric | mlp / ours | mlp / dm | mlp / whole | tabr / ours | tabr / dm |",
        "| t | accuracy | **80.0** | <u>60.0</u> | 90.0 | <u>70.0</u> | **75.0** |",
    ]
    assert "best of the row under each model" in legend(models, side_by_side)


def test_names_on_the_page_are_text() -> None:
    name = "<img src=x onerror=alert(1)>"
    scores = together(runs("ours", [0.8], table=name), runs(name, [0.7], table=name))
    text = experiment_page(name, {"Results": experiment_table(scores, ACCURACY)}, notes=[name])
    assert "<b>80.0</b>" in text
    page = Page(text)
    page.tags -= {"b", "u"}
    page.check_harmless()
    assert page.words.count(name) >= 3


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
    assert lines(scores, ACCURACY, paper)[1:] == [
        "| adult | 0.1 % | accuracy | **80.0** (81.5 ± 0.6) | <u>70.0</u> (76.2 ± 1.8) | 60.0 | 90.0 (85.5 ± 0.1) |",
        # What we have not run, the paper may have.
        "| epsilon | 0.1 % | accuracy | — (75.2 ± 1.5) | **60.0** (OOT) | — | — (86.7 ± 0.2) |",
    ]
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


def test_only_numbers_of_the_same_model_and_variant_stand_beside_ours() -> None:
    place: dict[str, Any] = {"table": "adult", "ratio": 0.001}
    boosted = runs("ours", [0.8], model="boosting", **place)
    assert lines(boosted, ACCURACY, paper_numbers("overall"))[1].endswith("| 80.0 |")
    one = runs("ours", [0.8], variant="ratio", **place)
    assert lines(one, ACCURACY, paper_numbers("allocation"))[1].endswith("| 80.0 (80.4) |")
    # The paper gives this one as a bound.
    timed = runs("ours", [0.5], table="epsilon", ratio=0.001).assign(condense_seconds=3.0)
    assert lines(timed, Layout(metrics=["condense_seconds"]), paper_numbers("time"))[1].endswith("| 3 (< 72) |")


PRINTED = {
    "overall": 10 * (3 * 7 + 1) * 2,
    "cross-architecture": (3 * 5 + 2 + 4) * 6,
    "allocation": 3 * 5 * 2,
    "modules": 5 + 4 + 6 + 5 + 6,
    "encoding": 3 * 4 * 2,
    "time": 5,
    "scaling-rows": 8,
    "scaling-columns": 4,
}
KEY = ["table", "ratio", "method", "space", "variant", "model", "metric"]


def test_every_number_of_the_paper_is_there_once() -> None:
    for experiment, count in PRINTED.items():
        numbers = paper_numbers(experiment)
        assert numbers is not None
        assert len(numbers) == count
        assert not numbers.duplicated(KEY).any()
        assert set(numbers["status"]) <= {"ok", "OOT", "OOM", "under"}
        assert (numbers["mean"].isna() == numbers["status"].isin(["OOT", "OOM"])).all()
        scores = numbers[numbers["metric"].isin(["accuracy", "macro_f1"])]
        assert scores["mean"].dropna().between(0.05, 1).all()
        assert not numbers[["table", "method", "space", "variant", "model"]].isna().any(axis=None)
    assert paper_numbers("choices") is None


def grid(**fields: Any) -> Experiment:
    given = {"name": "own", "title": "Own", "tables": ["t"], "ratios": [0.01], "methods": ["ours", "random"], **fields}
    return Experiment.model_validate(given)


def timed(scores: pd.DataFrame) -> pd.DataFrame:
    return scores.assign(condense_seconds=1.0, fit_seconds=1.0, objective=1.0)


def written(experiment: Experiment, scores: pd.DataFrame, out: Path, **given: Any) -> tuple[str, set[str]]:
    """Return the text of the tables, without what escapes, and the names of all files."""
    write_experiment(experiment, timed(scores), out, **given)
    names = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    return (out / "table.md").read_text(encoding="utf-8").replace("\\", ""), names


def table_of(name: str, scores: pd.DataFrame) -> list[str]:
    experiment = load_experiment(name)
    return experiment_table(timed(scores), layout_of(experiment, timed(scores))).markdown().splitlines()


def test_a_sweep_of_ours_beside_a_rival_has_ranks_and_no_comparisons(tmp_path: Path) -> None:
    experiment = grid(methods=[{"method": "ours", "sweep": {"gamma": [0.5, 1]}}, "random"])
    scores = together(
        *(runs("ours", [a, a], variant=f"gamma={g}") for g, a in (("0.5", 0.8), ("1", 0.7))),
        runs("random", [0.6, 0.6]),
        runs("whole", [0.9, 0.9], ratio=1.0),
    )
    text, names = written(experiment, scores, tmp_path)
    assert "| ours (gamma=0.5) | 1.00 | 0 |" in text
    assert "Ours against each rival" not in text
    assert "statistics.parquet" not in names
    assert "figures/mean-ranks-accuracy.png" in names


def test_an_imbalance_with_two_methods_never_ranks_the_whole_table(tmp_path: Path) -> None:
    levels = ("1:1", "10:1")
    scores = together(
        *(runs(m, [a, a], variant=v) for m, a in (("ours", 0.8), ("random", 0.7)) for v in levels),
        *(runs("whole", [0.9, 0.9], variant=v, ratio=1.0) for v in levels),
    )
    experiment = grid(imbalance={"columns": {"t": "x"}, "levels": [1, 10]}, show={"columns": ["method", "variant"]})
    text, names = written(experiment, scores, tmp_path)
    ranks = text.split("## Mean ranks, accuracy")[1].split("##")[0]
    assert "ours (10:1)" in ranks
    assert "whole" not in ranks
    assert "whole / 10:1" in text
    assert {"report.html", "scores.parquet"} <= names


@pytest.mark.parametrize("figure", ["seconds", "bars"])
def test_when_nothing_finished_the_table_says_so(figure: str, tmp_path: Path) -> None:
    show = {"metrics": ["condense_seconds" if figure == "seconds" else "accuracy"], "figure": figure}
    text, names = written(grid(show=show), together(unfinished("ours"), unfinished("random", "OOM")), tmp_path)
    assert "| OOT | OOM |" in text
    assert "report.html" in names
    assert any(name.startswith("figures/") for name in names) == (figure != "seconds")


def test_a_whole_table_that_no_column_shows_has_rows() -> None:
    scores = together(*(runs("ours", [0.8], variant=v) for v in ("ratio", "hfils")), runs("whole", [0.9], ratio=1.0))
    assert "| t | 1 % | whole | accuracy | — | — | 90.0 |" in table_of("allocation", scores)


def test_architectures_judge_methods_and_are_averaged(tmp_path: Path) -> None:
    cells = (("ours", "mlp", 0.6), ("ours", "tabr", 0.9), ("random", "mlp", 0.7), ("random", "tabr", 0.5))
    scores = together(*(runs(m, [a, a], model=j) for m, j, a in cells))
    experiment = load_experiment("cross-architecture")
    text, _ = written(experiment, scores, tmp_path)
    accuracies = [line for line in text.split("##")[1].splitlines() if "| accuracy |" in line]
    assert accuracies == [
        "| t | 1 % | mlp | accuracy | <u>60.0</u> | **70.0** |",
        "| t | 1 % | tabr | accuracy | **90.0** | <u>50.0</u> |",
        "| t | 1 % | mean of models | accuracy | **75.0** | <u>60.0</u> |",
    ]
    # The mean is for the eye: it is no model of its own in any test.
    assert "mean of models" not in text.split("## First, tied or behind")[1]
    assert "mean of models" not in set(pd.read_parquet(tmp_path / "scores.parquet")["model"])


def test_the_worth_of_rows_is_written_with_its_mean_and_a_weak_whole_is_noticed(tmp_path: Path) -> None:
    def scored(method: str, auc: float, rows: int, table: str) -> pd.DataFrame:
        measured = {"auc": auc, "log_loss": 0.5, "brier": 0.1, "rows": rows}
        return runs(method, [auc - 0.1] * 2, table=table, ratio=1.0 if method == "whole" else 0.01, **measured)

    curve = {"random": (0.6, 10), "random_x5": (0.8, 50), "random_x50": (0.9, 500), "whole": (0.85, 1000)}
    parts = [scored(name, *value, table) for table in ("adult", "higgs") for name, value in curve.items()]
    scores = together(scored("ours", 0.8, 10, "adult"), scored("ours", 0.95, 10, "higgs"), *parts)
    experiment = grid(tables=("adult", "higgs"), multiples=(1, 5, 50), show={"figure": "worth"})
    text, names = written(experiment, scores, tmp_path)
    text = text.replace("\\", "")
    # Worth 5 on one table, and more than the curve of 50 on the other.
    assert "| all tables | 1 % | ours | **> 16** (102.9 %) |" in text
    assert "| tuning tables | 1 % | ours | **5** (94.1 %) |" in text
    assert "| adult | 1 % | ours | **5** (94.1 %) |" in text
    assert "| higgs | 1 % | ours | **> 50** (111.8 %) |" in text
    assert "higgs: mlp on hcfe columns has 75.0 % accuracy on the whole table and 85.0 % on the ours rows" in text
    assert any(name.startswith("figures/auc-against-random-rows") and "adult" in name for name in names)
    # Samples of other sizes are a curve, no rivals.
    assert "random_x5" not in text.partition("is not a sound reference")[2]
    assert pd.read_parquet(tmp_path / "worth.parquet")["contender"].unique().tolist() == ["ours"]
