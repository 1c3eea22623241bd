"""The source sensor: which states of sources launch a run, once."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import fsspec
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.sensors import (
    INTERVAL_VARIABLE,
    SOURCE_INTERVAL_SECONDS,
    interval_seconds,
    source_sensor,
)
from c2tc_pipeline.tables.catalogue import Catalogue
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.pipeline.toy_pipeline import record, toy_catalogue, toy_definitions
from c2tc_pipeline_tests.storage.s3_server import BUCKET, SECRET, S3Server


class Watch:
    """A source sensor, tick by tick."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.instance = dg.DagsterInstance.ephemeral()
        self.sensor = source_sensor(catalogue)
        self.repository = toy_definitions(catalogue, sensors=[self.sensor]).get_repository_def()
        self.cursor: str | None = None
        self.skipped = ""
        self.run_keys: list[str | None] = []

    def ticks(self, number: int) -> list[list[str | None]]:
        """Return the partitions launched by each of some ticks."""
        return [self.tick() for _ in range(number)]

    def tick(self) -> list[str | None]:
        context = dg.build_sensor_context(self.instance, cursor=self.cursor, repository_def=self.repository)
        data = self.sensor.evaluate_tick(context)
        self.cursor = data.cursor
        self.skipped = data.skip_message or ""
        requests = data.run_requests or []
        self.run_keys += [request.run_key for request in requests]
        return [request.partition_key for request in requests]

    def ingest(self, *tables: str) -> None:
        for table in tables:
            record(self.instance, self.catalogue, "raw_table", table)


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    """Two tables that were ingested, and a sensor that has seen them."""
    made = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    made.ingest("adult", "bank")
    assert made.ticks(3) == [[], [], []]
    yield made
    made.instance.dispose()


def write(folder: Path, table: str, text: str) -> None:
    (folder / f"{table}.csv").write_text(text)


def test_new_sources_are_launched_once_each(tmp_path: Path) -> None:
    watch = Watch(toy_catalogue(tmp_path, "adult", "bank"))
    assert watch.sensor.default_status == dg.DefaultSensorStatus.STOPPED
    assert watch.ticks(4) == [[], ["adult", "bank"], [], []]
    assert len(set(watch.run_keys)) == 2


def test_a_changed_source_launches_just_its_partition(watch: Watch, tmp_path: Path) -> None:
    for text in ("x,y\nbank,1\nbank,0\n", "x,y\nbank,2\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(4) == [[], ["bank"], [], []]


def test_a_touched_file_launches_nothing_and_is_read_once(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(tmp_path / "bank.csv", ns=(0, 1))
    assert watch.ticks(2) == [[], []]
    monkeypatch.setattr("c2tc_pipeline.sources.csv_files.CsvSource.digest", lambda source: pytest.fail("read"))
    assert watch.ticks(2) == [[], []]


def test_a_file_that_still_grows_is_waited_for(watch: Watch, tmp_path: Path) -> None:
    for rows in range(1, 4):
        write(tmp_path, "bank", "x,y\n" + "half,1\n" * rows)
        assert watch.tick() == []
    assert watch.ticks(2) == [["bank"], []]


def test_a_source_that_cannot_be_read_does_not_delay_the_others(watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "adult.csv").unlink()
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(3) == [[], ["bank"], []]
    assert watch.skipped.startswith("adult: ")
    write(tmp_path, "adult", "x,y\nback,1\n")
    assert watch.ticks(3) == [[], ["adult"], []]


def test_a_return_to_earlier_bytes_is_a_delivery_of_its_own(watch: Watch, tmp_path: Path) -> None:
    for text in ("x,y\nB,1\n", "x,y\nbank,1\n", "x,y\nB,1\n"):
        write(tmp_path, "bank", text)
        assert watch.ticks(2) == [[], ["bank"]]
        watch.ingest("bank")
    assert len(set(watch.run_keys)) == 3


def test_a_delivery_keeps_its_key_when_the_cursor_is_lost(watch: Watch, tmp_path: Path) -> None:
    write(tmp_path, "bank", "x,y\nnew,1\n")
    assert watch.ticks(2) == [[], ["bank"]]
    watch.cursor = None
    assert watch.ticks(2) == [[], ["bank"]]
    assert len(set(watch.run_keys)) == 1


def test_a_source_on_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_server: S3Server) -> None:
    filesystem = fsspec.get_filesystem_class("s3")
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    filesystem.clear_instance_cache()
    files = fsspec.filesystem("s3", **vars(s3_server.access), skip_instance_cache=True)
    here, absent = (f"s3://{BUCKET}/{uuid.uuid4().hex}/t.csv" for _ in range(2))
    files.pipe_file(here, b"x,y\n1,1\n")
    sources = {"here": here, "absent": absent}
    specs = {name: TableSpec(name=name, source=source, label="y") for name, source in sources.items()}
    watch = Watch(Catalogue(tmp_path / "catalog.yaml", specs))
    assert watch.ticks(2) == [[], ["here"]]
    watch.ingest("here")
    # Put again with the same bytes, then with others.
    files.pipe_file(here, b"x,y\n1,1\n")
    assert watch.ticks(2) == [[], []]
    assert absent in watch.skipped
    files.pipe_file(here, b"x,y\n1,0\n")
    assert watch.ticks(3) == [[], ["here"], []]
    filesystem.clear_instance_cache()
    assert SECRET not in f"{watch.cursor}{watch.run_keys}"


def test_the_interval_of_a_sensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERVAL_VARIABLE, raising=False)
    assert interval_seconds(SOURCE_INTERVAL_SECONDS) == SOURCE_INTERVAL_SECONDS
    monkeypatch.setenv(INTERVAL_VARIABLE, " 600 ")
    assert interval_seconds(SOURCE_INTERVAL_SECONDS) == 600
    for wrong in ("soon", "0", "-5", "1.5", "\u0663"):
        monkeypatch.setenv(INTERVAL_VARIABLE, wrong)
        with pytest.raises(InputError, match=INTERVAL_VARIABLE):
            interval_seconds(SOURCE_INTERVAL_SECONDS)
