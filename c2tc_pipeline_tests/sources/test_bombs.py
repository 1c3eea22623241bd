"""Small files that claim or unpack to a great deal, and files with code in them: one sentence, in little memory."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import pickle
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors.numpy import save

import c2tc_pipeline
from c2tc_pipeline.clustering.loss_curves import read_curves
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import load_encoder, save_encoder
from c2tc_pipeline.storage.parquet import open_arrays
from c2tc_pipeline.tables.blocks import LIMIT_VARIABLE, max_table_bytes, read_table
from c2tc_pipeline_tests.tools.fuzzing.targets import is_sentence, seal_encoder


class Touching:
    """Leaves a mark when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **options)
    assert is_sentence(str(caught.value))
    return str(caught.value)


def test_a_packed_csv_that_unpacks_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"0,0\n" * 2_000_000))
    assert path.stat().st_size < 20_000
    monkeypatch.setenv(LIMIT_VARIABLE, "10")
    assert "needs more than 10 MB of memory" in refusal(path)
    monkeypatch.setenv(LIMIT_VARIABLE, "100")
    assert len(read_table(path)) == 2_000_000


def test_a_packed_csv_of_one_endless_row_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1," + bytes(30_000_000)))
    assert path.stat().st_size < 100_000
    assert "longer than 8 MiB" in refusal(path)


def test_a_packed_parquet_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.parquet"
    table = pa.table({"a": np.zeros(4_000_000), "b": pa.nulls(4_000_000)})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, data_page_size=1 << 30)
    monkeypatch.setenv(LIMIT_VARIABLE, "10")
    assert "needs more than 10 MB of memory" in refusal(path)


def test_the_limit_is_half_of_the_memory_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    assert 10**8 < max_table_bytes() < 10**14
    for wrong in ("x", "-1", "0", "1.5", "²"):
        monkeypatch.setenv(LIMIT_VARIABLE, wrong)
        with pytest.raises(InputError, match="give a number of megabytes"):
            max_table_bytes()


def test_a_footer_that_claims_absurd_numbers_is_refused(tmp_path: Path) -> None:
    """The number 1000 as Thrift writes it, twice as zigzag in seven bits, becomes one that is larger or negative."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    whole = path.read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    assert b"\xd0\x0f" in whole[start:]
    claims = [whole[:start] + whole[start:].replace(b"\xd0\x0f", claimed) for claimed in (b"\xfe\x7f", b"\xff\x7f")]
    # Lengths of the footer beyond the file, and none.
    lengths = [whole[:-8] + n.to_bytes(4, "little") + b"PAR1" for n in (2**31 - 1, 2**32 - 1, 0, len(whole))]
    for content in (*claims, *lengths):
        path.write_bytes(content)
        assert "is not a whole Parquet file" in refusal(path)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    """Weights, arrays and tables that are pickles, or hold them, are refused and leave no mark."""
    mark = tmp_path / "mark"
    code = pickle.dumps(Touching(mark))
    objects = np.array([Touching(mark)], dtype=object)
    with pytest.raises(InputError):
        load_encoder(_encoder_with(tmp_path, code))
    arrays: dict[str, Any] = {"0": objects}
    np.savez(tmp_path / "seeds.npz", **arrays)
    (tmp_path / "curves.json").write_text(
        json.dumps([{"rows": 1, "distinct": 1, "grid": [1], "wcss": [0.0], "sampled_rows": 1}])
    )
    with pytest.raises(ValueError, match="allow_pickle"):
        read_curves(tmp_path)
    np.save(tmp_path / "rows.npy", objects, allow_pickle=True)
    told = {"names": [], "classes": [], "validation": False, "origin": "", "edges": [0, 1], "weights": None}
    (tmp_path / "encoded.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="allow_pickle"):
        EncodedRows.read_files(tmp_path)
    for name in ("t.csv", "t.parquet", "t.sqlite", "t.duckdb"):
        (tmp_path / name).write_bytes(code)
        with contextlib.suppress(InputError):
            read_table(tmp_path / name)
    assert not mark.exists()
    # The mark would have been seen.
    pickle.loads(code)
    assert mark.exists()


def _encoder_with(folder: Path, weights: bytes) -> Path:
    """Return a folder with a fitted encoder whose weights are other bytes, under a seal that fits."""
    made = folder / "encoder"
    save_encoder(HybridEncoder().fit(pd.DataFrame({"x": [1.0, 2.5, 4.0]}), [0, 1, 0]), made)
    (made / "encoder.safetensors").write_bytes(weights)
    seal_encoder(made / "encoder.json")
    return made


TERABYTE = json.dumps({"0/knots_0": {"dtype": "F64", "shape": [2**37], "data_offsets": [0, 2**40]}}).encode()


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        (2**63).to_bytes(8, "little"),
        (100).to_bytes(8, "little") + b"{" * 100,
        len(TERABYTE).to_bytes(8, "little") + TERABYTE,
        save({"0/knots_0": np.zeros(3), "0/heights_0": np.zeros(2)}),
        save({"0/knots_0": np.zeros((3, 3)), "0/heights_0": np.zeros(3)}),
        save({"0/knots_0": np.zeros(0), "0/heights_0": np.zeros(0)}),
    ],
)
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, weights: bytes) -> None:
    with pytest.raises(InputError, match="damaged"):
        load_encoder(_encoder_with(tmp_path, weights))


def test_packed_or_endless_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, a=np.zeros(1_000_000))
    with pytest.raises(ValueError, match="compressed"), open_arrays(path):
        pass
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header.getvalue())
    with pytest.raises((MemoryError, ValueError)), open_arrays(path) as arrays:
        arrays["a"]


@pytest.mark.faults
def test_600_megabytes_in_one_take_no_more_memory_than_allowed(tmp_path: Path) -> None:
    """In a process that may not have more than four gigabytes of addresses, and believes that it has 64 cores.

    The table would take 2,400 MB. What is measured is what the process takes beyond its imports: the limit's worth of
    table, and what the reader needs for its blocks, which must not grow with the cores.
    """
    packed = tmp_path / "bomb.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n") + 150 * gzip.compress(b"0,0\n" * 1_000_000))
    assert packed.stat().st_size < 2_000_000
    limit = 300
    script = f"""
        import resource
        import pandas, pyarrow, pyarrow.compute, pyarrow.csv
        from c2tc_pipeline.common.errors import InputError
        from c2tc_pipeline.common.stages import peak_memory
        from c2tc_pipeline.tables.blocks import read_table
        pyarrow.set_cpu_count(64)
        pyarrow.set_io_thread_count(64)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        # The figure of this process alone, whatever the one had that started it.
        before = peak_memory()
        try:
            read_table({str(packed)!r})
        except InputError as refusal:
            print(refusal)
        print((peak_memory() - before) // 2**20)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=True,
        env={LIMIT_VARIABLE: str(limit), "PYTHONPATH": str(Path(c2tc_pipeline.__file__).parents[1])},
    )
    told, megabytes = done.stdout.splitlines()
    assert f"needs more than {limit} MB of memory" in told
    assert 0.9 * limit < int(megabytes) < 2.5 * limit, megabytes
