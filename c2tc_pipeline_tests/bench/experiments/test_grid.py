"""What an experiment's file may say, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from c2tc_pipeline.bench.experiments.catalogue import PAPER_TABLES, tables_of
from c2tc_pipeline.bench.experiments.grid import Contender, experiment_names, load_experiment
from c2tc_pipeline.bench.rivals import COSTLY, RIVALS
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.catalogue import load_catalogue

SMALL = "title: t\ntables: [a]\nratios: [0.1]\nmethods: [ours]\n"


def test_every_table_and_figure_of_the_paper_is_there() -> None:
    wanted = {"overall", "cross-architecture", "allocation", "modules", "encoding", "gamma", "decay"}
    wanted |= {"feature-imbalance", "time", "scaling-rows", "scaling-columns", "training-time"}
    assert wanted <= set(experiment_names())


@pytest.mark.parametrize("name", experiment_names())
def test_experiments_of_the_package_name_known_tables(name: str) -> None:
    experiment = load_experiment(name)
    assert experiment.name == name
    assert set(experiment.tables) <= set(load_catalogue(PAPER_TABLES))


def test_rivals_and_matching_stand_for_every_rival() -> None:
    names = [contender.method for contender in load_experiment("overall").methods]
    assert sorted(names) == sorted(["ours", *RIVALS])
    assert set(COSTLY) < set(RIVALS)


def test_a_sweep_is_one_contender_a_value(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace("[ours]", "[{method: ours, sweep: {gamma: [0, auto]}, settings: {decay: 0.3}}]"))
    first, second = load_experiment(str(path)).methods
    assert first == Contender(method="ours", variant="gamma=0", settings={"decay": 0.3, "gamma": 0})
    assert second.settings["gamma"] == "auto"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("methods: [ours]", "methods: [hurding]"), "there is no method 'hurding'"),
        (("tables: [a]", "tables: []"), "it names no tables"),
        (("ratios: [0.1]", "ratios: [2]"), "field 'ratios.0'"),
        (("title: t", "title: t\nspaces: [hcfee]"), "there is no column space 'hcfee'"),
        (("title: t", "title: t\nmodels: [mlpp]"), "there is no model 'mlpp'"),
        (("title: t", "title: t\nrecipe: papper"), "there is no recipe 'papper'"),
        (("title: t", "title: t\nseed: 3"), "field 'seed'"),
        (("methods: [ours]", "methods: ours"), "must be a list of methods"),
        (("methods: [ours]", "methods: 3"), "must be a list of methods"),
        (("methods: [ours]", "methods:"), "must be a list of methods"),
        (("methods: [ours]", "methods: [ours, ours]"), "stands there twice"),
        (("methods: [ours]", "methods: [{method: ours, sweep: {gamma: 0.5}}]"), "must be a list of values"),
        (("methods: [ours]", "methods: [{method: ours, spaces: [nowhere]}]"), "there is no column space 'nowhere'"),
        (("title: t", "title: t\nimbalance: {columns: {a: x}, levels: []}"), "field 'imbalance.levels'"),
        (("title: t", "title: t\nimbalance: {columns: {}, levels: [2]}"), "which column of table 'a'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace(*change))
    with pytest.raises(InputError, match=said) as caught:
        load_experiment(str(path))
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_an_unknown_experiment_is_refused() -> None:
    with pytest.raises(InputError, match=r"There is no experiment 'overal'.*overall"):
        load_experiment("overal")


def test_restricting_to_what_is_not_there_is_refused() -> None:
    experiment = load_experiment("allocation")
    with pytest.raises(InputError, match="no method 'random' in experiment 'allocation'"):
        experiment.restricted(methods=("random",))
    with pytest.raises(InputError, match="there is no model 'x'"):
        experiment.restricted(models=("x",))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    experiment = load_experiment("allocation")
    with pytest.raises(InputError, match=r"electricity\.parquet"):
        tables_of(experiment, data=tmp_path)
    with pytest.raises(InputError, match="--data"):
        tables_of(experiment)
