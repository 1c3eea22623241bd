"""The gradient that is written out by hand, against torch's own of a dense network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.autoencoder_inputs import WeightedRows
from c2tc_pipeline.encoding.autoencoder_training import _pull
from c2tc_pipeline.encoding.look_ups import JoinedColumns
from c2tc_pipeline_tests.encoding.autoencoder_cases import CASES, DenseAutoencoder, Tables, dense_rows, model_of

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


def assert_same_pull(
    model: FactorisedAutoencoder, tables: Tables, places: np.ndarray, *, most: int = 40, parts: int = 1
) -> None:
    """Compare the loss and all gradients of a batch of weighted rows, with columns joined and the batch cut."""
    dtype = model.w_in.dtype
    weight = torch.rand(len(places), generator=torch.Generator().manual_seed(1), dtype=dtype)
    joined = JoinedColumns.of(places, model.sizes, most=most)
    pieces = torch.randperm(len(places), generator=torch.Generator().manual_seed(2)).tensor_split(parts)
    ours = _pull(model, [WeightedRows.of(model.inputs(joined.batch(piece)), weight[piece]) for piece in pieces])
    dense = DenseAutoencoder(model)
    theirs = weight @ dense(dense_rows(tables, places, dtype))
    (theirs / len(places)).backward()
    assert float(ours) == pytest.approx(float(theirs.detach()), rel=TOLERANCE[dtype])
    dense.assert_pulls_as(model, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=["f32", "f64"])
@pytest.mark.parametrize("parts", [1, 3, 50])
@pytest.mark.parametrize("most", [0, 40], ids=["single columns", "joined columns"])
@pytest.mark.parametrize("case", CASES)
def test_every_weight_is_pulled_as_in_the_dense_network(case: str, most: int, parts: int, dtype: torch.dtype) -> None:
    tables, places = CASES[case]
    assert_same_pull(model_of(tables, dtype), tables, places, most=most, parts=parts)


@pytest.mark.parametrize("bias", ["b_in", "b_back"])
@pytest.mark.parametrize("dead", [slice(3), slice(None)], ids=["some", "all"])
def test_dead_units_pull_nothing(bias: str, dead: slice) -> None:
    tables, places = CASES["several columns in one block"]
    model = model_of(tables, torch.float64)
    with torch.no_grad():
        getattr(model, bias)[dead] = -100
    assert_same_pull(model, tables, places)
    assert getattr(model, bias).grad[dead].eq(0).all()


def test_units_at_the_kink_count_as_dead() -> None:
    tables, places = CASES["one column"]
    model = model_of(tables, torch.float64)
    with torch.no_grad():
        for weights in (model.w_in, model.b_in, model.w_back, model.b_back):
            weights[..., :2] = 0
    assert_same_pull(model, tables, places)


def test_the_gradient_follows_what_the_loss_is_multiplied_with() -> None:
    tables, places = CASES["strings with missing values"]
    model = model_of(tables, torch.float64)
    rows = WeightedRows.of(model.inputs_at(torch.from_numpy(places)), torch.ones(len(places), dtype=torch.float64))
    weights = list(model.parameters())
    once = torch.autograd.grad(model.summed_loss(rows), weights)
    thrice = torch.autograd.grad(-3 * model.summed_loss(rows), weights)
    torch.testing.assert_close(thrice, tuple(-3 * gradient for gradient in once))
