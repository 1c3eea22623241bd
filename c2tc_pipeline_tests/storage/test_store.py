"""The store in a directory, in memory and on S3: what goes in comes out, or nothing does, whoever else is at work."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.manifest import DamagedArtefactError, hash_json
from c2tc_pipeline.storage.store import ArtefactStore, LostRace, check_key
from c2tc_pipeline_tests.storage.artefacts import KIND, race, together, writer_of
from c2tc_pipeline_tests.storage.places import (
    NAMES,
    Place,
    data_path,
    die_before_manifest,
    fail_second_file,
    fetched,
    files_of,
    leftovers,
    manifest_path,
    publish,
)


def test_versions_come_back_as_they_were_written(place: Place, store: ArtefactStore) -> None:
    assert (store.versions("art"), store.newest_version("art"), store.latest("art")) == ([], 0, None)
    versions = [publish(store, f"text {number}") for number in range(1, 4)]
    elsewhere = place.open()
    assert [each.version for each in versions] == elsewhere.versions("art") == [1, 2, 3]
    assert fetched(elsewhere) == files_of("text 3")
    assert fetched(elsewhere, version=2, kind=KIND) == files_of("text 2")
    assert elsewhere.latest("art") == versions[-1]
    assert (versions[0].key, versions[0].kind, versions[0].settings) == ("art", KIND, {"text": "text 1"})
    expected = {manifest_path(each) for each in versions} | {data_path(each, n) for each in versions for n in NAMES}
    assert set(place.contents()) == expected
    if store.backend.local is not None:
        # A local directory is read in place.
        with store.fetch("art") as directory:
            assert (
                directory == Path(place.root, "art", "data", versions[-1].writer) == Path(store.address(versions[-1]))
            )


def test_unusual_file_names_and_sizes_survive(store: ArtefactStore) -> None:
    names = ["with space.txt", "ümlaut/日本.txt", "a[0-9]*?.txt", "a=b&c%20d#e+f.txt", ".hidden/.deep"]
    files = {name: name.encode() for name in names} | {"empty": b"", "large.bin": os.urandom(3_000_000)}

    def write(directory: Path) -> None:
        for name, content in files.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_bytes(content)

    store.publish("art", write, kind=KIND)
    assert fetched(store) == files
    store.publish("art", lambda directory: None, kind=KIND)
    assert fetched(store) == {}


def test_keys_do_not_see_each_other(store: ArtefactStore) -> None:
    keys = ["art", "art2", "art/data", "art/data/data", "art/x|0.001", "data"]
    for key in keys:
        publish(store, key, key)
    for key in keys:
        assert store.versions(key) == [1]
        assert fetched(store, key) == files_of(key)


def test_a_missing_version_or_kind_is_refused(store: ArtefactStore) -> None:
    with pytest.raises(InputError, match="'art'"):
        fetched(store)
    publish(store)
    for options in ({"version": 2}, {"kind": "table"}):
        with pytest.raises(InputError, match="'art'"):
            fetched(store, **options)
    with pytest.raises(ValueError, match="dashes"):
        publish(store, run="../x")


ESCAPES = ["", "/", "/etc", "..", "../x", "a/../b", "a//b", "a/", ".", "./a", ".hidden", "a\\b", "a\0b", "s3://x", "~"]
MISFITS = ["A", "a b", "a\n", "é", "a..b", "a?x", "a#x", "a%2e", "a/manifests", "manifests/a", "a" * 201]


def test_a_key_that_might_escape_is_refused_before_anything_happens(tmp_path: Path) -> None:
    store = ArtefactStore(tmp_path)
    started: list[Path] = []
    uses: list[Callable[[str], object]] = [
        lambda key: store.publish(key, started.append, kind=KIND),
        lambda key: store.publish(key, started.append, kind=KIND, after=0),
        lambda key: store.take_number(key, 1),
        lambda key: fetched(store, key),
        store.latest,
    ]
    for key in ESCAPES + MISFITS:
        for use in uses:
            with pytest.raises(InputError, match="Key"):
                use(key)
    assert not started
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50)
@given(key=st.text() | st.from_regex(r"[a-c./|_-]{1,12}", fullmatch=True))
def test_an_accepted_key_stays_below_the_root(key: str) -> None:
    try:
        check_key(key)
    except InputError:
        return
    assert os.path.normpath(f"/root/{key}") == f"/root/{key}"
    assert not any(part.startswith(".") for part in key.split("/"))


def flip(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("harm", [flip, None], ids=["flipped", "missing"])
def test_a_damaged_file_is_named(place: Place, store: ArtefactStore, harm: Callable[[bytes], bytes] | None) -> None:
    publish(store, "older")
    for name in NAMES:
        path = data_path(publish(store), name)
        if harm is None:
            store.backend.delete(path)
        else:
            place.overwrite(path, harm(store.backend.read_bytes(path)))
        with pytest.raises(DamagedArtefactError) as caught:
            fetched(store)
        assert store.backend.address(path) in str(caught.value)
    assert fetched(store, version=1) == files_of("older")


def test_a_damaged_or_foreign_manifest_is_named_and_not_skipped(place: Place, store: ArtefactStore) -> None:
    foreign = store.backend.read_bytes(manifest_path(publish(store, "other", "other")))
    publish(store, "older")
    path = manifest_path(publish(store))
    whole = store.backend.read_bytes(path)
    outside = []
    for name in ("../../outside.txt", "/outside.txt"):
        manifest = json.loads(whole)
        del manifest["sha256"]
        manifest["files"][0]["name"] = name
        # Sealed again: the hash keeps accidents out, not forgers.
        outside.append(json.dumps({**manifest, "sha256": hash_json(manifest)}).encode())
    reads: list[Callable[[str], object]] = [lambda key: fetched(store, key), store.latest]
    for harmed in (flip(whole), whole[:-9], b"", foreign, *outside):
        place.overwrite(path, harmed)
        for read in reads:
            with pytest.raises(DamagedArtefactError) as caught:
                read("art")
            assert store.backend.address(path) in str(caught.value)


def test_a_writer_that_raises_leaves_nothing(place: Place, store: ArtefactStore) -> None:
    publish(store)
    before = place.contents()

    def write(directory: Path) -> None:
        writer_of("new")(directory)
        raise RuntimeError("broke off")

    with pytest.raises(RuntimeError, match="broke off"):
        store.publish("art", write, kind=KIND)
    with pytest.raises(TypeError):
        store.publish("art", writer_of("new"), kind=KIND, settings={"path": Path("not JSON")})
    assert place.contents() == before


@pytest.mark.parametrize("moment", ["second file", "manifest"])
def test_an_error_while_storing_keeps_the_old_version(
    place: Place, store: ArtefactStore, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    published = publish(store)
    before = place.contents()
    if moment == "manifest":
        die_before_manifest(store)
        assert len(leftovers(store)) == len(NAMES)
    else:
        with monkeypatch.context() as patch:
            fail_second_file(store, patch)
            with pytest.raises(OSError, match="No space"):
                publish(store, "new")
    after = place.contents()
    assert {path: after[path] for path in before} == before
    assert sorted(set(after) - set(before)) == leftovers(store)
    assert store.latest("art") == published
    assert publish(store, "newer").version == 2
    assert fetched(store) == files_of("newer")


def test_of_four_writers_one_wins_and_the_others_are_told_by_whom(place: Place, store: ArtefactStore) -> None:
    stores = [place.open() for _ in range(4)]
    for version in (1, 2):
        outcomes = race([partial(each.publish, "art", kind=KIND) for each in stores])
        latest = store.latest("art")
        assert latest is not None
        assert store.versions("art") == list(range(1, version + 1))
        assert outcomes.count(latest) == 1
        losers = [outcome for outcome in outcomes if isinstance(outcome, LostRace)]
        assert len(losers) == 3
        assert {(error.key, error.version, error.winner) for error in losers} == {("art", version, latest.writer)}
        assert fetched(store) == files_of(str(outcomes.index(latest)))
        assert len(leftovers(store)) == version * 3 * len(NAMES)
        copy = pickle.loads(pickle.dumps(losers[0]))
        assert (str(copy), copy.winner) == (str(losers[0]), latest.writer)


def test_a_writer_that_was_overtaken_cannot_win(place: Place, store: ArtefactStore) -> None:
    others = 2
    publish(store)
    other = place.open()

    def write(directory: Path) -> None:
        writer_of("late")(directory)
        for number in range(others):
            publish(other, f"other {number}")

    with pytest.raises(LostRace) as caught:
        store.publish("art", write, kind=KIND)
    assert caught.value.version == 2
    assert store.newest_version("art") == 1 + others
    assert fetched(store) == files_of(f"other {others - 1}")
    # Neither can work that began before publishing, which is told before it writes.
    with pytest.raises(LostRace):
        store.publish("art", lambda directory: pytest.fail("work was done"), kind=KIND, after=1)
    with pytest.raises(ValueError, match="does not exist yet"):
        publish(store, "far", after=7)
    assert publish(store, "next", after=1 + others).version == 2 + others


def test_readers_see_whole_versions_while_several_writers_publish_until_each_won(place: Place) -> None:
    publish(place.store, "0")
    wins: dict[int, str] = {}
    seen: list[dict[str, bytes]] = []
    ended: list[str] = []

    def read() -> None:
        store = place.open()
        while len(ended) < 4:
            seen.append(fetched(store))

    def write(text: str) -> None:
        store = place.open()
        try:
            while text not in wins.values():
                with contextlib.suppress(LostRace):
                    wins[publish(store, text).version] = text
        finally:
            ended.append(text)

    assert together([read, read, *(partial(write, text) for text in "abcd")]) == [None] * 6
    assert seen
    assert all(files == files_of(files["a.txt"].decode()) for files in seen)
    assert sorted(wins) == [2, 3, 4, 5]
    assert all(fetched(place.store, version=version) == files_of(text) for version, text in wins.items())
