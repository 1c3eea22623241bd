"""Addresses of storage roots: which are understood, and that a refused one is not repeated."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.roots import open_backend
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.artefacts import contents
from c2tc_pipeline_tests.storage.places import fetched, files_of, publish


def test_a_path_and_its_file_address_are_the_same_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    publish(ArtefactStore("root"))
    for root in (tmp_path / "root", f"file://{tmp_path}/root", f"{tmp_path}/root/"):
        store = ArtefactStore(root)
        assert fetched(store) == files_of("old")
        assert repr(store) == f"ArtefactStore({str(tmp_path / 'root')!r})"


def test_a_relative_root_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = ArtefactStore("root")
    monkeypatch.chdir(tmp_path / "elsewhere")
    publish(store)
    assert {name.partition("/")[0] for name in contents(tmp_path)} == {"root"}


def test_opening_a_store_writes_nothing(tmp_path: Path) -> None:
    assert ArtefactStore(tmp_path / "root").latest("art") is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("root", ["file.txt", "file.txt/below"])
def test_a_file_in_the_way_is_named(tmp_path: Path, root: str) -> None:
    (tmp_path / "file.txt").write_text("mine")
    with pytest.raises(InputError, match=r"file\.txt.*in its way"):
        publish(ArtefactStore(tmp_path / root))
    assert contents(tmp_path) == {"file.txt": b"mine"}


def test_a_file_system_without_hard_links_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = ArtefactStore(tmp_path)
    with pytest.raises(InputError, match="without hard links"):
        publish(store)
    assert store.latest("art") is None


@pytest.mark.parametrize(
    "root",
    [
        "",
        "file://",
        "a\0b",
        "http://hidden/x",
        "s3a://hidden",
        "://hidden",
        "s3://",
        "s3:///hidden",
        "s3://hidden//x",
        "s3://hidden/../x",
        "s3://hidden/./x",
        "s3://user:hidden@bucket/x",
        "s3://bucket/x?X-Amz-Signature=hidden",
        "s3://bucket/x#hidden",
        "s3://bucket/hid den",
        "memory://",
        "memory://../hidden",
    ],
)
def test_other_addresses_are_refused_and_not_repeated(root: str) -> None:
    with pytest.raises(InputError, match="storage root") as caught:
        open_backend(root)
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)
