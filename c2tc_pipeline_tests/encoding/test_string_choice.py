"""Words or codes: what ``strings="auto"`` chooses, and the signal that it measures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.strings import StringChoice, choose_string_encoding, lexical_signal, looks_like_code
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline_tests.encoding.mixed_tables import CODES, QUICK, WORDS, mixed_table

LARGE = 80
LOOKED_AT: dict[str, Any] = {"ngram_range": (2, 4), "max_prototypes": 1_000}
SYLLABLES = ["bar", "lem", "nor", "quist", "tav", "zu", "mik", "pel"]


def chosen(values: list[Any], y: np.ndarray) -> StringChoice:
    return choose_string_encoding("c", CategoryCounts.of(pd.Series(values), y), **LOOKED_AT)


def signal(texts: list[str], positions: np.ndarray, y: np.ndarray, most: int = 1_000) -> float:
    values = pd.Series(np.array([*texts, None], dtype=object)[positions])
    return lexical_signal(CategoryCounts.of(values, y), (2, 4), most)


def families(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """Return strings of eight families with a stem each, and labels that go by the family."""
    family = rng.integers(0, len(SYLLABLES), LARGE)
    texts = [f"{SYLLABLES[f] * 2} {number}" for number, f in enumerate(family)]
    return texts, family % 2


def random_codes(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    texts = ["".join(rng.choice(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), 3)) for _ in range(LARGE)]
    return list(dict.fromkeys(texts)), rng.integers(0, 2, len(set(texts)))


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
def test_small_vocabularies_go_by_the_look_of_their_values(values: list[str], encoding: str) -> None:
    choice = chosen(values * 4, np.arange(len(values) * 4) % 2)
    assert choice.encoding == encoding
    assert choice.column == "c"
    assert "values look like" in choice.reason


@pytest.mark.parametrize("seed", range(3))
def test_large_vocabularies_go_by_whether_like_strings_have_like_labels(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts, labels = families(rng)
    assert chosen(texts * 20, np.tile(labels, 20)).encoding == "similarity"
    # The same strings, with labels that have nothing to do with them.
    shuffled = chosen(texts * 20, np.tile(rng.permutation(labels), 20))
    assert shuffled.encoding == "target"
    assert "say little" in shuffled.reason


@pytest.mark.parametrize("seed", range(3))
def test_the_lexical_signal_is_high_in_families_and_low_in_random_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    signals = []
    for texts, labels in (families(rng), random_codes(rng)):
        positions = np.tile(np.arange(len(texts)), 20)
        signals.append(signal(texts, positions, np.tile(labels, 20)))
    assert signals[0] > 0.6
    assert signals[1] < 0.1
    assert max(signals) <= 1


def test_the_lexical_signal_survives_gaps_one_class_and_few_prototypes() -> None:
    texts, labels = families(np.random.default_rng(0))
    positions = np.append(np.tile(np.arange(LARGE), 20), [-1] * 99)
    y = np.append(np.tile(labels, 20), [0] * 99)
    assert signal(texts, positions, y) > 0.6
    assert signal(texts, positions, y, most=60) > 0.4
    assert signal(texts, positions, np.zeros_like(y)) == 0


def test_the_order_of_rows_does_not_matter() -> None:
    texts, labels = families(np.random.default_rng(0))
    values, y = np.array(texts * 20), np.tile(labels, 20)
    order = np.random.default_rng(1).permutation(len(y))
    assert chosen(values.tolist(), y) == chosen(values[order].tolist(), y[order])


@pytest.mark.parametrize("looks", ["SFO", "WN", "12", "2024-01-31", "A1", "Ä", "?"])
def test_short_capitals_and_digits_look_like_codes(looks: str) -> None:
    assert looks_like_code(looks)


@pytest.mark.parametrize("looks", ["", "  ", "Male", "no", "UNITED", "a1", "Ward 7", "école"])
def test_words_and_nothing_do_not_look_like_codes(looks: str) -> None:
    assert not looks_like_code(looks)


def test_the_hybrid_encoder_chooses_column_by_column_and_says_why() -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(**QUICK).fit(X, y)
    choices = {choice.column: choice for choice in encoder.string_choices_}
    assert choices.keys() == {"relation", "airport", "odd"}
    assert all(choice.reason for choice in choices.values())
    assert (choices["relation"].encoding, choices["airport"].encoding) == ("similarity", "target")
    assert (encoder.encoding_of("relation"), encoder.encoding_of("airport")) == ("similarity", "target")


@pytest.mark.parametrize("strings", ["similarity", "target"])
def test_a_given_encoding_is_obeyed(strings: str) -> None:
    X, y = mixed_table()
    encoder = HybridEncoder(strings=strings, **QUICK).fit(X, y)
    assert {(choice.encoding, choice.reason) for choice in encoder.string_choices_} == {(strings, "set by the user")}
    assert encoder.encoding_of("airport") == encoder.encoding_of("relation") == strings


def test_without_labels_the_choice_is_similarity_and_says_so() -> None:
    encoder = HybridEncoder(**QUICK).fit(mixed_table()[0][["airport"]])
    assert encoder.string_choices_ == [StringChoice("airport", "similarity", "no labels to choose by")]


def test_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(InputError, match="'words' is unknown; choose one of: auto, similarity, target"):
        HybridEncoder(strings="words").fit(*mixed_table())


@pytest.mark.shared_data
@pytest.mark.parametrize(("table", "encoding"), [("adult", "similarity"), ("airlines", "target")])
def test_the_papers_tables(shared_data: Path, table: str, encoding: str) -> None:
    about = json.loads((shared_data / "datasets.json").read_text())["datasets"][table]
    frame = pd.read_parquet(shared_data / about["file"], columns=[*about["string_categorical"], about["label"]])
    y = pd.factorize(frame[about["label"]])[0]
    choices = [
        choose_string_encoding(name, CategoryCounts.of(frame[name], y), **LOOKED_AT)
        for name in about["string_categorical"]
    ]
    assert choices
    assert {choice.column: choice.encoding for choice in choices} == dict.fromkeys(
        about["string_categorical"], encoding
    )
    assert all(choice.reason for choice in choices)
