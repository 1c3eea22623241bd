"""What only S3 can get wrong: credentials, lost answers, broken uploads, a bucket or a server that is not there."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.s3_backend import S3Access, S3Backend
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.places import Place, fetched, files_of, publish
from c2tc_pipeline_tests.storage.s3_server import KEY, SECRET, S3Server, free_ports


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without any, in which nothing is looked up on the network either."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.fixture
def backend(s3_place: Place) -> S3Backend:
    chosen = s3_place.store.backend
    assert isinstance(chosen, S3Backend)
    return chosen


def test_the_environment_gives_endpoint_and_credentials(
    s3_place: Place, no_credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    publish(ArtefactStore(s3_place.root), "from the environment")
    assert fetched(s3_place.store) == files_of("from the environment")


@pytest.mark.parametrize("change", [{"secret": "wrong"}, {"key": "nobody"}])
def test_wrong_credentials_are_refused(s3_place: Place, s3_server: S3Server, change: dict[str, str]) -> None:
    publish(s3_place.store)
    before = s3_place.contents()
    intruder = ArtefactStore(s3_place.root, access=dataclasses.replace(s3_server.access, **change))
    path = next(iter(before))
    for attempt in (
        lambda: fetched(intruder),
        lambda: publish(intruder, "new"),
        lambda: intruder.backend.read_bytes(path),
        lambda: intruder.backend.put_if_absent("art/manifests/00000002.json", b""),
        lambda: intruder.backend.delete(path),
    ):
        with pytest.raises(InputError, match=r"Access to 's3://.*' was refused; check the credentials"):
            attempt()
    assert s3_place.contents() == before


def test_absent_credentials_are_asked_for(s3_place: Place, s3_server: S3Server, no_credentials: None) -> None:
    store = ArtefactStore(s3_place.root, access=S3Access(endpoint_url=s3_server.endpoint_url))
    with pytest.raises(InputError, match="set AWS_ACCESS_KEY_ID"):
        store.latest("art")


def test_a_missing_bucket_is_named(s3_server: S3Server, tmp_path: Path) -> None:
    store = ArtefactStore("s3://no-such-bucket/prefix", access=s3_server.access)
    source = tmp_path / "a.txt"
    source.write_text("text")
    backend = store.backend
    assert isinstance(backend, S3Backend)
    for attempt in (
        lambda: store.latest("art"),
        lambda: backend.put_if_absent("a", b""),
        lambda: backend.write_file("a", source),
    ):
        with pytest.raises(InputError, match="no bucket 'no-such-bucket'"):
            attempt()


def test_a_server_that_is_not_there_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    # Both libraries try again for some time, which here only takes time.
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    access = S3Access(endpoint_url=f"http://127.0.0.1:{free_ports(1)[0]}", key=KEY, secret=SECRET)
    with pytest.raises(ConnectionError, match=r"s3://bucket/art/manifests' could not be reached"):
        ArtefactStore("s3://bucket", access=access).latest("art")


def test_no_secret_is_shown_or_logged(
    s3_place: Place, s3_server: S3Server, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    store = s3_place.open()
    publish(store)
    fetched(store)
    shown = [repr(store), repr(store.backend), repr(s3_server.access), str(s3_server.access), repr(vars(store.backend))]
    intruder = ArtefactStore(s3_place.root, access=dataclasses.replace(s3_server.access, secret=f"{SECRET}-wrong"))
    unknown = ArtefactStore(s3_place.root, access=dataclasses.replace(s3_server.access, key=f"{KEY}-wrong"))
    for refused in (intruder, unknown):
        with pytest.raises(InputError) as caught:
            publish(refused)
        shown += traceback.format_exception(caught.value)
    with pytest.raises(InputError) as caught:
        ArtefactStore(f"s3://{KEY}:{SECRET}@bucket/prefix")
    shown += traceback.format_exception(caught.value)
    shown += capfd.readouterr()
    assert not [text for text in shown if SECRET in text or KEY in text]
    # The key's name is part of every signed request, which the libraries log for debugging; its secret never is.
    assert caplog.records
    assert SECRET not in caplog.text
    assert not [path for path, content in s3_place.contents().items() if SECRET.encode() in content]


def test_a_put_whose_answer_got_lost_counts_as_done(backend: S3Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    put = backend._files.pipe_file

    def put_and_lose_the_answer(*arguments: Any, **options: Any) -> None:
        put(*arguments, **options)
        raise TimeoutError

    monkeypatch.setattr(backend._files, "pipe_file", put_and_lose_the_answer)
    assert backend.put_if_absent("a.json", b"mine")
    assert not backend.put_if_absent("a.json", b"yours")
    assert backend.read_bytes("a.json") == b"mine"


def test_a_put_that_did_not_arrive_is_an_error(backend: S3Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*arguments: Any, **options: Any) -> None:
        raise TimeoutError("lost")

    monkeypatch.setattr(backend._files, "pipe_file", lose)
    with pytest.raises(TimeoutError, match="lost"):
        backend.put_if_absent("a.json", b"mine")
    assert backend.list_files("") == []


def test_an_upload_that_breaks_off_between_its_parts_stores_nothing(
    backend: S3Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    megabyte = 2**20
    source = tmp_path / "large.bin"
    source.write_bytes(bytes(12 * megabyte))
    monkeypatch.setattr(s3fs.core, "calculate_chunksize", lambda size, chunksize=None: 5 * megabyte)
    call = s3fs.S3FileSystem._call_s3
    called: list[str] = []

    async def break_second_part(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        called.append(method)
        if method == "upload_part" and options["PartNumber"] == 2:
            raise ConnectionResetError("broke off")
        return await call(self, method, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(s3fs.S3FileSystem, "_call_s3", break_second_part)
        with pytest.raises(ConnectionResetError, match="broke off"):
            backend.write_file("large.bin", source)
    assert "upload_part" in called
    assert backend.list_files("") == []
    backend.write_file("large.bin", source)
    assert backend.read_bytes("large.bin") == source.read_bytes()


def test_all_unfinished_uploads_are_listed_however_many_answers_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = S3Backend("bucket/prefix", S3Access(key="k", secret="s"))
    began = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    uploads = [{"Key": f"prefix/{n}.bin", "UploadId": str(n), "Initiated": began} for n in range(5)]

    def answer(method: str, *, Bucket: str, Prefix: str, KeyMarker: str = "", UploadIdMarker: str = "") -> object:
        assert (method, Bucket, Prefix) == ("list_multipart_uploads", "bucket", "prefix/")
        first = int(UploadIdMarker) + 1 if UploadIdMarker else 0
        assert not KeyMarker or KeyMarker == uploads[first - 1]["Key"]
        last = min(first + 2, len(uploads)) - 1
        return {
            "Uploads": uploads[first : last + 1],
            "IsTruncated": last + 1 < len(uploads),
            "NextKeyMarker": uploads[last]["Key"],
            "NextUploadIdMarker": uploads[last]["UploadId"],
        }

    monkeypatch.setattr(backend._files, "call_s3", answer)
    assert [file.path for file in backend.unfinished()] == [f"{n}.bin" for n in range(5)]


def test_a_folder_that_comes_up_while_it_is_listed_holds_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What s3fs returns when the listing was empty and another writer's first file came before it asked again."""
    backend = S3Backend("bucket/prefix", S3Access(key="k", secret="s"))
    came_up = {"bucket/prefix/cell": {"name": "bucket/prefix/cell", "type": "directory", "size": 0}}
    monkeypatch.setattr(backend, "_files", SimpleNamespace(find=lambda path, detail: came_up))
    assert backend.stored_files("cell") == []
    assert backend.list_files("cell") == []
