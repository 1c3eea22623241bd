"""Exact nearest rows by blocks: a full table of distances is never held."""

from __future__ import annotations

import torch

# Distances held at a time: 64 MB of float32.
_BLOCK_DISTANCES = 1 << 24


def nearest_keys(
    queries: torch.Tensor, keys: torch.Tensor, count: int, *, left_out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the numbers of the nearest keys of each query, the nearest first.

    Parameters
    ----------
    queries : tensor of shape (n, d)
        What to find neighbours of.
    keys : tensor of shape (m, d)
        Among what to find them.
    count : int
        How many; less than m where something is left out, else at most m.
    left_out : tensor of int64 of shape (n,), optional
        A key for each query that is no neighbour of it, or -1.

    Returns
    -------
    tensor of int64 of shape (n, count)
        Numbers of keys.

    Examples
    --------
    >>> points = torch.tensor([[0.0], [1.0], [3.0]])
    >>> nearest_keys(points, points, 1, left_out=torch.arange(3)).tolist()
    [[1], [0], [1]]
    """
    sizes = keys.square().sum(dim=1)
    found = []
    for block in torch.arange(len(queries), device=queries.device).split(max(1, _BLOCK_DISTANCES // len(keys))):
        # The query's own size is the same for all keys and decides nothing.
        distances = torch.addmm(sizes, queries[block], keys.T, alpha=-2)
        if left_out is not None:
            without = (left_out[block] >= 0).nonzero()[:, 0]
            distances[without, left_out[block][without]] = torch.inf
        found.append(distances.topk(count, dim=1, largest=False).indices)
    return torch.cat(found)
