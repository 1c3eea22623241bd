"""What condensing owes to the frame it is given: it is left alone, and only its rows and columns matter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline import CondensedTable, HybridEncoder, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.encoding.target import TargetEncoder
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
    "index",
    [
        np.arange(300)[::-1],
        np.zeros(300, dtype=int),
        pd.date_range("2024", periods=300),
        [f"row {i}" for i in range(300)],
    ],
    ids=["backwards", "all zero", "dates", "text"],
)
@pytest.mark.parametrize("representative", ["centroid", "medoid"])
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
    small = condense(numbered, "6", 0.05, gamma="auto", validation=numbered)
    assert small.original.columns.tolist() == ["0", "1", "2", "3", "4", "5", "6"]
    assert "renamed_columns" in {notice.kind for notice in small.notices}


def test_labels_of_several_types_are_known_again_in_validation_rows() -> None:
    frame = pd.DataFrame({"x": np.arange(60) % 37 / 7, "y": [1, "b"] * 30})
    small = condense(frame, "y", rows=6, gamma="auto", validation=frame)
    # Rows of both classes were judged, so neither metric can be perfect by having one class only.
    assert small.classes == ["1", "b"]
    assert max(score["accuracy"] for score in small.summary["gamma_scores"]) < 1


@pytest.mark.parametrize("unknown", [{"outcome": "nobody"}, {"outcome": None}])
def test_validation_rows_without_a_known_class_are_refused(unknown: dict[str, str | None]) -> None:
    frame = mixed_table(60)
    with pytest.raises(InputError, match=r"^No validation row has a known class in the label column 'outcome'"):
        condense(frame, "outcome", 0.2, gamma="auto", validation=frame.assign(**unknown))


def test_validation_rows_without_the_label_are_refused() -> None:
    frame = mixed_table(60)
    with pytest.raises(InputError, match="lack the column 'outcome'"):
        condense(frame, "outcome", 0.2, gamma="auto", validation=frame.drop(columns="outcome"))


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
    means = small.encoder.transform(frame).astype(np.float64)
    group = small.membership["condensed_row"].to_numpy()
    np.testing.assert_allclose(small.X.to_numpy(), pd.DataFrame(means).groupby(group).mean(), atol=2e-6)


def test_encoded_columns_are_named_after_classes() -> None:
    names = condense(mixed_table(), "outcome", 0.05).X.columns
    assert {"day__is_class b", "day__is_class c"} <= set(names)


def test_a_label_with_the_name_of_an_encoded_column_is_refused() -> None:
    frame = mixed_table(words=True).rename(columns={"outcome": "string_code_0"})
    with pytest.raises(InputError, match=r"^The label 'string_code_0' has the name of an encoded column; rename"):
        condense(frame, "string_code_0", 0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ratio": 0.0}, "Ratio is 0, but must be above 0 and at most 1"),
        ({"ratio": -0.1}, "Ratio is -0.1"),
        ({"ratio": 1.01}, "Ratio is 1.01"),
        ({"ratio": float("nan")}, "Ratio is nan"),
        ({"rows": 2}, "A budget of 2 condensed rows does not fit: it must be a whole number, at least 3"),
        ({"rows": 61}, "at most 60, the number of rows"),
        ({"rows": 10.5}, "A budget of 10.5 condensed rows does not fit"),
        ({"gamma": "high"}, "gamma is 'high', but must be a number between 0 and 1, or 'auto'"),
        ({"gamma": 1.5}, "gamma is 1.5"),
        ({"gamma": float("nan")}, "gamma is nan"),
        ({"allocation": "fair"}, "Allocation 'fair' is unknown; choose one of: hfils, optimal, ratio, fipc"),
        ({"losses": "rough"}, "Losses 'rough' are unknown; choose one of: curves, exact"),
        ({"representative": "median"}, "Representative 'median' is unknown; choose one of: centroid, medoid"),
        ({"random_state": None}, "random_state is None, but must be a whole number"),
        ({"random_state": -1}, "random_state is -1, but must be a whole number"),
        ({"strings": "guess"}, "String encoding 'guess' is unknown"),
        ({"numeric": "log"}, "Numeric scaling 'log' is unknown"),
        ({"device": "abacus"}, "Device 'abacus' is unknown"),
        ({"roles": {"age": "colour"}}, "Column 'age' can't have the role 'colour'"),
        ({"roles": {"aeg": "code"}}, "There is no column 'aeg' to give a role to"),
        ({"label": "outcom"}, "There is no label column 'outcom' in the table"),
    ],
    ids=str,
)
def test_bad_settings_get_one_sentence(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        condense(mixed_table(60), **{"label": "outcome", **settings})  # type: ignore[arg-type]
    text = str(caught.value)
    assert message in text
    assert text.endswith(".")
    assert "\n" not in text


@pytest.mark.parametrize(
    "settings", [{"gamma": "high"}, {"gamma": 2.0}, {"losses": "rough"}, {"allocation": "fair"}, {"rows": 2}], ids=str
)
def test_bad_settings_are_refused_before_the_work(settings: dict[str, object]) -> None:
    stages = []
    with pytest.raises(InputError):
        condense(mixed_table(60), "outcome", listener=lambda stage, done, total: stages.append(stage), **settings)  # type: ignore[arg-type]
    assert set(stages) == {"prepare"}


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
        == ["prepare", "encode", "curves", "allocate", "cluster", "decode"]
    )
    for steps in heard.values():
        assert steps[0][0] == 0
        assert steps[-1][0] == steps[-1][1]


def test_column_names_and_labels_may_be_numbers() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).random((60, 3)))
    frame[3] = np.arange(60) % 2
    assert condense(frame, 3, 0.1).label_name == "3"  # type: ignore[arg-type]


def test_the_encoder_knows_why_columns_have_their_roles_and_returns_named_columns() -> None:
    table = mixed_table(120)
    small = condense(table, "outcome", 0.1)
    assert "user" not in small.encoder.roles_["amount"].reason
    encoded: Any = small.encoder.transform(table.head(3))
    assert encoded.columns.tolist() == small.X.columns.tolist()
