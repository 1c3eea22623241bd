"""Encoders on disk: what is loaded encodes to the byte as what was saved; what is damaged is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import ARRAYS_NAME, VALUES_NAME, load_encoder, save_encoder, without_unused_strings
from c2tc_pipeline.storage.manifest import DamagedArtefactError, hash_json
from c2tc_pipeline_tests.encoding.mixed_tables import QUICK, each_encoder, mixed_table, new_rows


def saved(encoder: TableEncoder, directory: Path) -> TableEncoder:
    save_encoder(encoder, directory)
    return load_encoder(directory)


@each_encoder
def test_the_loaded_encoder_is_the_saved_one(encoder: TableEncoder, tmp_path: Path) -> None:
    X, y = mixed_table()
    encoder = clone(encoder).fit(X, y)
    loaded = saved(encoder, tmp_path)
    assert type(loaded) is type(encoder)
    elsewhere = {"cache_dir", "device"}  # of the place where it was fitted, not of the encoder
    assert {k: v for k, v in loaded.get_params().items() if k not in elsewhere} == {
        k: v for k, v in encoder.get_params().items() if k not in elsewhere
    }
    assert loaded.roles_ == encoder.roles_
    assert loaded.classes_.tolist() == encoder.classes_.tolist()
    assert loaded.feature_names_in_.tolist() == encoder.feature_names_in_.tolist()
    assert loaded.n_features_in_ == encoder.n_features_in_
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    for frame in (X, new_rows()):
        assert loaded.transform(frame).tobytes() == encoder.transform(frame).tobytes()
    save_encoder(loaded, tmp_path / "again")
    for name in (VALUES_NAME, ARRAYS_NAME):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert loaded.record() == encoder.record()


def test_choices_notices_and_noise_come_back(tmp_path: Path) -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(**QUICK, max_prototypes=2, noise=0.1, cache_dir=tmp_path / "my cache")
    # As settings come from NumPy's grids.
    encoder.set_params(random_state=np.int64(3), smoothing=np.float32(2))
    expected = encoder.fit_transform(X, y)
    loaded = saved(encoder, tmp_path / "encoder")
    assert isinstance(loaded, HybridEncoder)
    assert loaded.string_choices_ == encoder.string_choices_
    assert loaded.notices_ == encoder.notices_ != []
    assert loaded.cache_hit_ is None
    np.testing.assert_array_equal(loaded.losses_, encoder.losses_)
    np.testing.assert_array_equal(loaded.encode_training(X, y), expected)
    assert loaded.get_params()["cache_dir"] is None
    assert "my cache" not in (tmp_path / "encoder" / VALUES_NAME).read_text()


def test_an_encoder_with_parameters_of_earlier_releases_is_read(tmp_path: Path) -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(**QUICK).fit(X, y)
    save_encoder(encoder, tmp_path)
    values = json.loads((tmp_path / VALUES_NAME).read_text())
    values["parameters"]["scalar_target"] = False
    del values["sha256"]
    (tmp_path / VALUES_NAME).write_text(json.dumps({**values, "sha256": hash_json(values)}))
    assert load_encoder(tmp_path).transform(X).tobytes() == encoder.transform(X).tobytes()


@pytest.mark.parametrize(
    "classes", [[0, 1, 2], ["a", "é", "🚀"], [True, False], [0.5, 1.5], [b"x", b"y"], pd.array(["p", "q"])], ids=str
)
def test_classes_keep_their_type(classes: Any, tmp_path: Path) -> None:
    X, _ = mixed_table()
    y = np.resize(np.asarray(classes), len(X))
    encoder = HybridEncoder(**QUICK).fit(X, y)
    loaded = saved(encoder, tmp_path)
    assert loaded.classes_.dtype == encoder.classes_.dtype
    assert loaded.classes_.tolist() == encoder.classes_.tolist()


def test_an_encoder_of_an_array_without_labels(tmp_path: Path) -> None:
    X = np.array([[1.5, 2.0], [2.5, np.nan], [3.5, 0.25]])
    encoder = LabelEncoder().fit(X)
    loaded = saved(encoder, tmp_path)
    assert loaded.classes_ is None
    assert not hasattr(loaded, "feature_names_in_")
    np.testing.assert_array_equal(loaded.transform(X), encoder.transform(X))


@given(names=st.lists(st.text(min_size=1, max_size=8), min_size=4, max_size=4, unique=True))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_column_names_and_strings(names: list[str], tmp_path: Path) -> None:
    cells = [name.encode("utf-8", "replace").decode() for name in names]
    numbers, words, codes, halves = names
    X = pd.DataFrame({numbers: [1.5, 2, None, 4], words: cells, codes: [3, 1, 2, 1], halves: [0.1, 0.2, 0.3, 0.5]})
    roles = {numbers: "numeric", words: "string", codes: "code", halves: "numeric"}
    encoder = HybridEncoder(strings="similarity", roles=roles, **QUICK).fit(X, [0, 1, 0, 1])
    loaded = saved(encoder, tmp_path)
    assert loaded.transform(X).tobytes() == encoder.transform(X).tobytes()
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


DAMAGES: list[tuple[str, Callable[[bytes], bytes]]] = [
    (VALUES_NAME, lambda stored: stored[:-20]),
    (ARRAYS_NAME, lambda stored: stored[:-1]),
    (VALUES_NAME, lambda _: b"[1, 2]"),
    (VALUES_NAME, lambda _: b'{"format": "c2tc-encoder/2"}'),
    (VALUES_NAME, lambda _: b"\xff\xfe\x00"),
    (VALUES_NAME, lambda stored: stored.replace(b'"random_state": 0', b'"random_state": 1')),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    save_encoder(HybridEncoder(**QUICK).fit(*mixed_table()), folder)
    return folder


def assert_refused(stored: Path, folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    shutil.copytree(stored, folder, dirs_exist_ok=True)
    content = (stored / name).read_bytes()
    assert change(content) != content
    (folder / name).write_bytes(change(content))
    with pytest.raises(DamagedArtefactError):
        load_encoder(folder)


@pytest.mark.parametrize(("name", "change"), DAMAGES)
def test_a_damaged_encoder_is_refused(
    stored: Path, tmp_path: Path, name: str, change: Callable[[bytes], bytes]
) -> None:
    assert_refused(stored, tmp_path, name, change)


def test_another_format_and_arrays_of_another_encoder_are_refused(stored: Path, tmp_path: Path) -> None:
    save_encoder(HybridEncoder(**QUICK, random_state=1).fit(*mixed_table()), tmp_path)
    assert_refused(stored, tmp_path / "mixed", ARRAYS_NAME, lambda _: (tmp_path / ARRAYS_NAME).read_bytes())
    values = json.loads((tmp_path / VALUES_NAME).read_text())
    (tmp_path / VALUES_NAME).write_text(json.dumps({**values, "format": "c2tc-encoder/99"}))
    with pytest.raises(InputError, match="c2tc-encoder/99"):
        load_encoder(tmp_path)


@pytest.mark.parametrize("gone", [VALUES_NAME, ARRAYS_NAME])
def test_a_missing_file_or_directory_is_said(gone: str, tmp_path: Path) -> None:
    save_encoder(LabelEncoder().fit(*mixed_table()), tmp_path / "encoder")
    (tmp_path / "encoder" / gone).unlink()
    (tmp_path / "file").touch()
    for place in ("encoder", "nowhere", "file"):
        with pytest.raises(InputError, match=place):
            load_encoder(tmp_path / place)


def test_categories_by_target_go() -> None:
    rows = pd.DataFrame({"port": ["SFO", "LAX", "JFK", None, "SFO"], "day": [1, 2, 3, 1, 2]})
    encoder = HybridEncoder(strings="target", roles={"day": "code"}).fit(rows, [0, 1, 1, 0, 1])
    left = rows.iloc[[0, 3, 4]]
    trimmed = without_unused_strings(encoder, left)
    assert (trimmed.removed, trimmed.kept) == (3, 0)
    np.testing.assert_array_equal(trimmed.encoder.transform(left), encoder.transform(left))
    # What is gone is as if it had never been seen.
    np.testing.assert_array_equal(
        trimmed.encoder.transform(rows.iloc[[1]]),
        encoder.transform(pd.DataFrame({"port": ["XXX"], "day": [2]})),
    )


def test_a_string_stays_while_another_resembles_it() -> None:
    rows = pd.DataFrame({"job": ["head nurse", "night nurse", "cook", "ivy", "head nurse", "cook"]})
    encoder = HybridEncoder(strings="similarity", **QUICK).fit(rows, [0, 1, 0, 1, 0, 1])
    left = rows.iloc[[0, 2, 4, 5]]
    trimmed = without_unused_strings(encoder, left)
    # "night nurse" shares letters with "head nurse", "ivy" with nothing that is left.
    assert (trimmed.removed, trimmed.kept) == (1, 1)
    [part] = trimmed.encoder.parts_
    assert sorted(part.state().values["prototypes"][0]) == ["cook", "head nurse", "night nurse"]
    np.testing.assert_allclose(trimmed.encoder.transform(left), encoder.transform(left), atol=1e-6)


@each_encoder
def test_remaining_rows_are_encoded_as_before(encoder: TableEncoder, tmp_path: Path) -> None:
    rows, labels = mixed_table()
    encoder = clone(encoder).fit(rows, labels)
    left = rows.iloc[::7]
    trimmed = without_unused_strings(encoder, left)
    np.testing.assert_allclose(trimmed.encoder.transform(left), encoder.transform(left), atol=1e-6)
    np.testing.assert_array_equal(saved(trimmed.encoder, tmp_path).transform(left), trimmed.encoder.transform(left))
    unchanged = without_unused_strings(encoder, rows)
    assert (unchanged.removed, unchanged.kept) == (0, 0)


@pytest.mark.parametrize("encoder", [HybridEncoder(roles={"branch": "code"}), LabelEncoder(), OneHotPcaEncoder()])
def test_values_that_cannot_go_are_counted(encoder: TableEncoder) -> None:
    # Of a column of two values one is 0 and the other 1, because there are both.
    rows = pd.DataFrame({"branch": [1001, 1002] * 6, "amount": np.arange(12) / 7})
    encoder = encoder.set_params(roles={"branch": "code"}).fit(rows, [0, 0, 1, 1] * 3)
    left = rows.iloc[::2]
    trimmed = without_unused_strings(encoder, left)
    assert (trimmed.removed, trimmed.kept) == (0, 1)
    np.testing.assert_array_equal(trimmed.encoder.transform(left), encoder.transform(left))
