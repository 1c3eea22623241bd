"""String columns end to end: the code of a row against the dense formula, unseen strings, gaps, large vocabularies."""

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
from c2tc_pipeline.encoding.strings import NGramSimilarity
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
        texts = ["" if g else v for v, g in zip(frame[name], gap, strict=True)]
        similar = NGramSimilarity(vocabulary.prototypes).to_known(texts)
        blocks.append(np.column_stack([np.where(gap[:, None], 0, similar), gap]))
    hidden = np.maximum(np.hstack(blocks) @ part.weights.w_in + part.weights.b_in, 0)
    return np.asarray(hidden @ part.weights.w_code + part.weights.b_code)


def test_a_row_is_the_code_of_its_similarities_scaled_by_the_training_rows() -> None:
    train = people()
    new = pd.DataFrame({"job": ["nurses", "", None, "🚀"], "relation": ["Wife", "wives", "husband", None]})
    encoder = fitted(train)
    code = dense_code(encoder, train)
    low, high = code.min(axis=0), code.max(axis=0)
    for frame in (train, new):
        expected = np.clip((dense_code(encoder, frame) - low) / (high - low), 0, 1)
        np.testing.assert_allclose(encoder.transform(frame), expected, atol=1e-4)
    # The code is as wide as there are string columns, or as asked for.
    assert encoder.get_feature_names_out().tolist() == ["string_code_0", "string_code_1"]
    assert list(encoder.sources().values()) == [["job", "relation"]] * 2
    assert fitted(train, latent_dim=5).transform(train).shape == (120, 5)


def test_unseen_strings_are_near_what_they_mean_and_differ_from_each_other() -> None:
    encoder = fitted(people(gaps=False)[["job"]], latent_dim=4)
    known = encoder.transform(pd.DataFrame({"job": JOBS}))
    misspelt = encoder.transform(pd.DataFrame({"job": [f"{job}s" for job in JOBS]}))
    distances = np.linalg.norm(known[:, None] - misspelt[None], axis=2)
    np.testing.assert_array_equal(distances.argmin(axis=0), np.arange(len(JOBS)))
    assert len(np.unique(misspelt.round(4), axis=0)) == len(JOBS)
    # So are strings beyond the prototypes.
    few = fitted(people()[["job"]], max_prototypes=3, latent_dim=4)
    assert len(np.unique(few.transform(pd.DataFrame({"job": JOBS})), axis=0)) == len(JOBS)


def test_gaps_are_unlike_empty_strings_and_unlike_every_string() -> None:
    encoder = fitted(people()[["job"]], latent_dim=4)
    encoded = encoder.transform(pd.DataFrame({"job": pd.Series([None, np.nan, pd.NA, "", "nan", "None", *JOBS])}))
    np.testing.assert_array_equal(encoded[1:3], encoded[[0, 0]])
    assert all(not np.allclose(encoded[0], row) for row in encoded[3:])


def test_gaps_that_training_never_saw_and_columns_without_strings_are_encoded() -> None:
    encoded = fitted(people(gaps=False)).transform(pd.DataFrame({"job": [None], "relation": [None]}))
    assert np.isfinite(encoded).all()
    frame = pd.DataFrame({"job": JOBS, "nothing": pd.Series([None] * 6, dtype="str")})
    encoder = fitted(frame, roles={"nothing": "string", "job": "string"})
    assert np.isfinite(encoder.transform(pd.DataFrame({"job": ["cook"], "nothing": ["something"]}))).all()


def test_a_large_vocabulary_is_reported_by_column() -> None:
    assert fitted(people(), max_prototypes=6).notices_ == []
    notices = fitted(people(), max_prototypes=2).notices_
    assert [(n.kind, n.column) for n in notices] == [("many_strings", "job"), ("many_strings", "relation")]


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
assert frame["name"].nunique() > 99_000 and len(encoded) == 100_000 and np.isfinite(encoded).all()
print((peak_memory() - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_a_hundred_thousand_distinct_strings_need_no_gigabytes() -> None:
    # In a process of its own: memory that other tests used would hide what this needs.
    run = subprocess.run([sys.executable, "-c", HUNDRED_THOUSAND], capture_output=True, text=True, check=True)
    # A table of all similarities would need 40 GB, one of all strings against the prototypes 400 MB.
    assert float(run.stdout) < 350
