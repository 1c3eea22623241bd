"""Tables, rows and networks to try the factorised autoencoder with, and a plain dense one to compare it with."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from c2tc_pipeline.encoding.autoencoder import FactorisedAutoencoder
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.category_counts import CategoryCounts

Tables = list[np.ndarray]


class DenseAutoencoder(torch.nn.Module):
    """The same network in the usual way: linear layers on rows of similarities."""

    def __init__(self, model: FactorisedAutoencoder) -> None:
        super().__init__()
        # A linear layer keeps its weights as (outputs, inputs).
        self.layers = torch.nn.ModuleList(
            [
                _linear(model.w_in.T, model.b_in),
                _linear(model.w_code.T, model.b_code),
                _linear(model.w_back.T, model.b_back),
                _linear(model.w_out, model.b_out),
            ]
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        into, code, back, out = self.layers
        return ((out(torch.relu(back(code(torch.relu(into(x)))))) - x) ** 2).sum(dim=1)

    def assert_pulls_as(self, model: FactorisedAutoencoder, tolerance: float) -> None:
        """Compare the gradient of every weight with that of the factorised network."""
        for (name, ours), theirs in zip(model.named_parameters(), self.parameters(), strict=True):
            assert ours.grad is not None
            assert theirs.grad is not None
            expected = theirs.grad.T if name in ("w_in", "w_code", "w_back") else theirs.grad
            atol = tolerance * float(expected.abs().max())
            torch.testing.assert_close(ours.grad, expected, rtol=tolerance, atol=atol, msg=f"{name} differs")


def _linear(weight: torch.Tensor, bias: torch.Tensor) -> torch.nn.Linear:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0]).to(weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    return layer


def random_case(sizes: list[int], rows: int = 50, seed: int = 0) -> tuple[Tables, np.ndarray]:
    """Return tables that are not even symmetric: only looked-up rows count."""
    rng = np.random.default_rng(seed)
    tables = [rng.random((size, size), dtype=np.float32) for size in sizes]
    return tables, np.stack([rng.integers(0, size, rows) for size in sizes], axis=1)


def string_case(rows: int = 60) -> tuple[Tables, np.ndarray]:
    """Return similarities of real strings, with missing values, and rows that repeat."""
    rng = np.random.default_rng(0)
    vocabularies = [["Husband", "Wife", "Housewife", None], ["never", "nearly never", "always", None]]
    columns = [pd.Series(rng.choice(np.array(words, dtype=object), rows)) for words in vocabularies]
    words = [Vocabulary.of_counts(CategoryCounts.of(column), (2, 4), most=99) for column in columns]
    places = [vocabulary.nearest_places(*factorise(column)) for vocabulary, column in zip(words, columns, strict=True)]
    return [vocabulary.similarities() for vocabulary in words], np.stack(places, axis=1)


def model_of(tables: Tables, dtype: torch.dtype) -> FactorisedAutoencoder:
    generator = torch.Generator().manual_seed(0)
    constants = [torch.from_numpy(table).to(dtype) for table in tables]
    model = FactorisedAutoencoder(constants, latent=3, hidden=7, generator=generator)
    with torch.no_grad():
        # Biases start at zero, which would hide a mistake in them.
        for bias in (model.b_in, model.b_code, model.b_back, model.b_out):
            bias.copy_(torch.rand(bias.shape, generator=generator) - 0.5)
    return model.to(dtype)


def dense_rows(tables: Tables, places: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    return torch.from_numpy(np.hstack([t[p] for t, p in zip(tables, places.T, strict=True)])).to(dtype)


CASES = {
    "one column": random_case([9]),
    "one category": random_case([1, 1]),
    "several columns in one block": random_case([5, 17, 3]),
    "columns over several blocks": random_case([120, 120, 120, 300, 4, 2]),
    "strings with missing values": string_case(),
}
