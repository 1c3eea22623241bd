"""What is fuzzed: how a case of each kind is made, and what reads it."""

from __future__ import annotations

import gzip
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import yaml

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.addresses import open_source, resolve_address
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.storage.artefact import verify_directory
from c2tc_pipeline.storage.backend import Backend, split_root
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.maintenance import Collector
from c2tc_pipeline.storage.store import ArtefactStore, check_key
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.readers import read_table
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.fuzzing import folders
from c2tc_pipeline_tests.tools.fuzzing.mutation import mutated_bytes, mutated_value
from c2tc_pipeline_tests.tools.fuzzing.words import ADDRESS_WORDS, CSV_WORDS, NAME_WORDS, YAML_WORDS

SECRET = "canary-fuzz-91c4"


@dataclass(frozen=True)
class Target:
    """One kind of input.

    Parameters
    ----------
    make : callable
        Makes a case from the folder of good inputs and a generator.
    read : callable
        Reads a case; gets it, the folder of good inputs and an empty folder to write to.
    """

    make: Callable[[Path, random.Random], bytes]
    read: Callable[[bytes, Path, Path], object]


@cache
def _good(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def _bytes_like(*words: bytes) -> Callable[[Path, random.Random], bytes]:
    def make(good: Path, rng: random.Random) -> bytes:
        return mutated_bytes(rng.choice(_good(good)), rng, words, _good(good))

    return make


def _read_csv(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "t.csv"
    path.write_bytes(case)
    _check_frame(read_table(path))


def _read_gzip(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "t.csv.gz"
    path.write_bytes(case)
    _check_frame(read_table(path))


def _make_gzip(good: Path, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutated_bytes(rng.choice(_good(good)), rng, others=_good(good))
    plain = [gzip.decompress(content) for content in _good(good)]
    return gzip.compress(mutated_bytes(rng.choice(plain), rng, CSV_WORDS, plain), mtime=0)


def _read_parquet(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "t.parquet"
    path.write_bytes(case)
    opened = open_source(path)
    header = opened.header()
    frame = read_table(path)
    _check_frame(frame)
    assert tuple(frame.columns) == header.columns
    opened.digest()


def _make_parquet(good: Path, rng: random.Random) -> bytes:
    """Change bytes, or write a whole file whose notes about pandas and Arrow are changed."""
    chosen = rng.choice(_good(good))
    if rng.random() < 0.7:
        return mutated_bytes(chosen, rng, (b"PAR1",), _good(good))
    table = pq.read_table(io.BytesIO(chosen))
    notes = dict(table.schema.metadata or {})
    if b"pandas" in notes and rng.random() < 0.8:
        notes[b"pandas"] = json.dumps(mutated_value(json.loads(notes[b"pandas"]), rng)).encode("utf-8", "replace")
    else:
        strange = (b"", b"[]", b"7", b"{", b"null", b"\xff", b"AAAA")
        notes[rng.choice((b"pandas", b"ARROW:schema"))] = rng.choice(strange)
    names = table.column_names
    if rng.random() < 0.3:
        names[rng.randrange(len(names))] = rng.choice(("", "a\nb", "../x", "<b>", "=1+1", "\0", names[0]))
    stream = io.BytesIO()
    pq.write_table(table.rename_columns(names).replace_schema_metadata(notes), stream)
    return stream.getvalue()


def _check_frame(frame: pd.DataFrame) -> None:
    assert frame.columns.is_unique
    assert all(isinstance(name, str) for name in frame.columns)
    # Every cell can be looked at.
    frame.head(50).to_dict(orient="list")


def _make_yaml(*words: bytes) -> Callable[[Path, random.Random], bytes]:
    def make(good: Path, rng: random.Random) -> bytes:
        chosen = rng.choice(_good(good))
        if rng.random() < 0.5:
            value = mutated_value(yaml.safe_load(chosen), rng)
            chosen = yaml.safe_dump(value, allow_unicode=rng.random() < 0.5).encode("utf-8", "surrogatepass")
            if rng.random() < 0.5:
                return chosen
        return mutated_bytes(chosen, rng, words, _good(good))

    return make


def _read_catalogue(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "catalog.yaml"
    path.write_bytes(case)
    catalogue = load_catalogue(path)
    for name, spec in catalogue.items():
        assert (folder / name).parent == folder
        try:
            _opened_without_a_look(catalogue.resolve_source(spec))
        except InputError as refusal:
            _raise_later(refusal)
            continue


def _raise_later(refusal: InputError) -> None:
    from c2tc_pipeline_tests.tools.fuzzing.verdicts import what_is_wrong_with

    if fault := what_is_wrong_with(str(refusal)):
        raise AssertionError(f"{fault}: {refusal!s}")


def _read_experiment(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.bench.experiments.grid import load_experiment

    path = folder / "mine.yaml"
    path.write_bytes(case)
    load_experiment(str(path))


def _make_address(good: Path, rng: random.Random) -> bytes:
    text = rng.choice(_good(good)).replace(b"{secret}", b"a-setting").replace(b"{key}", b"AK")
    changed = mutated_bytes(text, rng, ADDRESS_WORDS, _good(good))
    # Whatever else happens to it, the password of an address is to be there as a whole.
    return changed if b"://" not in changed else changed.replace(b"://", b"://ann:" + SECRET.encode() + b"@", 1)


def _read_address(case: bytes, good: Path, folder: Path) -> None:
    text = case.decode("utf-8", "surrogateescape")
    # Behind a question mark it may be the name of a table.
    is_address = "://" in text.partition("?")[0]
    try:
        source = _opened_without_a_look(resolve_address(text, folder))
    except InputError as refusal:
        if SECRET in str(refusal) and is_address:
            raise AssertionError(f"a secret is told: {refusal!s}") from None
        raise
    if is_address:
        assert SECRET not in f"{source.shown} {source!r} {source.name}", "a secret is shown"


def _opened_without_a_look(address: str) -> Any:
    """Open a source without asking a server whether it is a folder."""
    looked = Location.is_folder
    Location.is_folder = lambda self: False if self.scheme != "file" else looked(self)  # type: ignore[method-assign]
    try:
        return open_source(address)
    finally:
        Location.is_folder = looked  # type: ignore[method-assign]


def _make_name(good: Path, rng: random.Random) -> bytes:
    return mutated_bytes(rng.choice(_good(good)), rng, NAME_WORDS, _good(good))


def _read_name(case: bytes, good: Path, folder: Path) -> None:
    """A name that is accepted anywhere leads nowhere but below the root."""
    text = case.decode("utf-8", "surrogateescape")
    refusals = []
    for accept in (_accepted_as_key, _accepted_as_table, _accepted_as_root):
        try:
            accept(text, folder)
        except InputError as refusal:
            refusals.append(refusal)
    if refusals:
        for further in refusals[1:]:
            _raise_later(further)
        raise refusals[0]


def _accepted_as_key(text: str, folder: Path) -> None:
    path = (folder / check_key(text)).resolve()
    assert path.is_relative_to(folder.resolve())
    assert path != folder.resolve()
    Backend(folder).list_files(text)


def _accepted_as_table(text: str, folder: Path) -> None:
    from pydantic import ValidationError

    try:
        spec = TableSpec(name=text, source="a.csv", label="y")
    except ValidationError:
        return
    assert (folder / spec.name).parent == folder
    check_key(f"raw_table/{spec.name}")


def _accepted_as_root(text: str, folder: Path) -> None:
    scheme, rest = split_root(text)
    if scheme != "file":
        assert ".." not in rest.split("/")


def _read_encoder(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.encoding.storage import load_encoder

    encoder = load_encoder(folders.unfolded(case, good, folder))
    rows = pd.DataFrame({name: ["x", None, "1"] for name in encoder.columns_})
    encoded = encoder.transform(rows)
    assert encoded.shape == (3, len(encoder.get_feature_names_out()))


def _read_curves(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.clustering.curves import MeasuredCurve, read_curves, write_curves

    curves: list[MeasuredCurve] = _cached(case, good, folder, "loss-curves", write_curves, read_curves)
    for measured in curves:
        measured.curve.at(np.arange(1, 20))
        measured.start_for(3)


def _read_weights(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.encoding.similarity import _read_weights as read

    _cached(case, good, folder, "autoencoder", lambda value, directory: None, read)


def _cached(case: bytes, good: Path, folder: Path, kind: str, write: Any, read: Any) -> Any:
    """Return what a cache hands out where an entry was changed: that, or what is computed anew."""
    entry = folder / kind / "00" / "00"
    entry.parent.mkdir(parents=True, exist_ok=True)
    made = folders.unfolded(case, good, folder)
    made.rename(entry)
    found = ContentCache(folder).fetch(kind, "00", compute=list, write=write, read=read)
    return found.value


def _read_manifest(case: bytes, good: Path, folder: Path) -> None:
    made = folders.unfolded(case, good, folder)
    manifest = verify_directory(made)
    assert all((made / entry["name"]).resolve().is_relative_to(made.resolve()) for entry in manifest["files"])


def _make_manifest(good: Path, rng: random.Random) -> bytes:
    while True:
        case = folders.made_case(good, rng)
        if b'"manifest.json"' in case[:200]:
            return case


def _read_condensed(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.condensation.table import CondensedTable

    table = CondensedTable.load(folders.unfolded(case, good, folder))
    assert len(table) == len(table.y)


def _read_store(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.pipeline.io_managers import StoreIOManager

    made = folders.unfolded(case, good, folder)
    list(Collector(older_than=0, dry_run=True).store(ArtefactStore(made)))
    StoreIOManager(root=str(made)).read("validated_table", "people")


TARGETS: dict[str, Target] = {
    "csv": Target(_bytes_like(*CSV_WORDS), _read_csv),
    "gzip": Target(_make_gzip, _read_gzip),
    "parquet": Target(_make_parquet, _read_parquet),
    "catalogue": Target(_make_yaml(*YAML_WORDS), _read_catalogue),
    "experiment": Target(_make_yaml(*YAML_WORDS), _read_experiment),
    "address": Target(_make_address, _read_address),
    "name": Target(_make_name, _read_name),
    "encoder": Target(folders.made_case, _read_encoder),
    "curves": Target(folders.made_case, _read_curves),
    "weights": Target(folders.made_case, _read_weights),
    "manifest": Target(_make_manifest, _read_manifest),
    "condensed": Target(folders.made_case, _read_condensed),
    "store": Target(folders.made_case, _read_store),
}
GOOD = {name: name for name in TARGETS} | {"manifest": "curves"}
"""Where the good inputs of a target are."""
