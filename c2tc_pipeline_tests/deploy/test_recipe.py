"""The files of the deployment, and what of its commands is testable without starting a service."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import psutil
import pytest
import yaml
from click.testing import CliRunner

from c2tc_pipeline.pipeline.instance import SETTINGS
from c2tc_pipeline.pipeline.io_managers import artefact_key
from c2tc_pipeline.storage.store import ArtefactStore
from deploy import smoke
from deploy import stack as stack_module
from deploy.__main__ import main
from deploy.layout import SECRETS, Layout
from deploy.preparing import FILES
from deploy.stack import Stack, end_leftovers, holder, processes_file


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "stack", tmp_path / "catalog.yaml")
    layout.make({})
    return layout


def test_the_instance_differs_from_the_one_of_a_single_machine_in_its_storage_only() -> None:
    production = yaml.safe_load((FILES / "dagster.yaml").read_text())
    storage = production.pop("storage")["postgres"]["postgres_db"]
    assert production == yaml.safe_load(SETTINGS.read_text())
    assert all(list(value) == ["env"] for value in storage.values())


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
    stack._remember()
    before = processes_file(layout).read_text()

    def die_halfway(path: Path, text: str) -> int:
        path.write_bytes(text[: len(text) // 2].encode())
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_text", die_halfway)
    with pytest.raises(KeyboardInterrupt):
        stack._remember()
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
        assert holder(layout) == os.getpid()
        timer.join()
    assert holder(layout) is None


def test_a_folder_whose_holder_never_says_who_it_is_does_not_keep_one_waiting(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_module, "_NOTE_SECONDS", 0.1)
    with held(layout, ""), pytest.raises(RuntimeError, match="has not noted its process; try again"):
        holder(layout)


def test_a_stack_that_ended_leaves_no_number_behind(layout: Layout) -> None:
    with stack_module._locked(layout):
        assert holder(layout) == os.getpid()
    assert (layout.folder / "stack.lock").read_text() == ""
    assert holder(layout) is None


@pytest.mark.parametrize("command", ["check", "down", "up", "smoke"])
def test_without_stack_or_catalogue_one_sentence_says_so(command: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, [command, "--folder", str(tmp_path / "none"), "--catalogue", str(tmp_path / "none.yaml")]
    )
    assert done.exit_code == (0 if command == "down" else 2)
    [line] = done.output.strip().splitlines()
    assert ("No stack runs in" if command in ("check", "down") else "none.yaml") in line


def test_every_container_runs_as_nobody_in_particular_and_is_probed() -> None:
    items = yaml.safe_load((FILES / "kubernetes.yaml").read_text())["items"]
    pods = [each for each in items if each["kind"] in ("Deployment", "Job")]
    assert len(pods) == 6
    for each in pods:
        template = each["spec"]["template"]["spec"]
        assert template["securityContext"]["runAsNonRoot"] is True
        for container in template["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["resources"]["limits"]["memory"]
            if each["kind"] == "Deployment":
                assert {"livenessProbe", "readinessProbe"} <= set(container)


def values_of(content: Any, name: str) -> Iterator[str]:
    """Yield every value that some YAML gives to a name, at any depth."""
    if isinstance(content, dict):
        for key, value in content.items():
            if key == name:
                yield value
            yield from values_of(value, name)
    elif isinstance(content, list):
        for each in content:
            yield from values_of(each, name)


def test_the_files_that_were_not_tried_say_so_and_hold_no_secret() -> None:
    for name in ("Containerfile", "compose.yaml", "kubernetes.yaml"):
        assert (FILES / name).read_text().startswith("# Not tried here")
    compose = yaml.safe_load((FILES / "compose.yaml").read_text())
    cluster = yaml.safe_load((FILES / "kubernetes.yaml").read_text())
    for secret in (*SECRETS, "POSTGRES_PASSWORD"):
        assert all(value.startswith("${") for value in values_of(compose, secret))
        assert not list(values_of(cluster, secret))
    assert list(values_of(compose, "AWS_SECRET_ACCESS_KEY"))


def test_containers_know_every_variable_of_the_instance() -> None:
    named = set(values_of(yaml.safe_load((FILES / "dagster.yaml").read_text()), "env"))
    named |= set(values_of(yaml.safe_load((FILES / "workspace.yaml").read_text()), "env"))
    compose = yaml.safe_load((FILES / "compose.yaml").read_text())
    assert all(named <= set(compose["services"][name]["environment"]) for name in ("code", "dashboard", "daemon"))
    [settings, *_] = yaml.safe_load((FILES / "kubernetes.yaml").read_text())["items"]
    assert named - set(settings["data"]) == {"C2TC_POSTGRES_PASSWORD"}


def test_a_number_that_only_keeps_others_out_is_no_artefact(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtefactStore("memory://smoke-run")
    monkeypatch.setattr(smoke, "ArtefactStore", lambda root: store)
    store.take_number(artefact_key("raw_table", "people"), 1)
    store.publish(artefact_key("raw_table", "bank"), lambda folder: (folder / "a").touch(), kind="raw-table")
    assert smoke.verified_artefacts(layout, {"raw_table": {"people", "bank"}}) == {"raw_table": {"bank"}}
