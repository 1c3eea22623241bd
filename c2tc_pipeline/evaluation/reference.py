"""References to measure against: the search as the paper prints it, and the autoencoder on the dense matrix.

Both are written for faithfulness, not speed. Defects of the printed search are kept: it walks on from proposals that
were worse, and its patience counter never resets, so it ends after ``patience`` proposals.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.cluster import KMeans

from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.allocation.shares import proportional_counts


def printed_search(
    classes: Sequence[np.ndarray], budget: int, gamma: float, *, patience: int = 10, seed: int = 0
) -> tuple[float, np.ndarray, int]:
    """Run HFILS as printed: a cold k-means on all rows of the class for each new (class, k), up to 100 iterations.

    Returns
    -------
    objective : float
        The best objective found.
    counts : ndarray of int
        Its allocation.
    runs : int
        K-means runs made.
    """
    rng = np.random.default_rng(seed)
    sizes = np.array([len(rows) for rows in classes])
    upper = np.minimum(budget - (len(sizes) - 1), sizes)
    known: dict[tuple[int, int], float] = {}

    def objective(counts: np.ndarray) -> float:
        for index, k in enumerate(counts.tolist()):
            if (index, k) not in known:
                fitted = KMeans(k, n_init=1, max_iter=100, random_state=seed).fit(classes[index])
                known[index, k] = float(fitted.inertia_) / float(sizes[index]) ** gamma
        return sum(known[index, k] for index, k in enumerate(counts.tolist()))

    counts = proportional_counts(sizes, budget, upper)
    best, best_counts = objective(counts), counts
    step_limit = max(int(np.std(counts)), 1)
    moves = HfilsAllocator()
    for _ in range(patience):
        proposal = moves.propose(counts, upper, step_limit, rng)
        if proposal is None:
            break
        counts = proposal
        found = objective(counts)
        if found < best:
            best, best_counts = found, counts
            step_limit = max(int(step_limit * 0.5), 1)
    return best, best_counts, len(known)


class DenseAutoencoder(torch.nn.Module):
    """The autoencoder on the N x D matrix of similarities, as an ordinary network."""

    def __init__(self, width: int, latent: int, hidden: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(width, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, latent),
            torch.nn.Linear(latent, hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(hidden, width),
        )

    def loss(self, x: torch.Tensor) -> torch.Tensor:
        """Return the squared reconstruction error of each row."""
        return ((self.layers(x) - x) ** 2).sum(dim=1)


def dense_matrix(tables: Sequence[np.ndarray], places: np.ndarray) -> torch.Tensor:
    """Return the similarities of all rows side by side."""
    return torch.from_numpy(np.hstack([table[column] for table, column in zip(tables, places.T, strict=True)]))


def train_dense(dense: torch.Tensor, *, latent: int, hidden: int, batch_size: int) -> float:
    """Train one epoch with Adam and return the mean loss."""
    model = DenseAutoencoder(dense.shape[1], latent, hidden)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    total = 0.0
    for batch in torch.randperm(len(dense)).split(batch_size):
        loss = model.loss(dense[batch]).sum()
        optimiser.zero_grad(set_to_none=True)
        (loss / len(batch)).backward()
        optimiser.step()
        total += float(loss.detach())
    return total / len(dense)
