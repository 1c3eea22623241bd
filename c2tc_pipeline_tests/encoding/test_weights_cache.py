"""Cached weights: found again, missed when anything that determines them changes, never trusted when damaged."""

from __future__ import annotations

import shutil
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
    # Without an autoencoder there is nothing to look up.
    other = fitted(cache / "none", strings="target")
    assert (other.cache_hit_, other.losses_, (cache / "none").exists()) == (None, None, False)


MISSES: list[dict[str, Any]] = [{"random_state": 1}, {"epochs": 2}, {"hidden_dim": 5}, {"latent_dim": 7}]
MISSES += [{"batch_size": 10}, {"learning_rate": 0.004}, {"ngram_range": (2, 3)}, {"max_prototypes": 2}]
MISSES += [{"roles": {"relation": "drop"}}, {"relation": "Wife"}, {"relation": "new"}, {"relation": None}]
HITS: list[dict[str, Any]] = [{"numeric": "minmax"}, {"smoothing": 3.0}, {"noise": 0.1}, {"height": 1e3}]


@pytest.mark.parametrize("change", [*MISSES, *HITS], ids=str)
def test_settings_and_strings_that_reach_the_autoencoder_miss(
    warm: tuple[Path, HybridEncoder], change: dict[str, Any]
) -> None:
    (cache, first), hit = warm, change in HITS
    frame, _ = mixed_table()
    for column in frame.columns.intersection(list(change)):
        assert frame.loc[0, column] != change[column]
        frame.loc[0, column] = change[column]
    second = fitted(cache, frame, **{name: value for name, value in change.items() if name not in frame})
    assert second.cache_hit_ is hit
    assert np.array_equal(np.asarray(first.losses_), np.asarray(second.losses_)) is hit


def test_a_damaged_entry_is_trained_again_reported_and_replaced(warm: tuple[Path, HybridEncoder]) -> None:
    cache, first = warm
    (weights,) = cache.rglob("*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1])
    second, third = fitted(cache), fitted(cache)
    assert (second.cache_hit_, [notice.kind for notice in second.notices_]) == (False, ["damaged_cache"])
    assert (third.cache_hit_, third.notices_) == (True, [])
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
