"""Experiments as assets: run on small tables, stored and told about like the others, and launched by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pandas as pd
import pytest

from c2tc_pipeline.definitions import build_defs
from c2tc_pipeline.errors import InputError
from c2tc_pipeline.evaluation.experiments import runner
from c2tc_pipeline.evaluation.experiments.catalogue import PAPER_TABLES
from c2tc_pipeline.evaluation.experiments.grid import experiment_names, load_experiment
from c2tc_pipeline.orchestration.asset_options import GPU_POOL, RETRIES
from c2tc_pipeline.orchestration.experiment_metadata import of_experiment_scores, shortened
from c2tc_pipeline.orchestration.experiments import (
    ExperimentConfig,
    ProgressLog,
    chosen_experiment,
    experiment_partitions,
    scores_recipe,
)
from c2tc_pipeline.orchestration.formats import FORMATS
from c2tc_pipeline.orchestration.io_managers import StoreIOManager
from c2tc_pipeline.orchestration.jobs import EXPERIMENTS
from c2tc_pipeline.orchestration.ledger import DATA_VERSION_TAG
from c2tc_pipeline.orchestration.resources import PaperTablesResource
from c2tc_pipeline.orchestration.schedules import nightly_schedules
from c2tc_pipeline.orchestration.sensors import failure_message
from c2tc_pipeline.orchestration.versioning import ALGORITHM_VERSIONS, RECIPE_TAG
from c2tc_pipeline.tables import Catalogue, load_catalogue
from c2tc_pipeline_tests.made_tables import mixed_table
from c2tc_pipeline_tests.orchestration.pipeline_rig import QUIET, Rig, failure_of, succeeded, tries_of

NAME = "overall"
TINY = {"methods": ["ours", "random"], "models": ["logistic"], "ratios": [0.1], "seeds": 1, "jobs": 0}
HASHES = (DATA_VERSION_TAG, RECIPE_TAG)


def launch(rig: Rig, name: str = NAME, **config: Any) -> dg.ExecuteInProcessResult:
    """Run the job for one experiment; it may fail."""
    settings = {"ops": {"experiment_scores": {"config": {**TINY, **config}}}}
    return rig.definitions.resolve_job_def("experiments_job").execute_in_process(
        instance=rig.instance, partition_key=name, raise_on_error=False, run_config={**QUIET, **settings}
    )


def tags(rig: Rig, asset: str) -> dict[str, str]:
    return dict(rig.event(asset, NAME).tags or {})


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Two tables, and the experiment run on one of them; nothing here changes it."""
    with Rig(tmp_path_factory.mktemp("experiments")) as rig:
        rig.add("people", mixed_table(300))
        rig.add("shops", mixed_table(200, seed=1))
        succeeded(launch(rig, tables=["people"]))
        yield rig


@pytest.fixture
def catalogue(rig: Rig) -> Catalogue:
    return rig.catalogue


def stored(rig: Rig, asset: str) -> Any:
    return StoreIOManager(root=rig.storage).read(asset, NAME)


def test_scores_and_page_are_stored(rig: Rig) -> None:
    result = stored(rig, "experiment_scores")
    assert list(result.scores.columns) == list(runner.COLUMNS)
    assert set(result.scores["table"]) == {"people"}
    assert set(result.scores["method"]) == {"ours", "random", "whole"}
    # In two column spaces: two methods at one ratio, and the whole table.
    assert len(result.scores) == 2 * 3
    assert result.experiment.seeds == 1
    files = stored(rig, "experiment_report")
    assert {"report.html", "table.md", "scores.parquet", "statistics.parquet"} <= set(files)
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    pd.testing.assert_frame_equal(pd.read_parquet(rig_file(rig, "scores.parquet")), result.scores)


def rig_file(rig: Rig, name: str) -> Path:
    return Path(rig.told("experiment_report", NAME)["path"]) / name


def test_metadata_tells_how_it_went(rig: Rig) -> None:
    told, scores = rig.told("experiment_scores", NAME), stored(rig, "experiment_scores").scores
    assert (told["results"], told["results_ok"], told["results_OOT"], told["results_failed"]) == (6, 6, 0, 0)
    ours = scores[scores["method"] == "ours"]
    assert told["ours_accuracy"] == pytest.approx(ours["accuracy"].mean())
    assert told["ours_macro_f1"] == pytest.approx(ours["macro_f1"].mean())
    assert told["source"] == str(rig.catalogue.path)
    assert told["seconds"] > 0
    shown = rig.told("experiment_report", NAME)
    assert Path(shown["page"]).read_bytes() == stored(rig, "experiment_report")["report.html"]
    assert load_experiment(NAME).title in shown["table"]
    assert "people" in shown["table"]
    assert "80 % training, 10 % validation, 10 % test rows" in shown["table"]
    pictures = [value for name, value in shown.items() if name.startswith("figure_")]
    assert len(pictures) == shown["figures"] > 0
    assert all("](data:image/png;base64," in picture for picture in pictures)


def test_what_passes_is_tried_again_and_finds_the_same(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = runner.run_experiment, []

    def hiccup(*args: Any, **rest: Any) -> pd.DataFrame:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("a disk that was away")
        return real(*args, **rest)

    monkeypatch.setattr(runner, "run_experiment", hiccup)
    with rig.copy_to(tmp_path / "rig") as copied:
        result = launch(copied, tables=["people"])
        succeeded(result)
        assert tries_of(result, "experiment_scores") == 2
        for asset in EXPERIMENTS:
            assert copied.told(asset, NAME)["version"] == 2
            before, after = tags(rig, asset), tags(copied, asset)
            assert [after[name] for name in HASHES] == [before[name] for name in HASHES]
            assert len({after[name] for name in HASHES}) == 2


def test_seconds_are_no_part_of_the_version_and_come_back(rig: Rig, tmp_path: Path) -> None:
    found = stored(rig, "experiment_scores")
    slower = found.scores.assign(condense_seconds=9.0, fit_seconds=float("nan"))
    other = found.scores.assign(accuracy=0.5)
    digest = FORMATS["experiment_scores"].digest_of
    assert digest(replace(found, scores=slower)) == digest(found)
    assert digest(replace(found, scores=other)) != digest(found)
    FORMATS["experiment_scores"].write(replace(found, scores=slower), tmp_path)
    loaded = FORMATS["experiment_scores"].read(tmp_path)
    pd.testing.assert_frame_equal(loaded.scores, slower)
    assert loaded.experiment == found.experiment


def test_the_recipe_names_grid_and_tables(catalogue: Catalogue, tmp_path: Path) -> None:
    experiment, specs = chosen_experiment(NAME, ExperimentConfig(tables=["people"]), data=None, catalogue=catalogue)
    recipe = scores_recipe(experiment, specs)
    assert scores_recipe(experiment.restricted(seeds=2), specs) != recipe
    [spec] = specs.values()
    copied = tmp_path / "elsewhere.parquet"
    copied.write_bytes(Path(spec.source).read_bytes())
    moved = spec.model_copy(update={"source": str(copied)})
    assert scores_recipe(experiment, {"people": moved}) == recipe
    assert scores_recipe(experiment, {"people": spec.model_copy(update={"label": "day"})}) != recipe
    copied.write_bytes(copied.read_bytes() + b" ")
    assert scores_recipe(experiment, {"people": moved}) != recipe


def test_nothing_said_it_runs_on_the_catalogue_without_what_takes_long(catalogue: Catalogue) -> None:
    experiment, specs = chosen_experiment(NAME, ExperimentConfig(), data=None, catalogue=catalogue)
    assert experiment.tables == tuple(specs) == ("people", "shops")
    assert specs["people"].source == str(catalogue.path.parent / "people.parquet")
    methods = [part.method for part in experiment.methods]
    assert methods == [part.method for part in load_experiment(NAME).methods if part.method not in ("dm", "gm", "mtt")]
    assert (experiment.seeds, experiment.models) == (load_experiment(NAME).seeds, load_experiment(NAME).models)
    asked, _ = chosen_experiment(NAME, ExperimentConfig(methods=["dm"]), data=None, catalogue=catalogue)
    assert [part.method for part in asked.methods] == ["dm"]


def test_the_folder_of_the_papers_tables_comes_first(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, spec in load_catalogue(PAPER_TABLES).items():
        (tmp_path / spec.source).touch()
        assert spec.source == f"{name}.parquet"
    monkeypatch.setenv("C2TC_BENCH_DATA", str(tmp_path))
    data = PaperTablesResource().path
    experiment, specs = chosen_experiment(NAME, ExperimentConfig(), data=data, catalogue=catalogue)
    assert experiment.tables == tuple(specs) == load_experiment(NAME).tables
    assert all(Path(spec.source).parent == tmp_path for spec in specs.values())
    assert PaperTablesResource(directory="mine").path == Path("mine")
    monkeypatch.delenv("C2TC_BENCH_DATA")
    assert PaperTablesResource().path is None


def test_a_made_table_needs_no_other(catalogue: Catalogue) -> None:
    experiment, specs = chosen_experiment("scaling-rows", ExperimentConfig(), data=None, catalogue=catalogue)
    assert experiment.scaling is not None
    assert specs == {}


def test_what_cannot_run_fails_once_in_one_sentence(rig: Rig) -> None:
    result = launch(rig, "feature-imbalance", methods=[])
    said = failure_of(result, "experiment_scores")
    assert said.startswith(
        "The experiment 'feature-imbalance' can't run on table 'people', of which it knows no feature"
    )
    assert "choose among adult, diabetes130us, airlines" in said
    assert tries_of(result, "experiment_scores") == 1
    assert not result.get_asset_materialization_events()


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"tables": ["peeple"]}, "There is no table 'peeple' in the catalogue"),
        ({"methods": ["oours"]}, "There is no method 'oours' in experiment 'overall'"),
        ({"models": ["mpl"]}, "there is no model 'mpl'"),
        ({"seeds": 0}, "field 'seeds'"),
        ({"ratios": [2.0]}, "field 'ratios"),
        ({"jobs": -1}, "The config field 'jobs' is -1"),
    ],
)
def test_a_wrong_config_is_refused(catalogue: Catalogue, config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        chosen_experiment(NAME, ExperimentConfig(**config), data=None, catalogue=catalogue)


def test_a_missing_table_of_the_paper_is_named(catalogue: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"There is no electricity\.parquet in"):
        chosen_experiment(NAME, ExperimentConfig(), data=tmp_path, catalogue=catalogue)


def test_an_empty_catalogue_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There are no tables in the catalogue"):
        chosen_experiment(NAME, ExperimentConfig(), data=None, catalogue=Catalogue(tmp_path / "catalog.yaml", {}))


def test_they_are_described_and_launched_by_people_only(rig: Rig) -> None:
    specs = {spec.key.to_user_string(): spec for spec in rig.definitions.resolve_all_asset_specs()}
    for name in EXPERIMENTS:
        spec = specs[name]
        assert spec.automation_condition is None
        assert (spec.group_name, spec.tags["c2tc/stage"]) == ("experiments", "experiments")
        assert {"python"} < spec.kinds
        assert spec.owners
        assert spec.description
        assert spec.code_version == ALGORITHM_VERSIONS[name]
    assert list(specs["experiment_scores"].deps) == []
    assert [dep.asset_key.to_user_string() for dep in specs["experiment_report"].deps] == ["experiment_scores"]
    assert "experiments_job" not in {schedule.job_name for schedule in nightly_schedules(rig.catalogue)}


def test_they_are_tried_again_and_wait_for_the_device(rig: Rig) -> None:
    definitions = build_defs(rig.catalogue, storage=rig.storage)
    scores, report = (definitions.resolve_assets_def(name).op for name in EXPERIMENTS)
    assert scores.retry_policy == report.retry_policy == RETRIES
    assert (scores.pool, report.pool) == (GPU_POOL, None)


def test_every_experiment_has_a_partition() -> None:
    assert list(experiment_partitions().get_partition_keys()) == experiment_names()


def test_progress_is_told_now_and_then() -> None:
    told: list[str] = []
    progress = ProgressLog(told.append)
    for done in range(1001):
        progress(done, 1000)
    assert len(told) == 21
    assert (told[0], told[-1]) == ("0 % done", "100 % done")
    assert told[10].startswith("50 % done, about ")


@pytest.mark.parametrize("job", ["experiments_job", "__ASSET_JOB"])
def test_a_failed_experiment_is_told_as_one(job: str) -> None:
    chosen = {dg.AssetKey("experiment_scores")} if job == "__ASSET_JOB" else None
    run = dg.DagsterRun(job, run_id="7d1e", asset_selection=chosen, tags={"dagster/partition": NAME})
    message = failure_message(run, [])
    assert (message["partition"], message["table"]) == (NAME, None)


def test_a_long_table_is_cut_between_lines() -> None:
    assert shortened("| a |\n| b |\n| c |", 14) == "| a |\n| b |\n\nShortened; all of it is on the page."


def test_metadata_names_why_cells_have_no_scores(rig: Rig) -> None:
    found = stored(rig, "experiment_scores")
    late = found.scores.assign(status="OOT", reason="it took more than 1 seconds", accuracy=None, macro_f1=None)
    told = of_experiment_scores(replace(found, scores=late))
    assert (told["results_ok"], told["results_OOT"]) == (0, 6)
    assert told["why_not_ok"].value == {"it took more than 1 seconds": 6}
    assert "ours_accuracy" not in told
