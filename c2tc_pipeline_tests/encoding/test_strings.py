"""N-gram similarity against skrub's SimilarityEncoder and against multisets counted the slow way; words or codes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skrub import SimilarityEncoder

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.strings import (
    NGramSimilarity,
    StringChoice,
    Vocabulary,
    choose_string_encoding,
    lexical_signal,
    looks_like_code,
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


@pytest.mark.parametrize("ngram_range", [(2, 4), (3, 4), (5, 5)])
@pytest.mark.parametrize("text", ["", "a", "ab", " ", "🚀"])
def test_every_string_is_similar_to_itself_however_short(text: str, ngram_range: tuple[int, int]) -> None:
    similarity = NGramSimilarity([text, "elephant"], ngram_range).to_known([text, "elephant", "zz"])
    np.testing.assert_array_equal(similarity, [[1, 0], [0, 1], [0, 0]])


@given(known=strings, ngram_range=ranges)
def test_symmetric_within_0_and_1_and_case_insensitive(known: list[str], ngram_range: tuple[int, int]) -> None:
    table = NGramSimilarity(known, ngram_range).to_known(known)
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(np.diag(table), 1)
    assert 0 <= table.min() <= table.max() <= 1
    lowered = [text.lower() for text in known]
    np.testing.assert_array_equal(NGramSimilarity(lowered, ngram_range).to_known(lowered), table)


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


@pytest.mark.parametrize(
    ("values", "encoding"),
    [
        (WORDS, "similarity"),
        (["Yes", "No"], "similarity"),
        (["UNITED STATES", "UNITED KINGDOM", "CHINA"], "similarity"),
        (["agréable", "désagréable"], "similarity"),
        (CODES, "target"),
        (["250.83", "276", "V58", "401"], "target"),
        (["N14228", "N24211", "N619AA"], "target"),
        (["[70-80)", "[80-90)"], "target"),
    ],
)
def test_small_vocabularies_are_judged_by_the_look_of_their_values(values: list[str], encoding: str) -> None:
    choice = chosen(values * 4, np.arange(len(values) * 4) % 2)
    assert (choice.encoding, choice.column) == (encoding, "c")


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


def test_short_capitals_and_digits_look_like_codes_and_words_do_not() -> None:
    assert all(map(looks_like_code, ["SFO", "WN", "12", "2024-01-31", "A1", "Ä", "?"]))
    assert not any(map(looks_like_code, ["", "  ", "Male", "no", "UNITED", "a1", "Ward 7", "école"]))


def test_the_hybrid_encoder_chooses_column_by_column_and_gives_reasons() -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(**QUICK).fit(X, y)
    choices = {choice.column: choice for choice in encoder.string_choices_}
    assert choices.keys() == {"relation", "airport", "odd"}
    assert all(choice.reason for choice in choices.values())
    for column, encoding in (("relation", "similarity"), ("airport", "target")):
        assert choices[column].encoding == encoder.encoding_of(column) == encoding
    assert [c.encoding for c in HybridEncoder(**QUICK).fit(X[["airport"]]).string_choices_] == ["similarity"]
    with pytest.raises(InputError, match="'words'"):
        HybridEncoder(strings="words").fit(X, y)


@pytest.mark.parametrize("strings", ["similarity", "target"])
def test_a_given_encoding_is_used(strings: str) -> None:
    encoder = HybridEncoder(strings=strings, **QUICK).fit(*mixed_table())
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
