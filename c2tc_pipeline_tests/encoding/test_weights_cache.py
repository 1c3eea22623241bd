"""Cached weights: found again, missed when anything that determines them changes, never trusted when damaged."""

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
from safetensors.numpy import load_file

from c2tc_pipeline.encoding import similarity
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.storage import save_encoder
from c2tc_pipeline_tests.encoding.mixed_tables import QUICK, mixed_table, new_rows


def fitted(cache: Path | None, frame: pd.DataFrame | None = None, **changes: Any) -> HybridEncoder:
    X, y = mixed_table()
    settings = {**QUICK, "strings": "similarity", "cache_dir": cache, **changes}
    encoder = HybridEncoder(**settings)
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


def weights_file(cache: Path) -> Path:
    (path,) = cache.rglob("*.safetensors")
    return path


def test_a_second_fit_takes_the_weights_from_the_cache(
    warm: tuple[Path, HybridEncoder], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, first = warm
    monkeypatch.setattr(similarity, "train_autoencoder", lambda *_, **__: pytest.fail("trained again"))
    second = fitted(cache)
    assert (first.cache_hit_, second.cache_hit_) == (False, True)
    assert second.notices_ == []
    assert first.transform(new_rows()).tobytes() == second.transform(new_rows()).tobytes()
    np.testing.assert_array_equal(first.losses_, second.losses_)


def test_the_cache_changes_nothing_but_time(tmp_path: Path) -> None:
    without = fitted(None)
    assert without.cache_hit_ is False
    assert without.transform(new_rows()).tobytes() == fitted(tmp_path).transform(new_rows()).tobytes()


def test_without_an_autoencoder_there_is_nothing_to_look_up(tmp_path: Path) -> None:
    encoder = fitted(tmp_path, strings="target")
    assert encoder.cache_hit_ is None
    assert encoder.losses_ is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        {"random_state": 1},
        {"epochs": 2},
        {"hidden_dim": 5},
        {"latent_dim": 7},
        {"batch_size": 10},
        {"learning_rate": 0.004},
        {"ngram_range": (2, 3)},
        {"max_prototypes": 2},
        {"roles": {"relation": "drop"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_settings_miss(warm: tuple[Path, HybridEncoder], change: dict[str, Any]) -> None:
    cache, first = warm
    second = fitted(cache, **change)
    assert second.cache_hit_ is False
    assert first.losses_ is not None
    assert second.losses_ is not None
    assert not np.array_equal(first.losses_, second.losses_)


@pytest.mark.parametrize("change", [{"numeric": "minmax"}, {"smoothing": 3.0}, {"noise": 0.1}])
def test_settings_that_do_not_reach_the_autoencoder_hit(
    warm: tuple[Path, HybridEncoder], change: dict[str, Any]
) -> None:
    cache, _ = warm
    assert fitted(cache, **change).cache_hit_ is True


@pytest.mark.parametrize("value", ["Wife", "Somebody new", None])
def test_one_other_cell_misses(warm: tuple[Path, HybridEncoder], value: str | None) -> None:
    frame, _ = mixed_table()
    cache, _ = warm
    assert frame.loc[0, "relation"] not in ("Wife", None)
    frame.loc[0, "relation"] = value
    assert fitted(cache, frame).cache_hit_ is False


def test_other_numbers_hit(warm: tuple[Path, HybridEncoder]) -> None:
    frame, _ = mixed_table()
    cache, _ = warm
    assert fitted(cache, frame.assign(height=frame.height * 2)).cache_hit_ is True


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
    "garbage": lambda path: path.write_bytes(b"\xff" * 500),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Trap(path.with_name("mark")))),
    "no manifest": lambda path: next(path.parent.glob("*.json")).unlink(),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_trained_again_reported_and_replaced(warm: tuple[Path, HybridEncoder], damage: str) -> None:
    cache, first = warm
    DAMAGES[damage](weights_file(cache))
    second = fitted(cache)
    assert second.cache_hit_ is False
    assert [notice.kind for notice in second.notices_] == ["damaged_cache"]
    assert "damaged" in str(second.notices_[0])
    assert not list(cache.rglob("mark"))
    assert first.transform(new_rows()).tobytes() == second.transform(new_rows()).tobytes()
    third = fitted(cache)
    assert third.cache_hit_ is True
    assert third.notices_ == []


def test_stored_files_are_json_and_safetensors_without_pickle(tmp_path: Path) -> None:
    save_encoder(fitted(tmp_path / "cache"), tmp_path / "encoder")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    for path in files:
        stored = path.read_bytes()
        # A pickle, a zip with pickles (torch), an array that may hold pickled objects (NumPy).
        assert not stored.startswith((b"\x80", b"PK", b"\x93NUMPY"))
        assert b"allow_pickle" not in stored
        with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, IndexError, KeyError, AttributeError)):
            pickle.loads(stored)
        if path.suffix == ".json":
            json.loads(stored)
        else:
            assert all(array.dtype.kind == "f" for array in load_file(path).values())
