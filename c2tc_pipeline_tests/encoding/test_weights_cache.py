"""Cached weights: found again, missed when anything that determines them changes, never trusted when damaged."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from c2tc_pipeline.encoding import similarity
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import save_encoder
from c2tc_pipeline_tests.encoding.mixed_tables import QUICK, mixed_table, new_rows


def fitted(cache: Path | None, frame: pd.DataFrame | None = None, **changes: Any) -> HybridEncoder:
    X, y = mixed_table()
    encoder = HybridEncoder(**{**QUICK, "strings": "similarity", "cache_dir": cache, **changes})
    encoder.fit(X if frame is None else frame, y)
    return encoder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HybridEncoder]:
    """A cache with one entry, and the encoder that left it there."""
    cache = tmp_path_factory.mktemp("trained")
    return cache, fitted(cache)


@pytest.fixture
def warm(trained: tuple[Path, HybridEncoder], tmp_path: Path) -> tuple[Path, HybridEncoder]:
    """The same, in a copy that a test may write to."""
    cache, first = trained
    return Path(shutil.copytree(cache, tmp_path / "warm")), first


def test_a_second_fit_takes_the_weights_from_the_cache(
    warm: tuple[Path, HybridEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, first = warm
    without = fitted(None)
    monkeypatch.setattr(similarity, "train_autoencoder", lambda *_, **__: pytest.fail("trained again"))
    second = fitted(cache)
    assert (without.cache_hit_, first.cache_hit_, second.cache_hit_, second.notices_) == (False, False, True, [])
    for encoder in (without, first):
        assert encoder.transform(new_rows()).tobytes() == second.transform(new_rows()).tobytes()
    np.testing.assert_array_equal(first.losses_, second.losses_)


def test_without_an_autoencoder_there_is_nothing_to_look_up(tmp_path: Path) -> None:
    encoder = fitted(tmp_path, strings="target")
    assert (encoder.cache_hit_, encoder.losses_) == (None, None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "hit"),
    [
        ({"random_state": 1}, False),
        ({"epochs": 2}, False),
        ({"hidden_dim": 5}, False),
        ({"latent_dim": 7}, False),
        ({"batch_size": 10}, False),
        ({"learning_rate": 0.004}, False),
        ({"ngram_range": (2, 3)}, False),
        ({"max_prototypes": 2}, False),
        ({"roles": {"relation": "drop"}}, False),
        ({"numeric": "minmax"}, True),
        ({"smoothing": 3.0}, True),
        ({"noise": 0.1}, True),
    ],
    ids=str,
)
def test_settings_that_reach_the_autoencoder_miss(
    warm: tuple[Path, HybridEncoder], change: dict[str, Any], hit: bool
) -> None:
    cache, first = warm
    second = fitted(cache, **change)
    assert second.cache_hit_ is hit
    assert np.array_equal(np.asarray(first.losses_), np.asarray(second.losses_)) is hit


@pytest.mark.parametrize(
    ("column", "value", "hit"),
    [
        ("relation", "Wife", False),
        ("relation", "new", False),
        ("relation", None, False),
        ("height", 1e3, True),
    ],
)
def test_one_other_string_misses_and_other_numbers_hit(
    warm: tuple[Path, HybridEncoder], column: str, value: Any, hit: bool
) -> None:
    frame, _ = mixed_table()
    assert frame.loc[0, column] not in ("Wife", None)
    frame.loc[0, column] = value
    assert fitted(warm[0], frame).cache_hit_ is hit


class Trap:
    """What a malicious weights file would hold: loading it as a pickle leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.touch, (self.mark,)


def _flip(path: Path) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "one bit": _flip,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Trap(path.with_name("mark")))),
    "no manifest": lambda path: next(path.parent.glob("*.json")).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_trained_again_reported_and_replaced(warm: tuple[Path, HybridEncoder], damage: str) -> None:
    cache, first = warm
    (weights,) = cache.rglob("*.safetensors")
    DAMAGES[damage](weights)
    second, third = fitted(cache), fitted(cache)
    assert (second.cache_hit_, [notice.kind for notice in second.notices_]) == (False, ["damaged_cache"])
    assert (third.cache_hit_, third.notices_) == (True, [])
    assert not list(cache.rglob("mark"))
    assert first.transform(new_rows()).tobytes() == second.transform(new_rows()).tobytes()


def test_stored_files_are_json_and_safetensors_without_pickle(tmp_path: Path) -> None:
    save_encoder(fitted(tmp_path / "cache"), tmp_path / "encoder")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    for path in files:
        # A pickle, a zip with pickles (torch), an array that may hold pickled objects (NumPy).
        assert not path.read_bytes().startswith((b"\x80", b"PK", b"\x93NUMPY"))
        if path.suffix == ".safetensors":
            assert all(array.dtype.kind == "f" for array in load_file(path).values())
