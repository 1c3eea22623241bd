"""Encoders on disk: what is loaded encodes to the byte as what was saved; what is damaged or foreign is refused."""

from __future__ import annotations

import json
import pickle
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

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.label import LabelEncoder
from c2tc_pipeline.encoding.storage import ARRAYS_NAME, VALUES_NAME, load_encoder, save_encoder
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.manifest import DamagedArtefactError
from c2tc_pipeline_tests.encoding.mixed_tables import ENCODERS, QUICK, encoder_name, mixed_table, new_rows

each_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=encoder_name)


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
    expected = encoder.fit_transform(X, y)
    loaded = saved(encoder, tmp_path / "encoder")
    assert isinstance(loaded, HybridEncoder)
    assert loaded.string_choices_ == encoder.string_choices_
    assert loaded.notices_ == encoder.notices_ != []
    assert loaded.cache_hit_ is None
    np.testing.assert_array_equal(loaded.losses_, encoder.losses_)
    np.testing.assert_array_equal(loaded.add_noise(loaded.transform(X)), expected)
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
    X = pd.DataFrame({numbers: [1.5, 2, None, 4], words: cells, codes: cells, halves: [0.1, 0.2, 0.3, 0.5]})
    roles = {numbers: "numeric", words: "string", codes: "code", halves: "numeric"}
    encoder = HybridEncoder(strings="similarity", roles=roles, **QUICK).fit(X, [0, 1, 0, 1])
    loaded = saved(encoder, tmp_path)
    assert loaded.transform(X).tobytes() == encoder.transform(X).tobytes()
    assert loaded.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_settings_given_as_numpy_numbers(tmp_path: Path) -> None:
    encoder = HybridEncoder(**QUICK).set_params(random_state=np.int64(3), smoothing=np.float32(2)).fit(*mixed_table())
    plain = HybridEncoder(**QUICK, random_state=3, smoothing=2.0).fit(*mixed_table())
    loaded = saved(encoder, tmp_path)
    assert loaded.random_state == 3
    assert loaded.transform(new_rows()).tobytes() == plain.transform(new_rows()).tobytes()


def _change(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda directory: (directory / name).write_bytes(change((directory / name).read_bytes()))


def _bit_flipped(place: float) -> Callable[[bytes], bytes]:
    def change(stored: bytes) -> bytes:
        at = int(place * (len(stored) - 1))
        return stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :]

    return change


DAMAGES: dict[str, Callable[[Path], object]] = {
    "truncated values": _change(VALUES_NAME, lambda stored: stored[:-20]),
    "truncated arrays": _change(ARRAYS_NAME, lambda stored: stored[:-1]),
    "empty values": _change(VALUES_NAME, lambda _: b""),
    "empty arrays": _change(ARRAYS_NAME, lambda _: b""),
    "values that are a list": _change(VALUES_NAME, lambda _: b"[1, 2]"),
    "values of something else": _change(VALUES_NAME, lambda _: b'{"format": "c2tc-encoder/1"}'),
    "values that are no text": _change(VALUES_NAME, lambda _: b"\xff\xfe\x00"),
    "arrays that are a pickle": _change(ARRAYS_NAME, lambda _: pickle.dumps({"low": np.zeros(2)})),
    "another number": _change(VALUES_NAME, lambda stored: stored.replace(b'"random_state": 0', b'"random_state": 1')),
    **{f"bit of arrays at {p}": _change(ARRAYS_NAME, _bit_flipped(p)) for p in (0, 0.2, 0.5, 0.9, 1)},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_encoder_is_refused_in_one_sentence(damage: str, tmp_path: Path) -> None:
    save_encoder(HybridEncoder(**QUICK).fit(*mixed_table()), tmp_path)
    before = [(tmp_path / name).read_bytes() for name in (VALUES_NAME, ARRAYS_NAME)]
    DAMAGES[damage](tmp_path)
    assert before != [(tmp_path / name).read_bytes() for name in (VALUES_NAME, ARRAYS_NAME)]
    with pytest.raises(DamagedArtefactError):
        load_encoder(tmp_path)


def test_another_format_and_arrays_of_another_encoder_are_refused(tmp_path: Path) -> None:
    for seed in (0, 1):
        save_encoder(HybridEncoder(**QUICK, random_state=seed).fit(*mixed_table()), tmp_path / str(seed))
    shutil.copy(tmp_path / "0" / ARRAYS_NAME, tmp_path / "1" / ARRAYS_NAME)
    with pytest.raises(DamagedArtefactError):
        load_encoder(tmp_path / "1")
    values = json.loads((tmp_path / "0" / VALUES_NAME).read_text())
    (tmp_path / "0" / VALUES_NAME).write_text(json.dumps({**values, "format": "c2tc-encoder/99"}))
    with pytest.raises(InputError, match="c2tc-encoder/99"):
        load_encoder(tmp_path / "0")


@pytest.mark.parametrize("gone", [VALUES_NAME, ARRAYS_NAME])
def test_a_missing_file_or_directory_is_said(gone: str, tmp_path: Path) -> None:
    save_encoder(LabelEncoder().fit(*mixed_table()), tmp_path / "encoder")
    (tmp_path / "encoder" / gone).unlink()
    (tmp_path / "file").touch()
    for place in ("encoder", "nowhere", "file"):
        with pytest.raises(InputError, match=f"There is no encoder in '.*{place}'"):
            load_encoder(tmp_path / place)
