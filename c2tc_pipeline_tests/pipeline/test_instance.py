"""The default instance: its settings as a real instance reads them."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.instance.config import PoolGranularity
from dagster._core.scheduler.instigation import TickStatus

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.instance import SETTINGS, open_instance, prepare_home, runs_are_here
from c2tc_pipeline.pipeline.launcher import ForkingRunLauncher


def test_the_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = prepare_home("runs/dagster")
    assert home == tmp_path / "runs" / "dagster"
    assert sorted(path.name for path in home.iterdir()) == ["dagster.yaml"]


def test_settings_of_ones_own_are_kept(tmp_path: Path) -> None:
    (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    prepare_home(tmp_path)
    with open_instance(tmp_path) as instance:
        assert instance.telemetry_enabled
    assert (tmp_path / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"The folder .*dagster can't be made \(.*\); set DAGSTER_HOME to another\."):
        prepare_home(tmp_path / "file" / "dagster")


def test_the_settings_of_the_instance(tmp_path: Path) -> None:
    with open_instance(tmp_path) as instance:
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled
        pools = instance.get_concurrency_config().pool_config
        assert (pools.default_pool_limit, pools.pool_granularity) == (1, PoolGranularity.OP)
        assert isinstance(instance.run_launcher, ForkingRunLauncher)
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_settings["free_slots_after_run_end_seconds"] > 0
        assert instance.run_monitoring_max_runtime_seconds > 0
        assert instance.run_retries_enabled
        assert not instance.run_retries_retry_on_asset_or_op_failure
        assert instance.get_tick_retention_settings(InstigatorType.SCHEDULE)[TickStatus.SKIPPED] == 90
        assert instance.get_tick_retention_settings(InstigatorType.SENSOR)[TickStatus.SKIPPED] == 7
        assert type(instance.event_log_storage).__name__ == "SqliteEventLogStorage"
        assert str(tmp_path) in instance.storage_directory()


def test_a_gpu_step_holds_the_only_slot_while_it_runs(tmp_path: Path) -> None:
    held: list[int] = []

    @dg.asset(pool="gpu")
    def encoder() -> None:
        with open_instance(tmp_path) as other:
            info = other.event_log_storage.get_concurrency_info("gpu")
            held.append(info.slot_count - len(info.claimed_slots))

    with open_instance(tmp_path) as instance:
        assert dg.materialize([encoder], instance=instance).success
        info = instance.event_log_storage.get_concurrency_info("gpu")
    assert held == [0]
    assert (info.slot_count, info.claimed_slots) == (1, [])


def test_a_run_says_what_its_user_logs_and_no_more(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    @dg.asset
    def table() -> None:
        context = dg.AssetExecutionContext.get()
        context.log.debug("for developers")
        context.log.info("for people")

    with open_instance(tmp_path) as instance:
        assert dg.materialize([table], instance=instance).success
    printed = capfd.readouterr().err
    assert "for people" in printed
    assert "for developers" not in printed
    assert "STEP_START" not in printed


def test_the_settings_are_part_of_the_package() -> None:
    assert SETTINGS.is_file()


@pytest.mark.parametrize(
    ("settings", "here"),
    [
        ("", True),
        ("telemetry: {enabled: false}", True),
        ("run_launcher: {module: c2tc_pipeline.pipeline.launcher, class: ForkingRunLauncher}", True),
        ("run_launcher: {module: dagster_docker, class: DockerRunLauncher}", False),
        ("storage: {postgres: {postgres_url: {env: DATABASE}}}", False),
    ],
)
def test_whether_runs_are_on_this_machine(tmp_path: Path, settings: str, here: bool) -> None:
    (tmp_path / "dagster.yaml").write_text(settings)
    assert runs_are_here(tmp_path) is here
