"""The files of the deployment, and what of its commands is testable without starting a service."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest
import yaml
from click.testing import CliRunner
from dagster_aws.s3 import S3ComputeLogManager
from dagster_k8s.job import UserDefinedDagsterK8sConfig

from c2tc_pipeline.pipeline.instance import SETTINGS
from deploy import services
from deploy import stack as stack_module
from deploy.__main__ import main
from deploy.environment import STACK_ONLY, VARIABLES, reference
from deploy.layout import SECRETS, Layout
from deploy.preparing import FILES
from deploy.stack import Stack, end_leftovers, holder, processes_file


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "stack", tmp_path / "catalog.yaml")
    layout.make({})
    return layout


def test_secrets_are_made_once_and_for_their_owner_only(layout: Layout) -> None:
    path = layout.folder / "secrets.env"
    before = path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert set(layout.secrets) == set(SECRETS)
    assert len(set(layout.secrets.values())) == len(SECRETS)
    layout.make({})
    assert path.read_text() == before
    assert not any(value in (layout.folder / "stack.env").read_text() for value in layout.secrets.values())


def test_a_service_knows_only_the_secrets_that_it_is_given(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "canary-of-the-caller")
    environment = layout.environment("C2TC_POSTGRES_PASSWORD")
    assert set(SECRETS) & set(environment) == {"C2TC_POSTGRES_PASSWORD"}
    assert "PGPASSWORD" not in environment


def test_ports_that_somebody_chose_are_kept(layout: Layout) -> None:
    again = Layout(layout.folder, layout.catalogue)
    again.make({"dashboard": 3123, "dask": 0})
    assert again.ports["dashboard"] == 3123
    assert again.ports["dask"] > 0
    assert again.addresses["C2TC_DASK"] == f"dask://127.0.0.1:{again.ports['dask']}"


def test_what_a_killed_stack_left_is_ended_and_nobody_else(layout: Layout) -> None:
    sleepers = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    try:
        left, other = sleepers
        born = psutil.Process(left.pid).create_time()
        processes_file(layout).write_text(json.dumps([[left.pid, born], [other.pid, born - 3600.0]]))
        said: list[str] = []
        end_leftovers(layout, said.append)
        assert not psutil.pid_exists(left.pid)
        assert other.poll() is None
        assert [line.split()[2] for line in said] == [str(left.pid)]
    finally:
        for each in sleepers:
            each.kill()
            each.wait()


def test_a_kill_while_processes_are_noted_leaves_the_note_before(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(layout, print)
    stack.changed()
    before = processes_file(layout).read_text()

    def die_halfway(path: Path, text: str) -> int:
        path.write_bytes(text[: len(text) // 2].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", die_halfway)
    with pytest.raises(KeyboardInterrupt):
        stack.changed()
    assert processes_file(layout).read_text() == before
    end_leftovers(layout, print)


@contextmanager
def held(layout: Layout, note: str) -> Iterator[TextIO]:
    """Have the lock of a folder, with this note in it."""
    with (layout.folder / "stack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(note)
        lock.flush()
        yield lock


@pytest.mark.parametrize("note", ["", "12", "of a killed stack"])
def test_who_has_a_folder_is_told_when_the_note_is_whole(layout: Layout, note: str) -> None:
    if note == "of a killed stack":
        dead = subprocess.Popen(["true"])
        dead.wait()
        note = f"{dead.pid}\n"
    with held(layout, note) as lock:

        def finish() -> None:
            lock.seek(0)
            lock.truncate()
            lock.write(f"{os.getpid()}\n")
            lock.flush()

        timer = threading.Timer(0.2, finish)
        timer.start()
        assert holder(layout.folder) == os.getpid()
        timer.join()
    assert holder(layout.folder) is None


def test_a_folder_whose_holder_never_says_who_it_is_does_not_keep_one_waiting(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "_RECORD_SECONDS", 0.1)
    with held(layout, ""), pytest.raises(RuntimeError, match="not recorded its process yet; try again"):
        holder(layout.folder)


@pytest.mark.parametrize("command", ["check", "down", "backup", "up", "smoke"])
def test_without_stack_or_catalogue_one_sentence_says_so(command: str, tmp_path: Path) -> None:
    arguments = {
        "backup": ["--to", str(tmp_path / "copy")],
        "up": ["--catalogue", str(tmp_path / "none.yaml")],
        "smoke": ["--catalogue", str(tmp_path / "none.yaml")],
    }
    done = CliRunner().invoke(main, [command, "--folder", str(tmp_path / "none"), *arguments.get(command, [])])
    assert done.exit_code == (0 if command == "down" else 2)
    [line] = done.output.strip().splitlines()
    assert ("none.yaml" if command in ("up", "smoke") else "No stack runs in") in line


def test_what_up_was_given_is_known_to_other_commands(tmp_path: Path) -> None:
    given = Layout(tmp_path / "stack", tmp_path / "catalog.yaml", workers=3, memory="1GB")
    given.make({})
    assert Layout.recorded(given.folder) == given


def test_a_catalogue_is_loaded_anew_once_it_is_complete_valid_and_no_run_is_going_on(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_LOOK_SECONDS", 0.0)
    valid = "tables: {{people: {{source: people.parquet, label: {label}}}}}"
    layout.catalogue.write_text(valid.format(label="a"))
    is_stale = services._catalogue_watch(layout)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as idle:
        assert not is_stale(idle.pid)
        layout.catalogue.write_text("tables: [")
        assert [is_stale(idle.pid) for _ in range(3)] == [False] * 3
        layout.catalogue.write_text(valid.format(label="b"))
        assert [is_stale(idle.pid) for _ in range(3)] == [False, True, False]
        idle.communicate(b"")
    layout.catalogue.write_text(valid.format(label="c"))
    run = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input() # multiprocessing.spawn'])"
    with subprocess.Popen([sys.executable, "-c", run], stdin=subprocess.PIPE) as busy:
        while not psutil.Process(busy.pid).children():
            pass
        assert [is_stale(busy.pid) for _ in range(3)] == [False] * 3
        busy.communicate(b"")


def values_of(content: Any, name: str) -> Iterator[Any]:
    """Yield every value that some YAML gives to a name, at any depth."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key == name:
                yield value
            yield from values_of(value, name)
    elif isinstance(content, list):
        for each in content:
            yield from values_of(each, name)


def values(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FILES / name).read_text())
    return found


HELM_FILES = ("values.yaml", "values-gpu.yaml", "values-dask.yaml")
# Keys of the chart of dagster 1.13, which ignores most that it does not know.
CHART = {
    "global": {"postgresqlSecretName"},
    "postgresql": {"enabled", "postgresqlHost", "postgresqlUsername", "postgresqlDatabase", "service"},
    "dagsterWebserver": {"service", "envSecrets", "readinessProbe"},
    "dagsterDaemon": {"enabled", "runCoordinator", "runMonitoring", "runRetries", "sensors", "schedules"},
    "deployment": {
        *("name", "port", "dagsterApiGrpcArgs", "includeConfigInLaunchedRuns", "env", "envSecrets", "volumes"),
        *("volumeMounts", "readinessProbe"),
    },
    "pod": {"image", "podSecurityContext", "securityContext", "resources", "livenessProbe"},
}


def test_values_have_keys_of_the_chart_and_every_container_is_confined_and_probed() -> None:
    chart = values("values.yaml")
    assert set(chart["global"]) | set(chart["postgresql"]) <= CHART["global"] | CHART["postgresql"]
    [deployment] = chart["dagster-user-deployments"]["deployments"]
    pods = {name: chart[name] for name in ("dagsterWebserver", "dagsterDaemon")} | {"deployment": deployment}
    for name, pod in pods.items():
        assert CHART["pod"] <= set(pod) <= CHART["pod"] | CHART[name]
        assert pod["podSecurityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["resources"]["limits"]["memory"]
    compose = values("compose.yaml")["services"]
    assert all("healthcheck" in each for name, each in compose.items() if name not in ("migrate", "worker"))


def test_every_image_is_of_this_version() -> None:
    version = tomllib.loads((FILES.parent / "pyproject.toml").read_text())["project"]["version"]
    images = list(values_of([values(name) for name in HELM_FILES], "image"))
    assert {image["tag"] for image in images} == {version}
    assert values("compose.yaml")["services"]["code"]["image"].endswith(f":{version}")


def snake(names: Iterable[str]) -> list[str]:
    return [re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", name) for name in names]


def test_the_instance_of_the_chart_has_the_settings_of_a_single_machine() -> None:
    settings = yaml.safe_load(SETTINGS.read_text())
    chart = values("values.yaml")
    assert chart["telemetry"] == settings.pop("telemetry")
    assert chart["additionalInstanceConfig"] == settings


@pytest.mark.parametrize("name", ["values.yaml", "values-gpu.yaml"])
def test_the_launcher_of_runs_takes_its_configuration(name: str) -> None:
    given = values(name)["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]
    parsed = UserDefinedDagsterK8sConfig.from_dict(dict(zip(snake(given), given.values(), strict=True)))
    assert parsed.container_config["resources"]["limits"]["memory"]
    assert parsed.pod_spec_config


def test_the_output_of_steps_goes_to_s3() -> None:
    logs = values("values.yaml")["computeLogManager"]
    assert logs["type"] == S3ComputeLogManager.__name__
    assert set(snake(logs["config"]["s3ComputeLogManager"])) <= set(S3ComputeLogManager.config_type())


def test_the_files_hold_no_secret() -> None:
    compose = values("compose.yaml")
    for secret in (*SECRETS, "POSTGRES_PASSWORD"):
        assert all(value.startswith("${") for value in values_of(compose, secret))
        assert not [each for name in HELM_FILES for each in values_of(values(name), secret)]
    assert list(values_of(compose, "AWS_SECRET_ACCESS_KEY"))


def test_containers_know_every_variable_of_the_instance() -> None:
    named = set(values_of(values("storage.yaml"), "env")) | set(values_of(values("workspace.yaml"), "env"))
    compose = values("compose.yaml")
    assert all(named <= set(compose["services"][name]["environment"]) for name in ("code", "dashboard", "daemon"))


def test_every_variable_is_in_the_reference() -> None:
    read = {
        name
        for folder in ("c2tc_pipeline", "deploy")
        for path in (FILES.parent / folder).rglob("*.*")
        if path.suffix in (".py", ".yaml") and path.name != "environment.py"
        for name in re.findall("C2TC_[A-Z_]+[A-Z]", path.read_text(encoding="utf-8"))
    }
    assert {name for name in VARIABLES if name.startswith("C2TC_")} | STACK_ONLY == read
    assert reference() in (FILES.parent / "docs" / "production.md").read_text(encoding="utf-8")
