"""The catalogue of a stack: what a broken one does to its start, and which change restarts the code server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE, accept
from deploy import __main__ as commands
from deploy import services
from deploy.layout import Layout

RIGHT = "tables: {bank: {source: bank.csv, label: y}}"
WRONG = "tables: {bank: {source: bank.csv, label: y, evaluation: {models: [no_such]}}}"


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.delenv(IN_FORCE_VARIABLE, raising=False)
    (tmp_path / "catalog.yaml").write_text(WRONG)
    return Layout(tmp_path / "stack", tmp_path / "catalog.yaml", workers=0)


def test_a_broken_catalogue_starts_only_where_one_was_accepted(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    @contextmanager
    def stand_in(*arguments: object, **_: object) -> Iterator[None]:
        started.append(arguments)
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(commands, "running_stack", stand_in)
    up = ["up", "--folder", str(layout.folder), "--catalogue", str(layout.catalogue), "--workers", "0"]
    refused = CliRunner().invoke(commands.main, up)
    assert (refused.exit_code, started) == (2, [])
    assert "no_such" in refused.stderr
    layout.catalogue.write_text(RIGHT)
    monkeypatch.setenv("DAGSTER_HOME", str(layout.home))
    accept(layout.catalogue, "memory://accepted")
    layout.catalogue.write_text(WRONG)
    begun = CliRunner().invoke(commands.main, up)
    assert (begun.exit_code, len(started)) == (0, 1)
    assert len([line for line in begun.stdout.splitlines() if "no_such" in line]) == 1


def test_only_a_catalogue_that_will_be_accepted_restarts_the_code_server(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not (list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb")):
        pytest.skip("the programs of PostgreSQL are not on this machine")
    layout.catalogue.write_text(RIGHT)
    layout.make({})
    clock = [1e6]
    monkeypatch.setattr(services.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(services.os, "geteuid", lambda: 1000)
    [code] = [each for each in services.all_services(layout) if each.name == "code-server"]

    def is_stale(looks: int = 3) -> bool:
        assert code.is_stale is not None
        for _ in range(looks):
            clock[0] += 60
            if code.is_stale(os.getpid()):
                return True
        return False

    assert not is_stale()
    layout.catalogue.write_text(WRONG)
    assert not is_stale()
    layout.catalogue.write_text(RIGHT.replace("label: y", "label: z"))
    assert is_stale()
    assert not is_stale()
