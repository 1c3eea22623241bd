"""Reading: every file is held against the manifest, the manifest against itself, and what is damaged is named."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import MANIFEST_NAME, publish_directory, read_manifest, verify_directory
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline_tests.storage.artefacts import KIND, publish, writer_of


def test_a_directory_without_a_manifest_is_no_artefact(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no manifest\.json"):
        verify_directory(tmp_path)


def test_a_reader_can_insist_on_the_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'demo' artefact, not a 'table'"):
        verify_directory(publish(tmp_path / "art"), kind="table")


def damage_missing(path: Path) -> None:
    path.unlink()


def damage_truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def damage_longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


@pytest.mark.parametrize("damage", [damage_missing, damage_truncated, damage_longer])
@pytest.mark.parametrize("name", ["a.txt", "folder/b.bin"])
def test_the_damaged_file_is_named(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    target = publish(tmp_path / "art")
    damage(target / name)
    with pytest.raises(DamagedArtefactError, match=name):
        verify_directory(target)


WITHOUT_KIND: dict[str, Any] = {"format": "c2tc-artefact/1", "files": []}
NAMELESS_FILE: dict[str, Any] = {"format": "c2tc-artefact/1", "kind": KIND, "files": [1], "settings": {}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "7",
        '"text"',
        "[]",
        "{}",
        "\xff",
        '{"format": NaN}',
        json.dumps(WITHOUT_KIND),
        json.dumps(NAMELESS_FILE),
    ],
)
def test_a_garbage_manifest_is_called_damaged(tmp_path: Path, text: str) -> None:
    target = publish(tmp_path / "art")
    (target / MANIFEST_NAME).write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedArtefactError, match=r"manifest\.json"):
        verify_directory(target)


@pytest.mark.parametrize("change", [{"files": []}, {"kind": "table"}, {"settings": {"text": "new"}}])
def test_an_edited_manifest_is_called_damaged(tmp_path: Path, change: dict[str, Any]) -> None:
    target = publish(tmp_path / "art")
    path = target / MANIFEST_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(DamagedArtefactError, match=r"manifest\.json"):
        verify_directory(target)


def means_the_same(content: bytes, original: bytes) -> bool:
    """Tell whether only white space between JSON tokens changed."""
    try:
        return bool(json.loads(content) == json.loads(original))
    except ValueError:
        return False


@settings(deadline=None, max_examples=60)
@given(data=st.data(), mask=st.integers(1, 255))
def test_every_changed_byte_is_noticed(data: st.DataObject, mask: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        target = publish_directory(
            Path(folder) / "art", writer_of("text"), kind=KIND, settings={"ratio": 0.001, "names": ["é", "b"]}
        )
        manifest = read_manifest(target)
        name = data.draw(st.sampled_from(["a.txt", "folder/b.bin", MANIFEST_NAME]))
        path = target / name
        original = path.read_bytes()
        content = bytearray(original)
        content[data.draw(st.integers(0, len(content) - 1))] ^= mask
        path.write_bytes(content)
        if name == MANIFEST_NAME and means_the_same(bytes(content), original):
            assert verify_directory(target, kind=KIND) == manifest
        else:
            with pytest.raises(DamagedArtefactError, match=name):
                verify_directory(target, kind=KIND)
