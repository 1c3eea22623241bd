"""The default instance, the definitions that Dagster loads, the executor of steps, and runs that were killed."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

import c2tc_pipeline
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.definitions import build_defs, loaded_defs
from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE
from c2tc_pipeline.pipeline.instance import (
    SETTINGS,
    end_dead_runs,
    open_instance,
    prepare_home,
    runs_are_local,
)
from c2tc_pipeline.pipeline.jobs import STEPS_VARIABLE
from c2tc_pipeline_tests.pipeline.processes import KILLED_RUN
from c2tc_pipeline_tests.pipeline.toy_pipeline import toy_catalogue

ROOT = Path(c2tc_pipeline.__file__).parents[1]


def test_the_folder_is_absolute_and_holds_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = prepare_home("runs/dagster")
    assert home == tmp_path / "runs" / "dagster"
    assert [path.name for path in home.iterdir()] == ["dagster.yaml"]
    (home / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    with open_instance(home) as instance:
        assert instance.telemetry_enabled
    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="DAGSTER_HOME"):
        prepare_home(tmp_path / "file" / "dagster")


def test_the_settings_of_the_instance(tmp_path: Path) -> None:
    with open_instance(tmp_path) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
        assert isinstance(instance.run_launcher, dg.DefaultRunLauncher)
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] > 0
        assert instance.run_monitoring_max_runtime_seconds > 0
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert str(tmp_path) in instance.storage_directory()


def test_a_run_logs_what_its_user_logs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    @dg.asset(pool="gpu")
    def encoder() -> None:
        context = dg.AssetExecutionContext.get()
        context.log.debug("for developers")
        context.log.info("for people")

    with open_instance(tmp_path) as instance:
        assert dg.materialize([encoder], instance=instance).success
    printed = capfd.readouterr().err
    assert "for people" in printed
    assert "for developers" not in printed
    assert "STEP_START" not in printed


@pytest.mark.parametrize(
    ("settings", "local"),
    [
        ("", True),
        (SETTINGS.read_text(), True),
        ("run_launcher: {module: dagster_docker, class: DockerRunLauncher}", False),
        ("storage: {postgres: {postgres_url: {env: DATABASE}}}", False),
    ],
)
def test_whether_runs_are_on_this_machine(tmp_path: Path, settings: str, local: bool) -> None:
    (tmp_path / "dagster.yaml").write_text(settings)
    assert runs_are_local(tmp_path) is local


def test_a_killed_run_is_ended(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED_RUN, str(tmp_path)], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr

    @dg.asset(pool="gpu")
    def encoder() -> None:
        with open_instance(tmp_path) as other:
            assert end_dead_runs(other) == [], "the current run is alive"

    with open_instance(tmp_path) as instance:
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.STARTED
        assert end_dead_runs(instance) == [run.run_id]
        [run] = instance.get_runs()
        assert run.status == dg.DagsterRunStatus.FAILURE
        assert end_dead_runs(instance) == []
        assert dg.materialize([encoder], instance=instance).success


@pytest.mark.parametrize(
    ("wanted", "name"), [("", "multiprocess"), (" together ", "in_process"), ("apart", "multiprocess")]
)
def test_the_executor_of_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, name: str) -> None:
    monkeypatch.setenv(STEPS_VARIABLE, wanted)
    catalogue = toy_catalogue(tmp_path, "adult")
    defs = build_defs(catalogue, storage="memory://unused")
    assert defs.resolve_job_def("condense_job").executor_def.name == name
    monkeypatch.setenv(STEPS_VARIABLE, "elsewhere")
    with pytest.raises(InputError, match="apart, together"):
        build_defs(catalogue, storage="memory://unused")


def test_loading_the_definitions_leaves_garbage_collection_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(IN_FORCE_VARIABLE, raising=False)
    monkeypatch.setenv("C2TC_CATALOGUE", str(tmp_path / "catalog.yaml"))
    monkeypatch.setenv("C2TC_STORAGE", str(tmp_path / "store"))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "catalog.yaml").write_text("tables: {bank: {source: bank.csv, label: y}}")
    assert loaded_defs().resolve_job_def("condense_job").name == "condense_job"
    assert gc.isenabled()
    gc.unfreeze()
    monkeypatch.delenv(IN_FORCE_VARIABLE)
    monkeypatch.setenv(STEPS_VARIABLE, "elsewhere")
    (tmp_path / "catalog.yaml").write_text("tables: {bank: {source: bank.csv, label: z}}")
    with pytest.raises(InputError, match="apart, together"):
        loaded_defs()
    assert gc.isenabled()
    monkeypatch.delenv(IN_FORCE_VARIABLE)


def test_loading_the_definitions_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from c2tc_pipeline.definitions import build_defs\n"
        "build_defs(storage='memory://unused').get_repository_def().get_all_jobs()\n"
        "heavy = ('torch', 'sklearn', 'matplotlib', 'pandera')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stdout == "[]\n", done.stderr
    assert "Warning" not in done.stderr
