"""Storage roots, and what only S3 can get wrong: credentials, lost answers, broken uploads, a missing server."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import contents
from c2tc_pipeline_tests.storage.places import Place, collected, fetched, files_of, publish, store_at
from c2tc_pipeline_tests.storage.s3_server import KEY, SECRET, S3Server, free_ports


def test_a_path_and_its_file_address_are_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    relative = ArtefactStore("root")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert relative.latest("art") is None
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"], "opening and looking write nothing"
    publish(relative)
    assert {name.partition("/")[0] for name in contents(tmp_path)} == {"root"}
    for root in (tmp_path / "root", f"file://{tmp_path}/root", f"{tmp_path}/root/"):
        assert fetched(ArtefactStore(root)) == files_of("old")
        assert Backend(root).address("a") == f"{tmp_path}/root/a"


@pytest.mark.parametrize("root", ["file.txt", "file.txt/below"])
def test_a_file_in_the_way_is_named(tmp_path: Path, root: str) -> None:
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(InputError, match=r"file\.txt"):
        publish(ArtefactStore(tmp_path / root))
    assert contents(tmp_path) == {"file.txt": b"mine"}


@pytest.mark.parametrize("number", [errno.EPERM, errno.EIO])
def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    store = ArtefactStore(tmp_path)
    with pytest.raises(InputError if number == errno.EPERM else OSError):
        publish(store)
    assert store.latest("art") is None


ROOTS = ["", "file://", "a\0b", "http://hidden/x", "s3a://hidden", "://hidden", "s3://", "s3:///hidden"]
ROOTS += ["s3://hidden//x", "s3://hidden/../x", "s3://hidden/./x", "s3://user:hidden@bucket/x", "s3://bucket/hid den"]
ROOTS += ["s3://bucket/x?X-Amz-Signature=hidden", "s3://bucket/x#hidden", "memory://", "memory://../hidden"]


@pytest.mark.parametrize("root", ROOTS)
def test_other_addresses_are_refused_and_not_repeated(root: str) -> None:
    with pytest.raises(InputError, match="storage root") as caught:
        Backend(root)
    assert "hidden" not in str(caught.value)


@pytest.fixture
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without any, in which nothing is looked up on the network either."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))


@pytest.fixture
def backend(s3_place: Place) -> Backend:
    return s3_place.store.backend


def uses(backend: Backend, source: Path) -> list[Callable[[], object]]:
    source.write_text("text")
    return [
        lambda: backend.list_files(""),
        lambda: backend.put_if_absent("art/manifests/00000002.json", b""),
        lambda: backend.write_file("art/a", source),
        lambda: backend.delete("art/a"),
        lambda: backend.remove_folder("art/data"),
    ]


def test_the_environment_gives_endpoint_and_credentials_or_they_are_asked_for(
    s3_place: Place, s3_server: S3Server, no_credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_at(s3_place.root, {"endpoint_url": s3_server.endpoint_url})
    with pytest.raises(InputError, match="AWS_ACCESS_KEY_ID"):
        store.latest("art")
    for name, value in s3_place.environment.items():
        monkeypatch.setenv(name, value)
    publish(ArtefactStore(s3_place.root), "from the environment")
    assert fetched(s3_place.store) == files_of("from the environment")
    part = s3_place.store.backend.read_bytes(next(p for p in s3_place.contents() if p.endswith("a.txt")), 5, 8)
    assert part == b"the"


def test_a_missing_bucket_is_named(s3_server: S3Server, tmp_path: Path) -> None:
    store = store_at("s3://no-such-bucket/prefix", s3_server.access)
    for use in [*uses(store.backend, tmp_path / "a")[:3], lambda: store.latest("art"), store.backend.unfinished]:
        with pytest.raises(InputError, match="'no-such-bucket'"):
            use()


def test_a_server_that_is_not_there_is_an_error_that_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    # Both libraries try again for some time, which here only takes time.
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    access = {"endpoint_url": f"http://127.0.0.1:{free_ports(1)[0]}", "key": KEY, "secret": SECRET}
    with pytest.raises(ConnectionError, match=r"s3://bucket/art/manifests"):
        store_at("s3://bucket", access).latest("art")


def test_wrong_credentials_are_refused_and_no_secret_is_shown(s3_place: Place, s3_server: S3Server) -> None:
    store = s3_place.open()
    publish(store)
    fetched(store)
    before = s3_place.contents()
    shown = [repr(store), repr(vars(store)), repr(vars(store.backend))]
    for change in ({"secret": f"{SECRET}-wrong"}, {"key": f"{KEY}-wrong"}):
        refused = store_at(s3_place.root, s3_server.access | change)
        calls = uses(refused.backend, s3_place.scratch / "a")
        calls += [partial(publish, refused), partial(fetched, refused)]
        for use in calls:
            with pytest.raises(InputError, match=r"s3://.*credentials") as caught:
                use()
            shown += traceback.format_exception(caught.value)
    assert s3_place.contents() == before
    assert not [text for text in shown if SECRET in text or KEY in text]


@pytest.mark.parametrize("arrives", [True, False])
def test_a_put_whose_answer_is_lost_counts_if_it_arrived(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    put = backend._files.pipe_file

    def lose(*arguments: Any, **options: Any) -> None:
        if arrives:
            put(*arguments, **options)
        raise TimeoutError("lost")

    monkeypatch.setattr(backend._files, "pipe_file", lose)
    if arrives:
        assert backend.put_if_absent("a.json", b"mine")
        assert not backend.put_if_absent("a.json", b"yours")
        assert backend.read_bytes("a.json") == b"mine"
    else:
        with pytest.raises(TimeoutError, match="lost"):
            backend.put_if_absent("a.json", b"mine")
        assert backend.list_files("") == []


def test_an_upload_that_did_not_end_is_aborted(s3_place: Place, backend: Backend) -> None:
    publish(s3_place.store)
    bucket, key = s3_place.root.removeprefix("s3://").split("/", 1)
    key = f"{key}/art/data/W{'0' * 32}/large.bin"
    begun = backend._files.call_s3("create_multipart_upload", Bucket=bucket, Key=key)
    part = {"UploadId": begun["UploadId"], "PartNumber": 1, "Body": b"part"}
    backend._files.call_s3("upload_part", Bucket=bucket, Key=key, **part)
    (found,) = collected(s3_place.store)
    assert found.address == f"s3://{bucket}/{key}"
    assert collected(s3_place.store) == []
    assert fetched(s3_place.store) == files_of("old")


def test_a_folder_that_appears_while_it_is_listed_holds_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What s3fs returns when the listing was empty and another writer's first file came before it asked again."""
    backend = Backend("s3://bucket/prefix")
    appeared = {"bucket/prefix/cell": {"name": "bucket/prefix/cell", "type": "directory", "size": 0}}
    monkeypatch.setattr(backend, "_files", SimpleNamespace(find=lambda path, detail: appeared))
    assert backend.stored_files("cell") == []
