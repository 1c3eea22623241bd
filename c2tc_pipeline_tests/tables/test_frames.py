"""Tables from batches: strings end up in one piece, so that picking rows from them does not copy whole columns."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

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
    assert in_one_piece(joined) is joined, "a table in one piece is not copied"
