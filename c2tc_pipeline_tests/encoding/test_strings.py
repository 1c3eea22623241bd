"""Strings: n-gram similarity against skrub and multisets, words or codes, and rows against the dense formula."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from skrub import SimilarityEncoder
from threadpoolctl import threadpool_limits

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.similarity import SimilarityPart
from c2tc_pipeline.encoding.strings import (
    NGramSimilarity,
    StringChoice,
    Vocabulary,
    choose_string_encoding,
    lexical_signal,
)
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline_tests.encoding.mixed_tables import CODES, QUICK, WORDS, mixed_table

ranges = st.sampled_from([(1, 1), (2, 4), (3, 3), (2, 2), (4, 6)])
# Few letters, so that n-grams repeat and are shared; some change their length in lower case.
strings = st.lists(st.text("abAİß é🚀", max_size=9) | st.text(max_size=5), min_size=1, max_size=6)


def multiset_similarity(one: str, other: str, ngram_range: tuple[int, int]) -> float:
    def grams(text: str) -> Counter[str]:
        lengths = range(ngram_range[0], ngram_range[1] + 1)
        padded = f" {text.lower()} "
        found = Counter(padded[i : i + n] for n in lengths for i in range(len(padded) - n + 1))
        return found or Counter([padded])

    return (grams(one) & grams(other)).total() / (grams(one) | grams(other)).total()


@given(known=strings, others=strings, ngram_range=ranges)
def test_similarity_is_the_jaccard_index_of_multisets_and_skrubs(
    known: list[str], others: list[str], ngram_range: tuple[int, int]
) -> None:
    ours = NGramSimilarity(known, ngram_range).to_known(others)
    expected = [[multiset_similarity(text, k, ngram_range) for k in known] for text in others]
    np.testing.assert_allclose(ours, expected, rtol=1e-6)
    # skrub takes a run of blanks for one; a string it leaves without n-grams is unlike even itself.
    texts = {t for t in {*known, *others} if not re.search(r"\s\s", f" {t} ") and len(t) + 2 >= ngram_range[0]}
    known, others = sorted(texts.intersection(known)), [text for text in others if text in texts]
    assume(known and others)
    oracle = SimilarityEncoder(ngram_range=ngram_range).fit(np.array(known, dtype=object)[:, None])
    expected = oracle.transform(np.array(others, dtype=object)[:, None], fast=False)
    np.testing.assert_allclose(NGramSimilarity(known, ngram_range).to_known(others), expected, rtol=1e-6)


def test_many_strings_at_once_equal_one_by_one_and_none_leave_no_columns() -> None:
    similarity = NGramSimilarity(["1234", "4321"])
    texts = [str(number) for number in range(9_000)]
    some = [0, 4_095, 4_096, 8_999]
    np.testing.assert_array_equal(similarity.to_known(texts)[some], [similarity.to_known([texts[i]])[0] for i in some])
    assert NGramSimilarity([]).to_known(["a"]).shape == (1, 0)


def test_prototypes_are_the_most_frequent_strings_and_others_are_at_the_nearest() -> None:
    column = pd.Series(["b"] * 3 + ["a"] * 3 + ["z"] * 5 + ["c", None, None])
    for seed in range(4):
        shuffled = column.sample(frac=1, random_state=seed)
        assert Vocabulary.of_counts(CategoryCounts.of(shuffled), (2, 4), 3).prototypes == ["z", "a", "b"]
    vocabulary = Vocabulary(["civil engineer", "nurse"], (2, 4))
    places = vocabulary.nearest_places(np.array([0, 1, -1, 2]), ["nurses", "engineer", "nurse"])
    assert places.tolist() == [1, 0, vocabulary.missing, 1]


LARGE = 80
LIMITS: dict[str, Any] = {"ngram_range": (2, 4), "max_prototypes": 1_000}
SYLLABLES = ["bar", "lem", "nor", "quist", "tav", "zu", "mik", "pel"]


def chosen(values: list[Any], y: np.ndarray) -> StringChoice:
    return choose_string_encoding("c", CategoryCounts.of(pd.Series(values), y), **LIMITS)


def families(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return strings of eight families with a stem each, and labels that go by the family."""
    family = rng.integers(0, len(SYLLABLES), LARGE)
    return [f"{SYLLABLES[f] * 2} {number}" for number, f in enumerate(family)], family % 2


LIKE_WORDS = [WORDS, ["Yes", "No"], ["UNITED STATES", "UNITED KINGDOM", "CHINA"], ["agréable", "désagréable"]]
LIKE_CODES = [CODES, ["250.83", "276", "V58", "401"], ["N14228", "N24211", "N619AA"], ["[70-80)", "[80-90)"]]


@pytest.mark.parametrize("values", [*LIKE_WORDS, *LIKE_CODES], ids=lambda values: values[0])
def test_small_vocabularies_are_judged_by_the_look_of_their_values(values: list[str]) -> None:
    choice = chosen(values * 4, np.arange(len(values) * 4) % 2)
    assert (choice.encoding, choice.column) == ("similarity" if values in LIKE_WORDS else "target", "c")


@pytest.mark.parametrize("seed", range(3))
def test_large_vocabularies_are_judged_by_whether_similar_strings_have_similar_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts, labels = families(rng)
    values, y = np.array(texts * 20), np.tile(labels, 20)
    choice = chosen(values.tolist(), y)
    assert choice.encoding == "similarity"
    order = rng.permutation(len(y))
    assert chosen(values[order].tolist(), y[order]) == choice
    # The same strings, with labels that have nothing to do with them.
    assert chosen(values.tolist(), np.tile(rng.permutation(labels), 20)).encoding == "target"


def test_the_lexical_signal_survives_gaps_one_class_and_few_prototypes() -> None:
    texts, labels = families(np.random.default_rng(0))
    values, y = pd.Series([*texts * 20, *[None] * 99]), np.append(np.tile(labels, 20), [0] * 99)
    assert 0.6 < lexical_signal(CategoryCounts.of(values, y), (2, 4), 1_000) <= 1
    assert lexical_signal(CategoryCounts.of(values, y), (2, 4), 60) > 0.4
    assert lexical_signal(CategoryCounts.of(values, np.zeros_like(y)), (2, 4), 1_000) == 0


def test_the_hybrid_encoder_chooses_column_by_column_unless_an_encoding_is_given() -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(**QUICK).fit(X, y)
    choices = {choice.column: choice for choice in encoder.string_choices_}
    assert choices.keys() == {"relation", "airport", "odd"}
    assert all(choice.reason for choice in choices.values())
    for column, encoding in (("relation", "similarity"), ("airport", "target")):
        assert choices[column].encoding == encoder.encoding_of(column) == encoding
    assert [c.encoding for c in HybridEncoder(**QUICK).fit(X[["airport"]]).string_choices_] == ["similarity"]
    for strings in ("similarity", "target"):
        encoder = HybridEncoder(strings=strings, **QUICK).fit(X, y)
        assert {choice.encoding for choice in encoder.string_choices_} == {strings}
        assert encoder.encoding_of("airport") == encoder.encoding_of("relation") == strings


@pytest.mark.shared_data
@pytest.mark.parametrize(("table", "encoding"), [("adult", "similarity"), ("airlines", "target")])
def test_the_papers_tables(shared_data: Path, table: str, encoding: str) -> None:
    about = json.loads((shared_data / "datasets.json").read_text())["datasets"][table]
    frame = pd.read_parquet(shared_data / about["file"], columns=[*about["string_categorical"], about["label"]])
    y = pd.factorize(frame[about["label"]])[0]
    for name in about["string_categorical"]:
        assert choose_string_encoding(name, CategoryCounts.of(frame[name], y), **LIMITS).encoding == encoding


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
    new = pd.DataFrame({"job": ["nurses", " ", None, "🚀"], "relation": ["Wife", "wives", "husband", None]})
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


def test_gaps_are_alike_however_they_are_spelt_and_unlike_every_string() -> None:
    encoder = fitted(people()[["job"]], latent_dim=4)
    encoded = encoder.transform(pd.DataFrame({"job": pd.Series([None, np.nan, pd.NA, "", "nan", " ", "None", *JOBS])}))
    np.testing.assert_array_equal(encoded[1:5], encoded[[0] * 4])
    assert all(not np.allclose(encoded[0], row) for row in encoded[5:])


def test_a_large_vocabulary_is_reported_by_column() -> None:
    assert fitted(people(), max_prototypes=6).notices_ == []
    notices = fitted(people(), max_prototypes=2).notices_
    assert [(n.kind, n.column) for n in notices] == [("many_strings", "job"), ("many_strings", "relation")]


MANY_STRINGS = """
import numpy as np
import pandas as pd
import torch

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.common.stages import peak_memory

rng = np.random.default_rng(0)
letters = rng.integers(97, 123, (50_000, 6), dtype=np.uint8)
frame = pd.DataFrame({"name": letters.view("S6").ravel().astype(str)})
encoder = HybridEncoder("similarity", epochs=1, hidden_dim=8, roles={"name": "string"}, device="cpu")
before = peak_memory()
encoder.fit(frame)
encoded = encoder.transform(frame)
assert frame["name"].nunique() > 49_000 and len(encoded) == 50_000 and np.isfinite(encoded).all()
print((peak_memory() - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_many_distinct_strings_need_no_table_of_similarities() -> None:
    # In a process of its own: memory that other tests used would hide what this needs.
    run = subprocess.run([sys.executable, "-c", MANY_STRINGS], capture_output=True, text=True, check=True)
    # A table of all similarities would need 10 GB, one of all strings against the prototypes 200 MB.
    assert float(run.stdout) < 180


def test_strings_are_encoded_to_the_same_bytes_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    # Products of tables this large are shared by threads.
    known = [f"{SYLLABLES[n % 8]}{SYLLABLES[n // 8 % 8]} {n}" for n in range(600)]
    X = pd.DataFrame({name: rng.choice(known, 3_000) for name in ("one", "other")})
    y, before = rng.integers(0, 2, 3_000), torch.get_num_threads()
    found = set()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with threadpool_limits(threads):
                encoder = HybridEncoder("similarity", epochs=1, device="cpu").fit(X, y)
                state = encoder.parts_[0].state()
                arrays = [state.arrays[name].tobytes() for name in sorted(state.arrays)]
                found.add((*arrays, encoder.transform(X).tobytes()))
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1
