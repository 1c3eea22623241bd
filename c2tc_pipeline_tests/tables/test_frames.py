"""Tables from batches: strings end up in one piece, so that picking rows from them does not copy whole columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from c2tc_pipeline.encoding import base
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables.blocks import frame_of, in_one_piece
from c2tc_pipeline_tests.tools.made_tables import mixed_table


def pieces(series: pd.Series) -> int:
    return int(series.array.__arrow_array__().num_chunks)


def in_pieces(frame: pd.DataFrame) -> pd.DataFrame:
    half = len(frame) // 2
    return pd.concat([frame.iloc[:half], frame.iloc[half:]])


def test_strings_of_several_batches_are_joined() -> None:
    frame = frame_of([pa.record_batch({"a": ["x", None], "b": [1, 2]}), pa.record_batch({"a": ["y"], "b": [3]})], "t")
    assert pieces(frame["a"]) == 1
    assert frame["a"].isna().tolist() == [False, True, False]


def test_values_types_names_and_the_table_itself_stay() -> None:
    frame = in_pieces(mixed_table()).set_axis(["twice", "twice", *mixed_table().columns[2:]], axis="columns")
    texts = [position for position, dtype in enumerate(frame.dtypes) if dtype == "str"]
    assert texts
    joined = in_one_piece(frame)
    pd.testing.assert_frame_equal(joined, frame)
    assert {pieces(joined.iloc[:, position]) for position in texts} == {1}
    assert {pieces(frame.iloc[:, position]) for position in texts} == {2}


def test_a_table_that_is_in_one_piece_is_not_copied() -> None:
    frame = mixed_table()
    assert in_one_piece(frame) is frame


def test_rows_are_encoded_from_strings_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = mixed_table().drop(columns="outcome")
    encoder = HybridEncoder(random_state=0).fit(frame, mixed_table()["outcome"])
    order = np.random.default_rng(0).permutation(len(frame))
    seen: list[pd.DataFrame] = []

    def watched(given: pd.DataFrame) -> pd.DataFrame:
        seen.append(given)
        return in_one_piece(given)

    monkeypatch.setattr(base, "in_one_piece", watched)
    np.testing.assert_array_equal(encoder.encode_rows(in_pieces(frame), order), encoder.transform(frame)[order])
    assert len(seen) == 1
