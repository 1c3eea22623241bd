"""Credentials stay in the environment: nothing that Dagster keeps or shows holds them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline_tests.pipeline.toys import Toys, failure_of, nothing
from c2tc_pipeline_tests.storage.places import Place
from c2tc_pipeline_tests.storage.s3_server import KEY, SECRET


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """One that keeps everything in files, where it can be searched."""
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        yield instance


@pytest.fixture
def place(s3_place: Place) -> Place:
    return s3_place


def test_wrong_credentials_end_in_one_sentence_and_no_secret_reaches_what_dagster_keeps(
    toys: Toys, home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def break_off() -> None:
        raise OSError("broke off")

    assert toys.make("word", "adult").success
    assert toys.make("board").success
    toys.meanwhile = break_off
    assert not toys.make("motto").success
    before = toys.place.contents()
    toys.meanwhile, toys.fenced = nothing, False
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-wrong")
    for asset in ("motto", "reply"):
        message = failure_of(toys.make(asset))
        # Its own manifests are looked at first, before any input is loaded.
        assert message.startswith(f"Access to '{toys.place.root}/{asset}/all/manifests' was refused;")
        assert "\n" not in message
    assert toys.place.contents() == before
    kept = [dg.serialize_value(run) for run in toys.instance.get_runs()]
    kept += [
        dg.serialize_value(entry) for run in toys.instance.get_runs() for entry in toys.instance.all_logs(run.run_id)
    ]
    shown = "\n".join([*kept, *capfd.readouterr()])
    # What was searched has to be what was kept: the root is no secret and has to be there.
    assert toys.place.root in shown
    assert KEY not in shown
    assert SECRET not in shown
    files = {path.name: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert any(toys.place.root.encode() in content for content in files.values())
    assert not [name for name, content in files.items() if KEY.encode() in content or SECRET.encode() in content]


def test_the_configuration_is_a_root_without_credentials() -> None:
    assert set(StoreIOManager.model_fields) == {"root"}
    with pytest.raises(InputError, match="credentials belong into AWS_ACCESS_KEY_ID") as caught:
        StoreIOManager(root=f"s3://{KEY}:{SECRET}@bucket/prefix")
    assert SECRET not in str(caught.value)
