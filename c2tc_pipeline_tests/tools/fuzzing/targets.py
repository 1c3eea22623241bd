"""Fuzz targets: hypothesis strategies for hostile inputs, and the readers that must survive them.

A case is bytes. It passes if the reader returns, or raises InputError with one printable sentence, in bounded memory.
For readers of folders the bytes are a line of JSON that names the changed file, and that file's new content; checksums
are recomputed after most changes, so that readers get past them.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow.parquet as pq
import yaml
from hypothesis import strategies as st

import c2tc_pipeline.bench.encoders  # noqa: F401  registers the encoders of the corpus
from c2tc_pipeline import CondensedTable
from c2tc_pipeline.clustering.loss_curves import read_curves, write_curves
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import peak_memory
from c2tc_pipeline.encoding.storage import load_encoder
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.sources.addresses import open_source, resolve_address
from c2tc_pipeline.sources.location import Location
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.maintenance import Collector
from c2tc_pipeline.storage.manifest import hash_file, hash_json, seal_manifest
from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.catalogue import load_catalogue
from c2tc_pipeline.tables.schema import check_schema, schema_from_json
from c2tc_pipeline_tests.tools.made_tables import mixed_table

Cases = st.SearchStrategy[bytes]
MEMORY_GROWTH = 512 * 2**20
MAX_SENTENCE = 1500
SECRET = b"canary-fuzz-91c4"
# Tokens of CSV, YAML, addresses and paths; numbers, dates, and characters that look like ASCII ones.
TOKENS = b', ; \t | " "" \n \r \r\n \0 \xef\xbb\xbf \xff \xc3 NA true 0x1 1e999 -0 00501 inf 1,5 0000-00-00'.split(b" ")
TOKENS += b"&a *a <<: ? [ ] { } : ~ ' # @ ` --- .nan !!set !!binary !!int !!timestamp %YAML \\ud800 PAR1".split(b" ")
TOKENS += b"/ & % .. \\ :// table= password= dsn_env= query= %40 \x1b[31m ../ manifests CON %2e%2e c: //".split(b" ")
TOKENS += [b"9" * 30, b"," * 99, b"[" * 500, b"- " * 300, b"9" * 5000, b"x" * 300, b"9999-12-31 23:59:59.999999"]
TOKENS += [
    b"!!python/object/apply:os.system ['true']",
    *(c.encode() for c in "\u0661\u00a0\uff11\u2212\u2028\u202eé"),
]
TOKENS += [number.to_bytes(8, "little")[:width] for number in (0, 2**31 - 1, 2**64 - 1) for width in (1, 4, 8)]
STRANGE_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 1e308, -0.5, 1e-320, float("nan"), float("inf")),
    *("", "x", "../x", "/etc/passwd", "a\0b", "\ud800", "\u202eabc", "c:\\x", "NaN", "1e999", "=1+1", "é" * 300),
    *("<script>", "name\nname", "\x1b[31m", [], {}, [[]], [None], {"": None}, [1, "a"], {"a": {"a": {"a": 1}}}),
)


def run_case(target: str, case: bytes, good: Path) -> Literal["value", "refusal"]:
    """Read one case in a new folder, with the folder of valid inputs that it was made from."""
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as folder:
        return outcome(lambda: TARGETS[target][1](case, good, Path(folder)))


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
def changed_bytes(draw: st.DrawFn, contents: Sequence[bytes]) -> bytes:
    """Draw one of some contents with a few ranges deleted, inserted, overwritten or repeated."""
    content = bytearray(draw(st.sampled_from(contents)))
    for _ in range(draw(st.integers(1, 5))):
        # Most formats keep lengths and offsets near one of their ends.
        distance = draw(st.integers(0, len(content)) | st.integers(0, min(len(content), 200)))
        start = draw(st.sampled_from((distance, len(content) - distance)))
        stop = start + draw(st.sampled_from((0, 1, 4, 8, 64, len(content))))
        repeated = bytes(content[start:stop]) * 2
        piece = draw(st.binary(max_size=8) | st.sampled_from(TOKENS) | st.just(repeated))
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
        (holder, key), (other, other_key) = (places[draw(st.integers(0, len(places) - 1))] for _ in range(2))
        old = holder[key]
        match draw(st.sampled_from(("delete", "copy", "rename", "text", "number", "replace", "replace"))):
            case "delete":
                del holder[key]
            case "copy":
                holder[key] = copy.deepcopy(other[other_key])
            case "rename" if isinstance(holder, dict):
                holder[str(draw(st.sampled_from(STRANGE_VALUES)))] = holder.pop(key)
            case "text" if isinstance(old, str | int | float):
                holder[key] = draw(st.sampled_from((f"{old}x", str(old)[:-1], f"../{old}", f"{old}\0")))
            case "number" if isinstance(old, int | float):
                holder[key] = draw(st.sampled_from((-old, old + 1, old * 1000, old / 3)))
            case _:
                holder[key] = copy.deepcopy(draw(st.sampled_from(STRANGE_VALUES)))
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


def _json(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _contents(good: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(good.iterdir())]


def bytes_cases(good: Path) -> Cases:
    return changed_bytes(_contents(good))


def gzip_cases(good: Path) -> Cases:
    plain = [gzip.decompress(content) for content in _contents(good)]
    return bytes_cases(good) | changed_bytes(plain).map(partial(gzip.compress, mtime=0))


def json_cases(good: Path) -> Cases:
    values = st.sampled_from(_contents(good)).flatmap(lambda content: changed_value(json.loads(content)))
    return values.map(_json) | bytes_cases(good)


def yaml_cases(good: Path) -> Cases:
    values = st.sampled_from(_contents(good)).flatmap(lambda content: changed_value(yaml.safe_load(content)))
    dumped = values.map(lambda value: yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "surrogatepass"))
    return dumped | bytes_cases(good) | dumped.flatmap(lambda text: changed_bytes([text]))


def address_cases(good: Path) -> Cases:
    """Draw addresses; each with a scheme has a password, whatever else was changed."""
    return bytes_cases(good).map(lambda text: text.replace(b"://", b"://ann:" + SECRET + b"@", 1))


def parquet_cases(good: Path) -> Cases:
    """Change bytes, or write a valid file with changed pandas metadata and column names."""

    @st.composite
    def other_metadata(draw: st.DrawFn) -> bytes:
        table = pq.read_table(io.BytesIO(draw(st.sampled_from(_contents(good)))))
        metadata = dict(table.schema.metadata or {})
        if b"pandas" in metadata and draw(st.booleans()):
            metadata[b"pandas"] = _json(draw(changed_value(json.loads(metadata[b"pandas"]))))
        else:
            key = draw(st.sampled_from((b"pandas", b"ARROW:schema")))
            metadata[key] = draw(st.sampled_from((b"", b"[]", b"7", b"{", b"null", b"\xff", b"AAAA")))
        first, *rest = table.column_names
        first = draw(st.sampled_from((first, "", "a\nb", "../x", "<b>", "=1+1", "\0", *rest[-1:])))
        stream = io.BytesIO()
        pq.write_table(table.rename_columns([first, *rest]).replace_schema_metadata(metadata), stream)
        return stream.getvalue()

    return bytes_cases(good) | other_metadata()


@st.composite
def folder_cases(draw: st.DrawFn, good: Path) -> bytes:
    """Draw a change of one file of one of the valid folders."""
    path = draw(st.sampled_from(sorted(path for path in good.rglob("*") if path.is_file())))
    content = path.read_bytes()
    is_value = path.suffix == ".json" and draw(st.sampled_from((True, True, False)))
    changed = _json(draw(changed_value(json.loads(content)))) if is_value else draw(changed_bytes([content]))
    name, _, file = path.relative_to(good).as_posix().partition("/")
    change = {"good": name, "file": file, "sealed": draw(st.sampled_from((True, True, True, False)))}
    return _json(change) + b"\n" + changed


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
        path.write_bytes(_json(values))


def _file(name: str, case: bytes, folder: Path) -> Path:
    (folder / name).write_bytes(case)
    return folder / name


def read_file(name: str, case: bytes, good: Path, folder: Path) -> None:
    path = _file(name, case, folder)
    frame = read_table(path)
    assert frame.columns.is_unique
    assert all(isinstance(column, str) for column in frame.columns)
    frame.head(50).to_dict(orient="list")
    if name.endswith(".parquet"):
        opened = open_source(path)
        assert tuple(frame.columns) == opened.header().columns
        opened.digest()


def read_catalogue(case: bytes, good: Path, folder: Path) -> None:
    catalogue = load_catalogue(_file("catalog.yaml", case, folder))
    for name, spec in catalogue.items():
        assert (folder / name).parent == folder
        outcome(partial(_open_offline, catalogue.resolve_source(spec)))


def read_experiment(case: bytes, good: Path, folder: Path) -> None:
    from c2tc_pipeline.bench.experiments.grid import load_experiment

    load_experiment(str(_file("mine.yaml", case, folder)))


def read_schema(case: bytes, good: Path, folder: Path) -> None:
    schema = schema_from_json(case.decode("utf-8", "surrogateescape"))
    check_schema(Blocks.of_frame(mixed_table(20)), schema)


def read_address(case: bytes, good: Path, folder: Path) -> None:
    text = case.decode("utf-8", "surrogateescape")
    try:
        source = _open_offline(resolve_address(text, folder))
        shown, refusal = f"{source.shown} {source!r} {source.name}", None
    except InputError as error:
        shown, refusal = str(error), error
    # After a question mark the password may be the name of a table.
    assert "://" not in text.partition("?")[0] or SECRET.decode() not in shown, "the password is shown"
    if refusal:
        raise refusal


def _open_offline(address: str) -> Any:
    """Open a source without a request that finds out whether it is a folder."""
    original = Location.is_folder
    Location.is_folder = lambda self: original(self) if self.scheme == "file" else False  # type: ignore[method-assign]
    try:
        return open_source(address)
    finally:
        Location.is_folder = original  # type: ignore[method-assign]


def read_encoder(case: bytes, good: Path, folder: Path) -> None:
    encoder = load_encoder(write_folder(case, good, folder))
    rows = mixed_table(3, words=True).reindex(columns=list(encoder.columns_))
    assert encoder.transform(rows).shape == (3, len(encoder.get_feature_names_out()))


def read_cached_curves(case: bytes, good: Path, folder: Path) -> None:
    """Read a changed cache entry; the cache recomputes the value of a damaged one."""
    entry = folder / "loss-curves" / "00" / "00"
    entry.parent.mkdir(parents=True)
    write_folder(case, good, folder).rename(entry)
    cache: ContentCache = ContentCache(folder)
    for curve in cache.fetch("loss-curves", "00", compute=list, write=write_curves, read=read_curves).value:
        curve.at(np.arange(1, 20))
        curve.start_for(3)


def read_store(case: bytes, good: Path, folder: Path) -> None:
    made = write_folder(case, good, folder)
    list(Collector(older_than=0, dry_run=True).store(ArtefactStore(made)))
    StoreIOManager(root=str(made)).read("validated_table", "people")


Reader = Callable[[bytes, Path, Path], object]
TARGETS: dict[str, tuple[Callable[[Path], Cases], Reader]] = {
    "csv": (bytes_cases, partial(read_file, "t.csv")),
    "gzip": (gzip_cases, partial(read_file, "t.csv.gz")),
    "parquet": (parquet_cases, partial(read_file, "t.parquet")),
    "sqlite": (bytes_cases, partial(read_file, "t.sqlite")),
    "catalogue": (yaml_cases, read_catalogue),
    "experiment": (yaml_cases, read_experiment),
    "schema": (json_cases, read_schema),
    "address": (address_cases, read_address),
    "encoder": (folder_cases, read_encoder),
    "curves": (folder_cases, read_cached_curves),
    "condensed": (folder_cases, lambda *case: len(CondensedTable.load(write_folder(*case)))),
    "store": (folder_cases, read_store),
}
"""The strategy for cases, made from a folder of valid inputs, and the reader of a case."""
