"""Cases that are folders: one file of a good folder is changed, and seals are made to fit so that a reader goes on.

As bytes such a case is one line of JSON, which says what was changed, and the new content of that file.
"""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from c2tc_pipeline.storage.hashing import hash_file, hash_json
from c2tc_pipeline.storage.manifest import seal_manifest
from c2tc_pipeline_tests.tools.fuzzing.mutation import mutated_bytes, mutated_value


def made_case(folder: Path, rng: random.Random) -> bytes:
    """Return a case made from one of the good folders below a folder."""
    chosen = rng.choice(sorted(path for path in folder.iterdir() if path.is_dir()))
    files = sorted(path for path in chosen.rglob("*") if path.is_file())
    target = rng.choice(files)
    content = target.read_bytes()
    if target.suffix == ".json" and rng.random() < 0.7:
        value = mutated_value(json.loads(content), rng)
        content = json.dumps(value).encode("utf-8", "surrogatepass")
    else:
        content = mutated_bytes(content, rng, others=[path.read_bytes() for path in files])
    change = {"good": chosen.name, "file": target.relative_to(chosen).as_posix(), "sealed": rng.random() < 0.8}
    return json.dumps(change).encode() + b"\n" + content


def unfolded(case: bytes, good: Path, folder: Path) -> Path:
    """Write the folder that a case stands for, and return its path."""
    line, _, content = case.partition(b"\n")
    change = json.loads(line)
    made = folder / "case"
    shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(good / change["good"], made)
    changed = made / change["file"]
    changed.write_bytes(content)
    if change["sealed"]:
        for encoder in made.rglob("encoder.json"):
            _seal_encoder(encoder)
        for manifest in (*made.rglob("manifest.json"), *made.rglob("manifests/*.json")):
            _seal_manifest(manifest, is_changed=manifest == changed)
    return made


def _seal_encoder(path: Path) -> None:
    values = _parsed(path)
    if values is None:
        return
    values["arrays_sha256"] = hash_file(path.with_name("encoder.safetensors"))
    values.pop("sha256", None)
    _resealed(path, values)


def _seal_manifest(path: Path, *, is_changed: bool) -> None:
    """Make a manifest fit the files; one that was changed itself keeps what it says and gets a fitting seal."""
    values = _parsed(path)
    if values is None:
        return
    values.pop("sha256", None)
    if not is_changed:
        stored = path.parent
        if path.parent.name == "manifests":
            stored = path.parents[1] / "data" / str(values["writer"])
        path.unlink()
        values["files"] = json.loads(seal_manifest(stored, kind="", settings={}))["files"]
    _resealed(path, values)


def _parsed(path: Path) -> dict[str, Any] | None:
    try:
        values = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _resealed(path: Path, values: dict[str, Any]) -> None:
    try:
        values["sha256"] = hash_json(values)
    except ValueError:
        # Values such as NaN have no hash.
        values["sha256"] = ""
    path.write_bytes(json.dumps(values).encode("utf-8", "surrogatepass"))
