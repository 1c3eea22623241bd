"""A pipeline in which everything is made, to be copied and damaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, without_pictures
from c2tc_pipeline_tests.tools.reliability.kill_matrix import new_rig


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    without_pictures(monkeypatch)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Everything made without disturbance; nothing may change it."""
    with pytest.MonkeyPatch.context() as patch:
        without_pictures(patch)
        with new_rig(tmp_path_factory.mktemp("made") / "rig") as rig:
            rig.run_all()
            yield rig


@pytest.fixture
def rig(made: Rig, tmp_path: Path) -> Iterator[Rig]:
    """A copy of it to damage."""
    with made.copy_to(tmp_path / "rig") as rig:
        yield rig
