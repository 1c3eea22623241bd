"""N-gram similarity against skrub's SimilarityEncoder and against multisets counted the slow way."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from skrub import SimilarityEncoder

from c2tc_pipeline.encoding.strings import NGramSimilarity

ranges = st.sampled_from([(1, 1), (2, 4), (3, 3), (2, 2), (4, 6)])
# Few signs, so that n-grams repeat and are shared; some change their length in lower case.
strings = st.lists(st.text("abAİß é🚀", max_size=9) | st.text(max_size=5), min_size=1, max_size=6)


def multiset_similarity(one: str, other: str, ngram_range: tuple[int, int]) -> float:
    def grams(text: str) -> Counter[str]:
        lengths = range(ngram_range[0], ngram_range[1] + 1)
        padded = f" {text.lower()} "
        found = Counter(padded[i : i + n] for n in lengths for i in range(len(padded) - n + 1))
        return found or Counter([padded])

    return (grams(one) & grams(other)).total() / (grams(one) | grams(other)).total()


@given(known=strings, others=strings, ngram_range=ranges)
def test_equals_the_jaccard_index_of_multisets(
    known: list[str], others: list[str], ngram_range: tuple[int, int]
) -> None:
    expected = [[multiset_similarity(text, k, ngram_range) for k in known] for text in others]
    np.testing.assert_allclose(NGramSimilarity(known, ngram_range).to_known(others), expected, rtol=1e-6)


@given(known=strings, others=strings, ngram_range=ranges)
def test_equals_skrub(known: list[str], others: list[str], ngram_range: tuple[int, int]) -> None:
    # skrub takes a run of blanks for one; a string it leaves without n-grams is unlike even itself. The tests below
    # say what we do instead.
    texts = [
        text for text in {*known, *others} if not re.search(r"\s\s", f" {text} ") and len(text) + 2 >= ngram_range[0]
    ]
    known = sorted({text for text in known if text in texts})
    others = [text for text in others if text in texts]
    assume(known and others)
    oracle = SimilarityEncoder(ngram_range=ngram_range).fit(np.array(known, dtype=object)[:, None])
    expected = oracle.transform(np.array(others, dtype=object)[:, None], fast=False)
    np.testing.assert_allclose(NGramSimilarity(known, ngram_range).to_known(others), expected, rtol=1e-6)


def test_runs_of_blanks_are_kept_where_skrub_takes_them_for_one() -> None:
    ours = NGramSimilarity(["a b"]).to_known(["a  b"]).item()
    theirs = SimilarityEncoder().fit(np.array([["a b"]], dtype=object)).transform(np.array([["a  b"]]), fast=False)
    assert ours < 1
    assert theirs.item() == 1


@pytest.mark.parametrize("ngram_range", [(2, 4), (3, 4), (5, 5)])
@pytest.mark.parametrize("text", ["", "a", "ab", " ", "🚀"])
def test_every_string_is_like_itself_however_short(text: str, ngram_range: tuple[int, int]) -> None:
    similarity = NGramSimilarity([text, "elephant"], ngram_range).to_known([text, "elephant", "zz"])
    np.testing.assert_array_equal(similarity, [[1, 0], [0, 1], [0, 0]])


@given(known=strings, ngram_range=ranges)
def test_symmetric_within_0_and_1_and_blind_to_case(known: list[str], ngram_range: tuple[int, int]) -> None:
    table = NGramSimilarity(known, ngram_range).to_known(known)
    np.testing.assert_array_equal(table, table.T)
    np.testing.assert_array_equal(np.diag(table), 1)
    assert table.min() >= 0
    assert table.max() <= 1
    lowered = [text.lower() for text in known]
    np.testing.assert_array_equal(NGramSimilarity(lowered, ngram_range).to_known(lowered), table)


def test_many_strings_at_once_equal_one_by_one() -> None:
    similarity = NGramSimilarity(["1234", "4321"])
    texts = [str(number) for number in range(9_000)]
    some = [0, 4_095, 4_096, 8_999]
    np.testing.assert_array_equal(similarity.to_known(texts)[some], [similarity.to_known([texts[i]])[0] for i in some])


def test_no_known_strings_leave_no_columns() -> None:
    assert NGramSimilarity([]).to_known(["a"]).shape == (1, 0)
