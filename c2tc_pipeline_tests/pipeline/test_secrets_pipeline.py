"""The whole pipeline on S3: it works there, and no secret of the environment is kept or shown anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.sensors import WEBHOOK_VARIABLE
from c2tc_pipeline.pipeline.versioning import PARENTS
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig
from c2tc_pipeline_tests.storage.places import Place
from c2tc_pipeline_tests.storage.s3_server import KEY, SECRET
from c2tc_pipeline_tests.tools.made_tables import everything_below

TOKEN = "canary-token-3c9a"


@pytest.fixture
def rig(s3_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Source and artefacts on S3, with credentials and a webhook in the environment."""
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(WEBHOOK_VARIABLE, f"http://127.0.0.1:9/{TOKEN}")
    folder = tmp_path / "rig"
    folder.mkdir()
    with Rig(folder, storage=s3_place.root) as rig:
        rig.add("people", source=f"{s3_place.root}/sources/people.parquet")
        s3_place.overwrite("sources/people.parquet", (folder / "people.parquet").read_bytes())
        yield rig


def kept_by_dagster(instance: dg.DagsterInstance) -> str:
    runs = instance.get_runs()
    entries = [entry for run in runs for entry in instance.all_logs(run.run_id)]
    return "\n".join([*map(dg.serialize_value, runs), *map(dg.serialize_value, entries)])


def test_no_secret_is_kept_or_shown(
    rig: Rig, s3_place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.run_all()
    assert {asset for asset, _ in rig.versions()} == set(PARENTS)
    assert rig.tick() == {}
    # And when things go wrong: a source that is gone, credentials that are refused.
    s3_place.store.backend.delete("sources/people.parquet")
    assert not rig.run("ingest_job", "people").success
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", f"{SECRET}-wrong")
    assert not rig.run("leaderboard_job").success
    shown = "\n".join(capfd.readouterr())
    kept = kept_by_dagster(rig.instance)
    files = {name: content for name, content in everything_below(rig.folder).items() if content is not None}
    stored = s3_place.contents()
    # What was searched has to be what was kept: the root is no secret and has to be in it.
    assert s3_place.root in kept
    assert any(s3_place.root.encode() in content for content in files.values())
    assert any(name.endswith(".json") for name in stored)
    for secret in (KEY, SECRET, TOKEN):
        assert secret not in shown
        assert secret not in kept
        assert not [name for name, content in {**files, **stored}.items() if secret.encode() in content]


@pytest.mark.parametrize(
    "entry",
    [
        *(f"'{name}': {{}}" for name in ("../people", "..", "a/b", "/people", "people|0.1", "People", "a.b", ".b", "")),
        *(f"people: {{ratios: ['{ratio}']}}" for ratio in ("../../0.1", "0.1/..", "-1", "2", "nan")),
    ],
)
def test_names_and_ratios_that_could_leave_the_storage_root_are_refused(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text("tables: {" + entry.replace("{", "{source: people.parquet, label: outcome, ") + "}")
    with pytest.raises(InputError, match=r"rename the table|ratios"):
        load_catalogue(path)


def test_everything_a_local_pipeline_writes_is_below_its_folders(tmp_path: Path) -> None:
    outside = everything_below(tmp_path)
    folder = tmp_path / "rig"
    folder.mkdir()
    with Rig(folder) as rig:
        rig.add("people", description="../../../etc", roles={"../job": "drop"})
        assert not rig.run("ingest_job", "people").success
        rig.change("people", roles={})
        assert rig.run("ingest_job", "people").success
    written = {Path(name).parts[:2] for name in everything_below(tmp_path)} - {Path(name).parts[:2] for name in outside}
    assert {parts[1] for parts in written if len(parts) > 1} <= {
        *("people.parquet", "catalog.yaml", "store", "home", "cache")
    }
