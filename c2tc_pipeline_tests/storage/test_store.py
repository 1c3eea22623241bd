"""The artefact store in a directory, in memory and on an S3 server: what goes in comes out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.keys import check_key
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import KIND
from c2tc_pipeline_tests.storage.places import NAMES, Place, data_path, fetched, files_of, manifest_path, publish


def test_a_version_comes_back_as_it_was_written(place: Place, store: ArtefactStore) -> None:
    published = publish(store, "hello")
    elsewhere = place.open()
    assert fetched(elsewhere) == files_of("hello")
    assert elsewhere.latest("art") == published
    assert (published.key, published.version, published.kind) == ("art", 1, KIND)
    assert published.settings == {"text": "hello"}
    assert sorted(published.files) == list(NAMES)
    assert sorted(place.contents()) == sorted(
        [manifest_path(published), *(data_path(published, name) for name in NAMES)]
    )
    assert store.leftovers("art") == []


def test_versions_count_up_and_old_ones_stay(store: ArtefactStore) -> None:
    assert (store.versions("art"), store.newest_version("art"), store.latest("art")) == ([], 0, None)
    for number in range(1, 12):
        assert publish(store, f"text {number}").version == number
    assert store.versions("art") == list(range(1, 12))
    assert fetched(store) == files_of("text 11")
    assert fetched(store, version=2) == files_of("text 2")


def test_strange_file_names_and_sizes_survive(store: ArtefactStore) -> None:
    files = {
        "with space.txt": b"1",
        "ümlaut/日本.txt": b"2",
        "a[0-9]*?.txt": b"3",
        "a=b&c%20d#e+f.txt": b"4",
        ".hidden/.deep": b"5",
        "empty": b"",
        "large.bin": os.urandom(3_000_000),
    }

    def write(directory: Path) -> None:
        for name, content in files.items():
            (directory / name).parent.mkdir(exist_ok=True)
            (directory / name).write_bytes(content)

    store.publish("art", write, kind=KIND)
    assert fetched(store) == files


def test_an_artefact_without_files_is_an_empty_directory(store: ArtefactStore) -> None:
    store.publish("art", lambda directory: None, kind=KIND)
    assert fetched(store) == {}


def test_keys_do_not_see_each_other(store: ArtefactStore) -> None:
    keys = ["art", "art2", "art/data", "art/data/data", "art/x|0.001", "data"]
    for key in keys:
        publish(store, key, key)
    for key in keys:
        assert store.versions(key) == [1]
        assert fetched(store, key) == files_of(key)
        assert store.leftovers(key) == []


def test_what_is_not_there_is_said(store: ArtefactStore) -> None:
    with pytest.raises(InputError, match="no version of 'art' in"):
        fetched(store)
    publish(store)
    with pytest.raises(InputError, match="no version 2 of 'art' in"):
        fetched(store, version=2)
    with pytest.raises(InputError, match="holds a 'demo', not a 'table'"):
        fetched(store, kind="table")
    assert fetched(store, kind=KIND) == files_of("old")


ESCAPES = ["", "/", "/etc", "..", "../x", "a/../b", "a//b", "a/", ".", "./a", ".hidden", "a\\b", "a\0b", "s3://x", "~"]
MISFITS = ["A", "a b", "a\n", "é", "a..b", "a?x", "a#x", "a%2e", "a/manifests", "manifests/a", "a" * 201]


def test_a_key_that_might_escape_is_refused_before_anything_happens(place: Place, store: ArtefactStore) -> None:
    started: list[Path] = []
    uses: list[Callable[[str], object]] = [
        lambda key: store.publish(key, started.append, kind=KIND),
        lambda key: fetched(store, key),
        store.latest,
        store.versions,
        store.leftovers,
    ]
    for key in ESCAPES + MISFITS:
        for use in uses:
            with pytest.raises(InputError, match="Key"):
                use(key)
    assert not started
    assert place.contents() == {}


@given(key=st.text() | st.from_regex(r"[a-c./|_-]{1,12}", fullmatch=True))
def test_an_accepted_key_stays_below_the_root(key: str) -> None:
    try:
        check_key(key)
    except InputError:
        return
    assert os.path.normpath(f"/root/{key}") == f"/root/{key}"
    assert not any(part.startswith(".") for part in key.split("/"))
