"""Rows picked column by column are those that a data frame would pick."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.row_block import RowBlock
from c2tc_pipeline.tables.roles import Role

COLUMNS = {
    "whole": pd.Series([3, 1, 2], dtype="int8"),
    "with gaps": pd.Series([1, None, 2], dtype="Int64"),
    "text": pd.Series(["b", None, "a"]),
    "mixed": pd.Series([1, "x", None], dtype=object),
    "moment": pd.Series(["2020-01-01", None, "2021-01-01"], dtype="datetime64[s]"),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [np.array([2, 0, 2]), slice(1, 3), np.array([], dtype=np.int64)])
def test_a_column_has_the_cells_of_its_rows(name: str, rows: np.ndarray | slice) -> None:
    length = len(np.arange(3)[rows])
    block = RowBlock(COLUMNS, dict.fromkeys(COLUMNS, Role.CODE), rows, length)
    assert len(block) == length
    assert block[name].dtype == COLUMNS[name].dtype
    pd.testing.assert_series_equal(
        block[name].reset_index(drop=True), COLUMNS[name].iloc[rows].reset_index(drop=True), check_names=False
    )


def test_a_column_comes_in_the_form_of_its_role() -> None:
    roles = {"mixed": Role.STRING, "moment": Role.NUMERIC}
    block = RowBlock(COLUMNS, roles, np.array([2, 1]), 2)
    assert isinstance(block["mixed"].dtype, pd.StringDtype)
    assert block["moment"].tolist()[0] == 1_609_459_200.0


def test_rows_in_any_order_are_encoded_as_the_table_is() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.integers(0, 2, 200), "x": rng.random(200), "word": rng.choice(["a", "b"], 200)})
    encoder = HybridEncoder("target").fit(frame, rng.integers(0, 2, 200))
    order = rng.permutation(200)
    np.testing.assert_array_equal(encoder.encode_rows(frame, order), encoder.encode_rows(frame)[order])
