"""String columns end to end: the code of a row against the dense formula, strangers, gaps and large vocabularies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.similarity import SimilarityPart
from c2tc_pipeline.encoding.strings import NGramSimilarity, Vocabulary
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline_tests.encoding.mixed_tables import QUICK, WORDS

JOBS = ["nurse", "senior nurse", "engineer", "civil engineer", "cook", "pastry cook"]


def people(rows: int = 120, *, gaps: bool = True) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    missing = [None] if gaps else []
    jobs, relations = (np.array([*words, *missing], dtype=object) for words in (JOBS, WORDS))
    return pd.DataFrame({"job": rng.choice(jobs, rows), "relation": rng.choice(relations, rows)})


def fitted(frame: pd.DataFrame, **changes: Any) -> HybridEncoder:
    encoder = HybridEncoder(strings="similarity", **{**QUICK, "hidden_dim": 16, "epochs": 5, **changes})
    encoder.fit(frame)
    return encoder


def dense_code(encoder: HybridEncoder, frame: pd.DataFrame) -> np.ndarray:
    """Return the unscaled code by the dense formula: all similarities side by side, then the layers."""
    (part,) = encoder.parts_
    assert isinstance(part, SimilarityPart)
    blocks = []
    for name, vocabulary in zip(part.columns, part.vocabularies, strict=True):
        gap = frame[name].isna().to_numpy()
        similar = NGramSimilarity(vocabulary.prototypes).to_known(
            ["" if g else v for v, g in zip(frame[name], gap, strict=True)]
        )
        blocks.append(np.column_stack([np.where(gap[:, None], 0, similar), gap]))
    weights = part.weights
    hidden = np.maximum(np.hstack(blocks) @ weights.w_in + weights.b_in, 0)
    return np.asarray(hidden @ weights.w_code + weights.b_code)


def test_a_row_is_the_code_of_its_similarities_scaled_by_the_training_rows() -> None:
    train = people()
    new = pd.DataFrame({"job": ["nurses", "", None, "🚀"], "relation": ["Wife", "wives", "husband", None]})
    encoder = fitted(train)
    code = dense_code(encoder, train)
    low, high = code.min(axis=0), code.max(axis=0)
    for frame in (train, new):
        expected = np.clip((dense_code(encoder, frame) - low) / (high - low), 0, 1)
        np.testing.assert_allclose(encoder.transform(frame), expected, atol=1e-4)


def test_the_code_is_as_wide_as_there_are_string_columns_or_as_asked() -> None:
    assert fitted(people()).get_feature_names_out().tolist() == ["string_code_0", "string_code_1"]
    assert fitted(people(), latent_dim=5).transform(people()).shape == (120, 5)


@pytest.mark.parametrize("known", JOBS)
def test_a_misspelt_string_is_encoded_nearest_to_what_it_means(known: str) -> None:
    train = people(gaps=False)[["job"]]
    encoder = fitted(train, latent_dim=4)
    misspelt = pd.DataFrame({"job": [f"{known}s"]})
    distances = np.linalg.norm(encoder.transform(pd.DataFrame({"job": JOBS})) - encoder.transform(misspelt), axis=1)
    assert JOBS[int(distances.argmin())] == known


def test_strangers_that_differ_are_encoded_differently() -> None:
    encoder = fitted(people()[["job"]], latent_dim=4)
    encoded = encoder.transform(pd.DataFrame({"job": ["nurses", "cooks", "senior engineer", "qqq"]}))
    assert len(np.unique(encoded.round(4), axis=0)) == 4


def test_gaps_are_unlike_empty_strings_and_unlike_every_string() -> None:
    encoder = fitted(people()[["job"]], latent_dim=4)
    encoded = encoder.transform(pd.DataFrame({"job": pd.Series([None, np.nan, pd.NA, "", "nan", "None", *JOBS])}))
    np.testing.assert_array_equal(encoded[0], encoded[1])
    np.testing.assert_array_equal(encoded[0], encoded[2])
    assert all(not np.allclose(encoded[0], row) for row in encoded[3:])


def test_gaps_that_training_never_saw_are_encoded() -> None:
    encoded = fitted(people(gaps=False)).transform(pd.DataFrame({"job": [None], "relation": [None]}))
    assert np.isfinite(encoded).all()


def test_a_column_without_any_string_is_encoded() -> None:
    frame = pd.DataFrame({"job": JOBS, "nothing": pd.Series([None] * 6, dtype="str")})
    encoder = fitted(frame, roles={"nothing": "string", "job": "string"})
    encoded = encoder.transform(pd.DataFrame({"job": ["cook"], "nothing": ["something"]}))
    assert np.isfinite(encoded).all()


def test_prototypes_are_the_most_frequent_strings_whatever_the_order_of_rows() -> None:
    column = pd.Series(["b"] * 3 + ["a"] * 3 + ["z"] * 5 + ["c", None, None])
    for seed in range(4):
        shuffled = column.sample(frac=1, random_state=seed)
        assert Vocabulary.of_counts(CategoryCounts.of(shuffled), (2, 4), 3).prototypes == ["z", "a", "b"]


def test_a_string_beyond_the_prototypes_trains_as_the_nearest_and_keeps_its_similarities() -> None:
    vocabulary = Vocabulary(["civil engineer", "nurse"], (2, 4))
    places = vocabulary.nearest_places(np.array([0, 1, -1, 2]), ["nurses", "engineer", "nurse"])
    assert places.tolist() == [1, 0, vocabulary.missing, 1]
    encoder = fitted(people()[["job"]], max_prototypes=3, latent_dim=4)
    assert len(np.unique(encoder.transform(pd.DataFrame({"job": JOBS})), axis=0)) == len(JOBS)


def test_a_large_vocabulary_is_noticed_by_column() -> None:
    assert fitted(people(), max_prototypes=6).notices_ == []
    notices = fitted(people(), max_prototypes=2).notices_
    assert [(notice.kind, notice.column) for notice in notices] == [
        ("many_strings", "job"),
        ("many_strings", "relation"),
    ]
    assert str(notices[0]).startswith("Column 'job': has 6 distinct strings; they are compared with the 2 most")


HUNDRED_THOUSAND = """
import numpy as np
import pandas as pd
import torch

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.common.memory import peak_memory

rng = np.random.default_rng(0)
letters = rng.integers(97, 123, (100_000, 6), dtype=np.uint8)
frame = pd.DataFrame({"name": letters.view("S6").ravel().astype(str)})
encoder = HybridEncoder("similarity", epochs=1, hidden_dim=8, roles={"name": "string"}, device="cpu")
before = peak_memory()
encoder.fit(frame)
encoded = encoder.transform(frame)
print(frame["name"].nunique(), len(encoded), np.isfinite(encoded).all(), encoder.notices_[0].column)
print((peak_memory() - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_a_hundred_thousand_distinct_strings_need_no_gigabytes() -> None:
    # In a process of its own: memory that other tests used would hide what this needs.
    run = subprocess.run([sys.executable, "-c", HUNDRED_THOUSAND], capture_output=True, text=True, check=True)
    facts, megabytes = run.stdout.splitlines()
    distinct, rows, finite, column = facts.split()
    assert int(distinct) > 99_000
    assert (rows, finite, column) == ("100000", "True", "name")
    # A table of all similarities would need 40 GB, one of all strings against the prototypes 400 MB.
    assert float(megabytes) < 350
