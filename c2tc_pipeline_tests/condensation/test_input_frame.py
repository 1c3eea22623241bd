"""What condensing owes to the frame it is given: it is left alone, and only its rows and columns matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable, HybridEncoder, condense
from c2tc_pipeline.bench.encoders import TargetEncoder
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.tools.made_tables import mixed_table


def assert_same(one: CondensedTable, other: CondensedTable) -> None:
    pd.testing.assert_frame_equal(one.X, other.X)
    pd.testing.assert_series_equal(one.y, other.y)
    pd.testing.assert_series_equal(one.weight, other.weight)
    pd.testing.assert_frame_equal(one.original, other.original)
    pd.testing.assert_frame_equal(one.membership, other.membership)


@pytest.mark.parametrize("representative", ["centroid", "medoid"])
def test_the_frame_is_not_modified(representative: str) -> None:
    frame = mixed_table()
    frame.loc[3:9, "outcome"] = None
    before = frame.copy(deep=True)
    condense(frame, "outcome", 0.05, representative=representative)
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize(
    ("index", "representative"),
    [
        (np.arange(300)[::-1], "centroid"),
        (np.zeros(300, dtype=int), "medoid"),
        (pd.date_range("2024", periods=300), "centroid"),
        ([f"row {i}" for i in range(300)], "medoid"),
    ],
    ids=["backwards", "all zero", "dates", "text"],
)
def test_the_index_is_irrelevant(index: Any, representative: str) -> None:
    frame = mixed_table()
    frame.loc[3:9, "outcome"] = None
    expected = condense(frame, "outcome", 0.05, representative=representative)
    reindexed = condense(frame.set_axis(index), "outcome", 0.05, representative=representative)
    assert_same(reindexed, expected)


def test_rows_without_a_label_are_left_out_and_counted() -> None:
    frame = mixed_table()
    absent = [0, 7, 8, 299]
    frame.loc[absent, "outcome"] = None
    small = condense(frame, "outcome", 0.05)
    assert small.membership["source_row"].tolist() == [row for row in range(300) if row not in absent]
    assert small.summary["rows_in"] == 296
    notice = next(notice for notice in small.notices if notice.kind == "missing_labels")
    assert notice.column == "outcome"
    assert "4 rows" in notice.message


def test_column_names_that_are_not_text() -> None:
    frame = mixed_table()
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    small = condense(numbered, 6, 0.05, gamma="auto", validation=numbered)  # type: ignore[arg-type]
    assert small.original.columns.tolist() == ["0", "1", "2", "3", "4", "5", "6"]
    assert small.label_name == "6"
    assert "renamed_columns" in {notice.kind for notice in small.notices}


def test_labels_of_several_types_are_known_again_in_validation_rows() -> None:
    frame = pd.DataFrame({"x": np.arange(60) % 37 / 7, "y": [1, "b"] * 30})
    small = condense(frame, "y", rows=6, gamma="auto", validation=frame)
    # Rows of both classes were judged, so neither metric can be perfect by having one class only.
    assert small.classes == ["1", "b"]
    assert max(score["accuracy"] for score in small.summary["gamma_scores"]) < 1


@pytest.mark.parametrize("held", [{"outcome": "unknown"}, {"outcome": None}, {}], ids=str)
def test_validation_rows_without_a_known_class_or_the_label_are_refused(held: dict[str, str | None]) -> None:
    frame = mixed_table(60)
    validation = frame.assign(**held) if held else frame.drop(columns="outcome")
    with pytest.raises(InputError, match="'outcome'"):
        condense(frame, "outcome", 0.2, gamma="auto", validation=validation)


def test_a_given_encoder_is_not_touched_and_its_roles_count() -> None:
    frame = mixed_table()
    encoder = HybridEncoder(roles={"age": "code"}, random_state=3)
    before = encoder.get_params()
    small = condense(frame, "outcome", 0.05, encoder=encoder, roles={"day": "drop"})
    assert encoder.get_params() == before
    assert not hasattr(encoder, "parts_")
    roles = small.roles.set_index("column")["role"]
    assert roles[["age", "day", "amount"]].tolist() == ["code", "drop", "numeric"]


def test_another_encoder() -> None:
    frame = mixed_table()
    small = condense(frame, "outcome", 0.05, encoder=TargetEncoder())
    assert small.summary["settings"]["encoder"] == "TargetEncoder"
    means = small.encoder.encode_training(frame, frame["outcome"]).astype(np.float64)
    group = small.membership["condensed_row"].to_numpy()
    np.testing.assert_allclose(small.X.to_numpy(), pd.DataFrame(means).groupby(group).mean(), atol=2e-6)


def test_class_shares_have_a_column_less_than_there_are_classes() -> None:
    names = condense(mixed_table(), "outcome", 0.05).X.columns
    assert [name for name in names if name.startswith("day")] == ["day__shares_1", "day__shares_2"]


def test_a_label_with_the_name_of_an_encoded_column_is_refused() -> None:
    frame = mixed_table(words=True).rename(columns={"outcome": "string_code_0"})
    with pytest.raises(InputError, match="'string_code_0'"):
        condense(frame, "string_code_0", 0.05)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"ratio": 0.0}, "Ratio is 0"),
        ({"ratio": -0.1}, "Ratio is -0.1"),
        ({"ratio": 1.01}, "Ratio is 1.01"),
        ({"ratio": float("nan")}, "Ratio is nan"),
        ({"ratio": "1 %"}, "Ratio is '1 %'"),
        ({"rows": 2}, "at least 3"),
        ({"rows": 61}, "at most 60"),
        ({"rows": 10.5}, "10.5"),
        ({"gamma": "high"}, "gamma is 'high'"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"allocation": "fair"}, "hfils, optimal, ratio, fipc"),
        ({"representative": "median"}, "centroid, medoid"),
        ({"random_state": 0.5}, "random_state is 0.5"),
        ({"random_state": -1}, "random_state is -1"),
        ({"strings": "guess"}, "'guess'"),
        ({"numeric": "log"}, "'log'"),
        ({"device": "abacus"}, "'abacus'"),
        ({"roles": {"age": "colour"}}, "'colour'"),
        ({"roles": {"aeg": "code"}}, "'aeg'"),
        ({"roles": ["age"]}, "['age']"),
        ({"missing": "-999"}, "missing is '-999'"),
        ({"missing": [-999]}, "missing is [-999]"),
        ({"encoder": HybridEncoder}, "HybridEncoder()"),
        ({"label": "outcom"}, "'outcom'"),
    ],
    ids=str,
)
def test_bad_settings_get_one_sentence(settings: dict[str, object], named: str) -> None:
    stages = []
    arguments: dict[str, Any] = {"label": "outcome", **settings}
    with pytest.raises(InputError) as caught:
        condense(mixed_table(60), listener=lambda stage, done, total: stages.append(stage), **arguments)
    # Refused before any work; how many rows there are is known when the table was looked at.
    assert set(stages) <= {"prepare"}
    text = str(caught.value)
    assert named in text
    assert text.endswith(".")
    assert "\n" not in text


def test_listeners_hear_every_stage_from_start_to_end() -> None:
    heard: dict[str, list[tuple[int, int]]] = {}
    small = condense(
        mixed_table(),
        "outcome",
        0.05,
        listener=lambda stage, done, total: heard.setdefault(stage, []).append((done, total)),
    )
    assert (
        list(heard)
        == list(small.summary["seconds"])
        == ["prepare", "encode", "weigh", "curves", "allocate", "cluster", "decode"]
    )
    for steps in heard.values():
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]


def test_the_encoder_knows_why_columns_have_their_roles_and_returns_named_columns() -> None:
    table = mixed_table(120)
    small = condense(table, "outcome", 0.1)
    assert "user" not in small.encoder.roles_["amount"].reason
    encoded: Any = small.encoder.transform(table.head(3))
    assert encoded.columns.tolist() == small.X.columns.tolist()


@pytest.mark.parametrize("role", ["code", "numeric"])
@pytest.mark.parametrize("column", [range(10_000, 10_000 + 300), [7] * 300], ids=["identifier", "constant"])
def test_a_role_overrides_the_drop(role: str, column: Any) -> None:
    small = condense(mixed_table(300).assign(extra=column), "outcome", rows=3, roles={"extra": role})
    assert {notice.kind for notice in small.notices} <= {"high_cardinality"}
    assert small.encoder.encoding_of("extra") != "dropped"
    assert small.roles.set_index("column")["role"]["extra"] == role


@pytest.mark.parametrize(("ratio", "kinds"), [(0.01, []), (0.003, ["rows_raised"])])
def test_a_clean_table_has_no_notice_but_of_a_ratio_below_one_row_per_class(ratio: float, kinds: list[str]) -> None:
    assert [notice.kind for notice in condense(mixed_table(300), "outcome", ratio).notices] == kinds


def test_missing_values_everywhere_but_in_the_label() -> None:
    frame = mixed_table(300)
    rng = np.random.default_rng(1)
    for name in frame.columns.drop("outcome"):
        frame[name] = frame[name].astype("object").mask(rng.random(300) < 0.4)
    small = condense(frame, "outcome", 0.05)
    assert not small.X.isna().any(axis=None)
    assert small.X.to_numpy().min() >= 0
    assert small.X.to_numpy().max() <= 1
