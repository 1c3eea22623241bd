"""Products with the inputs of the autoencoder, against those with the matrix that is never built."""

from __future__ import annotations

import pytest
import torch

from c2tc_pipeline.encoding.autoencoder_inputs import Inputs, WeightedRows, packed
from c2tc_pipeline.encoding.look_ups import JoinedColumns
from c2tc_pipeline_tests.encoding.autoencoder_cases import CASES, dense_rows


@pytest.mark.parametrize("picked", [[7], [3, 1, 3], list(range(50))], ids=["one row", "a row twice", "all rows"])
@pytest.mark.parametrize("most", [0, 40])
@pytest.mark.parametrize("case", CASES)
def test_products_are_those_with_the_dense_matrix(case: str, most: int, picked: list[int]) -> None:
    tables, places = CASES[case]
    rows = torch.tensor(picked)
    X = dense_rows(tables, places, torch.float64)[rows]
    joined = JoinedColumns.of(places, [len(table) for table in tables], most=most)
    inputs = Inputs.of(packed([torch.from_numpy(table).double() for table in tables]), joined.batch(rows))
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(X.shape[1], 3, generator=generator, dtype=torch.float64)
    values = torch.rand(len(X), 3, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(inputs.times(weights), X @ weights)
    torch.testing.assert_close(inputs.back(values), X.T @ values)
    torch.testing.assert_close(inputs.powers(), (X**2).sum(dim=1))
    weighted = WeightedRows.of(inputs, values[:, 0])
    torch.testing.assert_close(weighted.summed, values[:, 0] @ X)
    torch.testing.assert_close(weighted.power, values[:, 0] @ (X**2).sum(dim=1))


def test_tables_share_a_block_as_long_as_they_fit() -> None:
    tables = [torch.full((size, size), float(size)) for size in (200, 56, 1, 300, 2)]
    blocks = packed(tables)
    assert [len(block) for block in blocks] == [256, 1, 300, 2]
    torch.testing.assert_close(torch.block_diag(*blocks), torch.block_diag(*tables))
