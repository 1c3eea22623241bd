"""Fuzz targets: hypothesis strategies for hostile inputs, and the readers that must survive them.

A case is bytes. It passes if the reader returns, or raises InputError with one printable sentence, in bounded
memory. For readers of folders the bytes are a line of JSON that names the changed file, and that file's new content;
checksums are recomputed after most changes, so that readers get past them.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import yaml
from hypothesis import strategies as st
from pydantic import ValidationError

from c2tc_pipeline import CondensedTable
from c2tc_pipeline.bench.experiments.grid import load_experiment
from c2tc_pipeline.clustering.curves import read_curves, write_curves
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.memory import peak_memory
from c2tc_pipeline.encoding.similarity import _read_weights
from c2tc_pipeline.encoding.storage import load_encoder
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.sources.addresses import open_source, resolve_address
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.storage.artefact import verify_directory
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.hashing import hash_file, hash_json
from c2tc_pipeline.storage.keys import check_key
from c2tc_pipeline.storage.local_backend import LocalBackend
from c2tc_pipeline.storage.manifest import seal_manifest
from c2tc_pipeline.storage.roots import split_root
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.readers import read_table
from c2tc_pipeline.tables.schema import check_schema, schema_from_json
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline_tests.tools.made_tables import mixed_table

MEMORY_GROWTH = 512 * 2**20
MAX_SENTENCE = 1500
SECRET = "canary-fuzz-91c4"

CSV_WORDS = b', ; \t | " "" \n \r \r\n \0 \xef\xbb\xbf \xff \xc3 NA true 0x1 1e999 -0 00501 inf nan 1,5'.split(b" ")
CSV_WORDS += [b"9" * 30, b"," * 99, b"2020-02-31", b"9999-12-31 23:59:59.999999", b"0000-00-00", b"\\", b" "]
# Digits, a space, a minus sign and a line end that are not ASCII.
CSV_WORDS += [text.encode() for text in ("\u0661\u0662", "\u00a01", "\uff11", "\u22121", "\u2028", "1_000", "\x1a")]
YAML_WORDS = b"&a *a <<: ? - [ ] { } : \n \t | > ~ ' \" # @ ` \xff --- 1e999 .nan 0x_ !!set !!binary".split(b" ")
YAML_WORDS += [b"!!python/object/apply:os.system ['true']", b"!!timestamp 2001-99-99", b"!!int x", b"!!omap [a]"]
YAML_WORDS += [b"[" * 500, b"- " * 300, b"9" * 5000, b'"\\U00110000"', b"\\ud800", b"%YAML 9.9\n", b"\n  "]
ADDRESS_WORDS = b"@ : / ? & # % [ ] .. \\ \0 :// table= password= dsn_env= query= %40 \n \x1b[31m".split(b" ")
NAME_WORDS = b"../ .. / \\ \0 manifests CON %2e%2e | . ~ \n c: //".split(b" ")
NAME_WORDS += [b"x" * 300, *(text.encode() for text in ("\uff0e\uff0e", "\u202e", "\u2215", "é"))]
_NUMBERS = [number.to_bytes(8, "little")[:width] for number in (0, 2**31 - 1, 2**64 - 1) for width in (1, 4, 8)]
STRANGE_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 1e308, -0.5, 1e-320, float("nan"), float("inf")),
    *("", "x", "../x", "/etc/passwd", "a\0b", "\ud800", "\u202eabc", "c:\\x", "NaN", "1e999", "=1+1", "é" * 300),
    *("<script>", "name\nname", "\x1b[31m", [], {}, [[]], [None], {"": None}, [1, "a"], {"a": {"a": {"a": 1}}}),
)


def outcome(call: Callable[[], object]) -> Literal["value", "refusal"]:
    """Run a reader; whatever is neither a value nor one sentence is raised."""
    before = peak_memory()
    refusal = None
    try:
        call()
    except InputError as error:
        refusal = str(error)
    grown = peak_memory() - before
    assert grown <= MEMORY_GROWTH, f"memory rose by {grown >> 20} MiB"
    assert refusal is None or is_sentence(refusal), f"not one sentence: {refusal!r}"
    return "value" if refusal is None else "refusal"


def is_sentence(text: str) -> bool:
    """Return whether a message is one printable sentence of bounded length."""
    return text.isprintable() and text.endswith(".") and 20 <= len(text) <= MAX_SENTENCE


@st.composite
def changed_bytes(draw: st.DrawFn, contents: Sequence[bytes], words: Sequence[bytes] = (b"\0",)) -> bytes:
    """Draw one of some contents with a few ranges deleted, inserted, overwritten or repeated."""
    content = bytearray(draw(st.sampled_from(contents)))
    pieces = st.binary(max_size=8) | st.sampled_from(words) | st.sampled_from(_NUMBERS)
    for _ in range(draw(st.integers(1, 5))):
        # Most formats keep lengths and offsets near one of their ends.
        distance = draw(st.integers(0, len(content)) | st.integers(0, min(len(content), 200)))
        start = draw(st.sampled_from((distance, len(content) - distance)))
        stop = start + draw(st.sampled_from((0, 1, 4, 8, 64, len(content))))
        piece = draw(pieces | st.just(bytes(content[start:stop]) * 2))
        content[start : draw(st.sampled_from((stop, start + len(piece))))] = piece
    return bytes(content[: 1 << 20])


@st.composite
def changed_value(draw: st.DrawFn, value: Any) -> Any:
    """Draw a JSON value with a few of its parts replaced, deleted, copied or renamed."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(value))
        if not places:
            break
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(("delete", "copy", "rename", "change", "replace", "replace"))):
            case "delete":
                del holder[key]
            case "copy":
                other, other_key = places[draw(st.integers(0, len(places) - 1))]
                holder[key] = copy.deepcopy(other[other_key])
            case "rename" if isinstance(holder, dict):
                holder[str(draw(st.sampled_from(STRANGE_VALUES)))] = holder.pop(key)
            case "change" if isinstance(holder[key], str | int | float):
                old = holder[key]
                texts = (f"{old}x", str(old)[:-1], f"../{old}", f"{old}\0")
                numbers = () if isinstance(old, str) else (-old, old + 1, old * 1000, old / 3)
                holder[key] = draw(st.sampled_from(texts + numbers))
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(STRANGE_VALUES)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _dump_json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _contents(good: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(good.iterdir())]


def _bytes_cases(*words: bytes) -> Callable[[Path], st.SearchStrategy[bytes]]:
    return lambda good: changed_bytes(_contents(good), words or (b"\0",))


def _gzip_cases(good: Path) -> st.SearchStrategy[bytes]:
    plain = [gzip.decompress(content) for content in _contents(good)]
    packed = changed_bytes(plain, CSV_WORDS).map(lambda content: gzip.compress(content, mtime=0))
    return changed_bytes(_contents(good)) | packed


def _parquet_cases(good: Path) -> st.SearchStrategy[bytes]:
    """Change bytes, or write a valid file with changed pandas metadata and column names."""
    contents = _contents(good)

    @st.composite
    def other_metadata(draw: st.DrawFn) -> bytes:
        table = pq.read_table(io.BytesIO(draw(st.sampled_from(contents))))
        metadata = dict(table.schema.metadata or {})
        if b"pandas" in metadata and draw(st.booleans()):
            metadata[b"pandas"] = _dump_json(draw(changed_value(json.loads(metadata[b"pandas"]))))
        else:
            key = draw(st.sampled_from((b"pandas", b"ARROW:schema")))
            metadata[key] = draw(st.sampled_from((b"", b"[]", b"7", b"{", b"null", b"\xff", b"AAAA")))
        names = table.column_names
        names[0] = draw(st.sampled_from((names[0], "", "a\nb", "../x", "<b>", "=1+1", "\0", names[-1])))
        stream = io.BytesIO()
        pq.write_table(table.rename_columns(names).replace_schema_metadata(metadata), stream)
        return stream.getvalue()

    return changed_bytes(contents, (b"PAR1",)) | other_metadata()


def _yaml_cases(good: Path) -> st.SearchStrategy[bytes]:
    contents = _contents(good)
    values = st.sampled_from(contents).flatmap(lambda content: changed_value(yaml.safe_load(content)))
    dumped = values.map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass"))
    return dumped | changed_bytes(contents, YAML_WORDS) | dumped.flatmap(lambda text: changed_bytes([text], YAML_WORDS))


def _schema_cases(good: Path) -> st.SearchStrategy[bytes]:
    contents = _contents(good)
    return changed_value(json.loads(contents[0])).map(_dump_json) | changed_bytes(contents)


def _address_cases(good: Path) -> st.SearchStrategy[bytes]:
    """Draw addresses; each with a scheme has a password, whatever else was changed."""
    return changed_bytes(_contents(good), ADDRESS_WORDS).map(
        lambda text: text.replace(b"://", b"://ann:" + SECRET.encode() + b"@", 1)
    )


def _folder_cases(pattern: str = "*") -> Callable[[Path], st.SearchStrategy[bytes]]:
    def cases(good: Path) -> st.SearchStrategy[bytes]:
        paths = sorted(path for path in good.rglob(pattern) if path.is_file())

        @st.composite
        def case(draw: st.DrawFn) -> bytes:
            path = draw(st.sampled_from(paths))
            content = path.read_bytes()
            name, _, file = path.relative_to(good).as_posix().partition("/")
            if path.suffix == ".json" and draw(st.sampled_from((True, True, False))):
                content = _dump_json(draw(changed_value(json.loads(content))))
            else:
                content = draw(changed_bytes([content]))
            change = {"good": name, "file": file, "sealed": draw(st.sampled_from((True, True, True, False)))}
            return json.dumps(change).encode() + b"\n" + content

        return case()

    return cases


def write_folder(case: bytes, good: Path, folder: Path) -> Path:
    """Write the folder that a case describes and return its path."""
    line, _, content = case.partition(b"\n")
    change = json.loads(line)
    made = folder / "case"
    shutil.copytree(good / change["good"], made)
    changed = made / change["file"]
    changed.write_bytes(content)
    if change["sealed"]:
        for encoder in made.rglob("encoder.json"):
            seal_encoder(encoder)
        for manifest in (*made.rglob("manifest.json"), *made.rglob("manifests/*.json")):
            _reseal(manifest, dict if manifest == changed else partial(_listed_files, manifest))
    return made


def seal_encoder(path: Path) -> None:
    """Recompute the checksums in a stored encoder's JSON file."""
    _reseal(path, lambda: {"arrays_sha256": hash_file(path.with_name("encoder.safetensors"))})


def _listed_files(manifest: Path) -> dict[str, Any]:
    """Delete a manifest and return its list of files, recomputed from what is stored."""
    folder = manifest.parent
    if folder.name == "manifests":
        folder = manifest.parents[1] / "data" / str(json.loads(manifest.read_bytes())["writer"])
    manifest.unlink()
    return {"files": json.loads(seal_manifest(folder, kind="", settings={}))["files"]}


def _reseal(path: Path, updates: Callable[[], dict[str, Any]]) -> None:
    try:
        values = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return
    if isinstance(values, dict):
        values.pop("sha256", None)
        values |= updates()
        try:
            values["sha256"] = hash_json(values)
        except ValueError:  # NaN and the like have no hash
            values["sha256"] = ""
        path.write_bytes(_dump_json(values))


def _read_file(name: str) -> Callable[[bytes, Path, Path], None]:
    def read(case: bytes, good: Path, folder: Path) -> None:
        path = folder / name
        path.write_bytes(case)
        frame = read_table(path)
        assert frame.columns.is_unique
        assert all(isinstance(column, str) for column in frame.columns)
        frame.head(50).to_dict(orient="list")
        if name.endswith(".parquet"):
            opened = open_source(path)
            assert tuple(frame.columns) == opened.header().columns
            opened.digest()

    return read


def _read_catalogue(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "catalog.yaml"
    path.write_bytes(case)
    catalogue = load_catalogue(path)
    for name, spec in catalogue.items():
        assert (folder / name).parent == folder
        outcome(partial(_open_offline, catalogue.resolve_source(spec)))


def _read_experiment(case: bytes, good: Path, folder: Path) -> None:
    path = folder / "mine.yaml"
    path.write_bytes(case)
    load_experiment(str(path))


def _read_schema(case: bytes, good: Path, folder: Path) -> None:
    check_schema(mixed_table(20), schema_from_json(case.decode("utf-8", "surrogateescape")))


def _read_address(case: bytes, good: Path, folder: Path) -> None:
    text = case.decode("utf-8", "surrogateescape")
    # After a question mark the password may be the name of a table.
    has_password = "://" in text.partition("?")[0]
    try:
        source = _open_offline(resolve_address(text, folder))
    except InputError as error:
        if has_password and SECRET in str(error):
            raise AssertionError("the message contains a password") from None
        raise
    assert not has_password or SECRET not in f"{source.shown} {source!r} {source.name}", "the source shows a password"


def _open_offline(address: str) -> Any:
    """Open a source without a request that finds out whether it is a folder."""
    original = Location.is_folder
    Location.is_folder = lambda self: original(self) if self.scheme == "file" else False  # type: ignore[method-assign]
    try:
        return open_source(address)
    finally:
        Location.is_folder = original  # type: ignore[method-assign]


def _read_name(case: bytes, good: Path, folder: Path) -> None:
    """Use a name as a storage key, a table and a storage root: what is accepted stays below the root."""
    text = case.decode("utf-8", "surrogateescape")

    def as_key() -> None:
        path = (folder / check_key(text)).resolve()
        assert path.is_relative_to(folder.resolve())
        assert path != folder.resolve()
        LocalBackend(folder).list_files(text)

    def as_root() -> None:
        scheme, rest = split_root(text)
        assert scheme == "file" or ".." not in rest.split("/")

    accepted = [outcome(as_key), outcome(as_root)]
    try:
        check_key(f"raw_table/{TableSpec(name=text, source='a.csv', label='y').name}")
        assert (folder / text).parent == folder
    except ValidationError as error:
        if "value" not in accepted:
            raise InputError("The name is accepted nowhere.") from error


def _read_encoder(case: bytes, good: Path, folder: Path) -> None:
    encoder = load_encoder(write_folder(case, good, folder))
    rows = pd.DataFrame({name: ["x", None, "1"] for name in encoder.columns_})
    assert encoder.transform(rows).shape == (3, len(encoder.get_feature_names_out()))


def _read_curves(case: bytes, good: Path, folder: Path) -> None:
    for measured in _fetch(case, good, folder, "loss-curves", write_curves, read_curves):
        measured.curve.at(np.arange(1, 20))
        measured.start_for(3)


def _read_cached_weights(case: bytes, good: Path, folder: Path) -> None:
    _fetch(case, good, folder, "autoencoder", lambda value, directory: None, _read_weights)


def _fetch(case: bytes, good: Path, folder: Path, kind: str, write: Any, read: Any) -> Any:
    """Read a changed cache entry; the cache recomputes the value of a damaged one."""
    entry = folder / kind / "00" / "00"
    entry.parent.mkdir(parents=True)
    write_folder(case, good, folder).rename(entry)
    return ContentCache(folder).fetch(kind, "00", compute=list, write=write, read=read).value


def _read_manifest(case: bytes, good: Path, folder: Path) -> None:
    made = write_folder(case, good, folder)
    for entry in verify_directory(made)["files"]:
        assert (made / entry["name"]).resolve().is_relative_to(made.resolve())


def _read_condensed(case: bytes, good: Path, folder: Path) -> None:
    table = CondensedTable.load(write_folder(case, good, folder))
    assert len(table) == len(table.y)


def _read_store(case: bytes, good: Path, folder: Path) -> None:
    made = write_folder(case, good, folder)
    ArtefactStore(made).leftovers("validated_table/people")
    StoreIOManager(root=str(made)).read("validated_table", "people")


@dataclass(frozen=True)
class Target:
    """A strategy for cases, made from a folder of valid inputs, and the reader of a case."""

    cases: Callable[[Path], st.SearchStrategy[bytes]]
    read: Callable[[bytes, Path, Path], None]


def run_case(target: str, case: bytes, good: Path) -> Literal["value", "refusal"]:
    """Read one case in a new folder."""
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as folder:
        return outcome(lambda: TARGETS[target].read(case, good, Path(folder)))


TARGETS = {
    "csv": Target(_bytes_cases(*CSV_WORDS), _read_file("t.csv")),
    "gzip": Target(_gzip_cases, _read_file("t.csv.gz")),
    "parquet": Target(_parquet_cases, _read_file("t.parquet")),
    "sqlite": Target(_bytes_cases(), _read_file("t.sqlite")),
    "catalogue": Target(_yaml_cases, _read_catalogue),
    "experiment": Target(_yaml_cases, _read_experiment),
    "schema": Target(_schema_cases, _read_schema),
    "address": Target(_address_cases, _read_address),
    "name": Target(_bytes_cases(*NAME_WORDS), _read_name),
    "encoder": Target(_folder_cases(), _read_encoder),
    "curves": Target(_folder_cases(), _read_curves),
    "weights": Target(_folder_cases(), _read_cached_weights),
    "manifest": Target(_folder_cases("manifest.json"), _read_manifest),
    "condensed": Target(_folder_cases(), _read_condensed),
    "store": Target(_folder_cases(), _read_store),
}
