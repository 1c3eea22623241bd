"""TabNet trains on any number of rows, and no group that is normalised together has a single row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from c2tc_pipeline.bench.networks.tabnet import SameVarianceNorm, TabNetNetwork, ghost_rows
from c2tc_pipeline.evaluation.training import Recipe, train


def small() -> TabNetNetwork:
    return TabNetNetwork(3, 2, width=4, looks=2)


@pytest.mark.parametrize("rows", [2, 3, 40, 65, 257, 500, 1025])
def test_weights_move_whatever_the_number_of_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    normalise = SameVarianceNorm.forward

    def counted(self: SameVarianceNorm, batch: torch.Tensor) -> torch.Tensor:
        seen.append(len(batch))
        return normalise(self, batch)

    monkeypatch.setattr(SameVarianceNorm, "forward", counted)
    torch.manual_seed(0)
    x = torch.rand(rows, 3)
    start: list[torch.Tensor] = []

    def build() -> torch.nn.Module:
        network = small()
        start.extend(tensor.detach().clone() for tensor in network.parameters())
        return network

    recipe = Recipe("adamw", 1e-2, 0.0, epochs=2, batch_size=64)
    trained = train(build, x, torch.arange(rows) % 2, torch.ones(rows), recipe=recipe, seed=0)
    moved = [not torch.equal(before, after) for before, after in zip(start, trained.parameters(), strict=True)]
    assert all(moved)
    assert min(seen) >= 2
    assert sum(seen) >= 2 * rows
    assert trained(x).isfinite().all()


def test_no_group_has_a_single_row() -> None:
    for rows in range(2, 40_000):
        groups = int(np.ceil(rows / ghost_rows(rows)))
        size = -(-rows // groups)
        last = rows - (-(-rows // size) - 1) * size
        assert last == rows or last >= 65


def test_the_loss_is_cross_entropy_and_the_price_of_columns() -> None:
    torch.manual_seed(0)
    network = small().eval()
    rows, classes, numbers = torch.rand(5, 3), torch.tensor([0, 1, 0, 1, 1]), torch.arange(5)
    plain = torch.nn.functional.cross_entropy(network(rows), classes, reduction="none")
    # Entropy of each look's choice of columns.
    _, masks = network.tabnet.forward_masks(rows)
    entropy = -sum((mask * (mask + 1e-15).log()).sum(dim=1).mean() for mask in masks.values()) / len(masks)
    assert entropy > 0.01
    network.sparsity = 2.0
    torch.testing.assert_close(network.row_losses(rows, classes, numbers), plain + 2 * entropy)


def test_predictions_follow_the_variance_of_training() -> None:
    """Trained on three rows to rest, the network predicts what it was trained to."""
    torch.manual_seed(0)
    rows, norm = torch.rand(3, 2), SameVarianceNorm(2, momentum=1.0)
    torch.testing.assert_close(norm(rows), norm.eval()(rows))
    torch.testing.assert_close(norm.train()(rows), torch.nn.BatchNorm1d(2)(rows))
