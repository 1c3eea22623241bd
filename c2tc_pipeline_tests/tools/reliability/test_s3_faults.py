"""S3 that is busy, slow, silent or gone: tried again within bounds, published once, and never torn."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.storage.verification import verify_store
from c2tc_pipeline_tests.storage.artefacts import KIND, writer_of
from c2tc_pipeline_tests.storage.places import fetched, files_of, publish
from c2tc_pipeline_tests.storage.s3_server import BUCKET, S3Server, running_process
from c2tc_pipeline_tests.tools.reliability.rows import saw
from c2tc_pipeline_tests.tools.reliability.s3_proxy import Mood, Proxy, proxied

pytestmark = pytest.mark.faults


@pytest.fixture
def root() -> str:
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


def through(proxy: Proxy, root: str) -> ArtefactStore:
    return ArtefactStore(root, access=proxy.seen.access)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tries than in earnest: what is tested is that they end, and how."""
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 2)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")


def damages(store: ArtefactStore) -> list[str]:
    return [each.address for each in verify_store(store) if each.damage is not None]


def test_every_other_answer_is_503(s3_server: S3Server, root: str) -> None:
    with proxied(s3_server, lambda number, method: Mood.BUSY if number % 2 == 0 else Mood.WELL) as proxy:
        store = through(proxy, root)
        for text in ("first", "second"):
            publish(store, text)
        assert fetched(store) == files_of("second")
    direct = ArtefactStore(root, access=s3_server.access)
    assert (direct.versions("art"), direct.leftovers("art"), damages(direct)) == ([1, 2], [], [])
    busy = proxy.moods.count(Mood.BUSY)
    assert busy > 3
    saw(
        "S3 answers 503",
        injected="a proxy that answers every other request with 503 SlowDown; two versions published, one read",
        expected="tried again; each version published once, and read whole",
        seen=f"{busy} of {len(proxy.moods)} requests refused; versions 1 and 2, 0 torn, 0 leftovers",
    )


def test_all_answers_are_503(s3_server: S3Server, root: str, impatient: None) -> None:
    direct = ArtefactStore(root, access=s3_server.access)
    publish(direct)
    with proxied(s3_server, lambda number, method: Mood.BUSY) as proxy:
        store = through(proxy, root)
        with pytest.raises(OSError, match=r"reduce your request rate|could not be reached") as caught:
            publish(store, "new")
    assert (direct.versions("art"), damages(direct)) == ([1], [])
    assert publish(direct, "newer").version == 2
    saw(
        "S3 answers nothing but 503",
        injected="the same with every request",
        expected="an error that may pass, after bounded tries; the old version intact; later it succeeds",
        seen=f"{type(caught.value).__name__} after {len(proxy.moods)} requests; version 1 of 1 whole; then version 2",
    )


def test_all_answers_are_slow(s3_server: S3Server, root: str) -> None:
    with proxied(s3_server, lambda number, method: Mood.SLOW, pause=0.3) as proxy:
        store = through(proxy, root)
        publish(store, "slow")
        assert fetched(store) == files_of("slow")
    direct = ArtefactStore(root, access=s3_server.access)
    assert (direct.versions("art"), direct.leftovers("art"), damages(direct)) == ([1], [], [])
    saw(
        "S3 slow",
        injected="a proxy that lets every request wait 0.3 s; a version published and read",
        expected="it takes longer",
        seen=f"{len(proxy.moods)} requests, each once; version 1, 0 torn, 0 leftovers",
    )


def test_answers_to_puts_get_lost(s3_server: S3Server, root: str) -> None:
    def lose_every_other_put(number: int, method: str) -> Mood:
        puts.append(method) if method == "PUT" else None
        return Mood.SILENT if method == "PUT" and len(puts) % 2 else Mood.WELL

    puts: list[str] = []
    with proxied(s3_server, lose_every_other_put) as proxy:
        store = through(proxy, root)
        published = [publish(store, text) for text in ("first", "second", "third")]
        assert fetched(store) == files_of("third")
    direct = ArtefactStore(root, access=s3_server.access)
    assert [version.version for version in published] == direct.versions("art") == [1, 2, 3]
    assert (direct.leftovers("art"), damages(direct)) == ([], [])
    lost = proxy.moods.count(Mood.SILENT)
    assert lost > 3
    saw(
        "S3 does it, but the answer gets lost",
        injected="a proxy that closes the connection after every other PUT was done; three versions published",
        expected="whoever put the manifest is told so; each version once",
        seen=f"{lost} answers lost; versions 1 to 3, each its writer's, 0 torn, 0 leftovers",
    )


def test_the_server_is_killed_and_restarted(tmp_path: Path, root: str, impatient: None) -> None:
    with running_process(tmp_path) as process:
        store = ArtefactStore(root, access=process.server.access)
        publish(store)
        backend = store.backend
        assert isinstance(backend, S3Backend)
        upload, uploaded = backend.write_file, []

        def upload_and_kill(path: str, source: Path) -> None:
            upload(path, source)
            uploaded.append(path)
            process.kill()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(backend, "write_file", upload_and_kill)
            with pytest.raises(OSError, match="could not be reached"):
                store.publish("art", writer_of("new"), kind=KIND)
        assert len(uploaded) == 1
        with pytest.raises(OSError, match="could not be reached"):
            fetched(store)
        process.start()
        again = ArtefactStore(root, access=process.server.access)
        assert fetched(again) == files_of("old")
        assert (again.versions("art"), damages(again), again.leftovers("art")) == ([1], [], uploaded)
        assert publish(again, "newer").version == 2
        assert fetched(again) == files_of("newer")
    saw(
        "S3 server killed and restarted",
        injected="SIGKILL of SeaweedFS after the first of two files was uploaded; started again",
        expected="an error that may pass; the old version intact; a new try succeeds",
        seen="could not be reached; after the restart version 1 whole, 1 leftover file; then version 2",
    )
