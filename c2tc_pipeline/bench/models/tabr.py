"""TabR-S (Gorishniy et al. 2023): attention over the nearest training rows in a learnt space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from c2tc_pipeline.evaluation.models.network import NetworkClassifier
from c2tc_pipeline.evaluation.training import Recipe

# Rows whose neighbours are looked up at once in prediction, and distances held at a time: 64 MB of float32.
_BLOCK_ROWS = 1_024
_BLOCK_DISTANCES = 1 << 24


@dataclass(kw_only=True, eq=False, repr=False)
class TabrClassifier(NetworkClassifier):
    """TabR, reimplemented. Weights count in the loss, not among neighbours.

    Examples
    --------
    >>> short = Recipe("adamw", 0.006, 0.0, epochs=40, batch_size=256)
    >>> model = TabrClassifier(width=8, recipe=short).fit([[0.0], [0.2], [1.0]], ["no", "no", "yes"])
    >>> model.predict([[0.1], [0.9]]).tolist()
    ['no', 'yes']
    """

    width: int = 64
    context: int = 96
    max_candidates: int = 12_000
    recipe: str | Recipe = "default"
    device: str = "auto"
    random_state: int | np.random.RandomState | None = 0

    def build(self, features: int, classes: int) -> torch.nn.Module:
        return TabrNetwork(
            features, classes, width=self.width, context=self.context, max_candidates=self.max_candidates
        )


class TabrNetwork(torch.nn.Module):
    """A linear encoder, attention over the nearest candidates, and one prediction block.

    Neighbours are exact, of the keys as they are at that step. A training row is never its own neighbour; an equal one
    may be. The value of a neighbour, W y + T2 relu(T1 (k - k')) for its label y and its key k', is computed for whole
    rows as far as it is linear, which leaves one subtraction and one rectifier for each pair.

    There are ``context`` neighbours, at most a quarter of the training rows, or two. They come from a random sample of
    ``max_candidates`` training rows, because each step encodes all candidates. Left out: dropout, embeddings of
    numbers, and a hidden layer twice as wide for differences.
    """

    candidates: torch.Tensor
    candidate_classes: torch.Tensor
    candidate_of_row: torch.Tensor

    def __init__(
        self, features: int, classes: int, *, width: int = 64, context: int = 96, max_candidates: int = 12_000
    ) -> None:
        super().__init__()
        self.context = context
        self.max_candidates = max_candidates
        self.encoder = torch.nn.Linear(features, width)
        self.key = torch.nn.Linear(width, width)
        self.label_values = torch.nn.Embedding(classes, width)
        torch.nn.init.uniform_(self.label_values.weight, -1.0, 1.0)
        self.difference_in = torch.nn.Linear(width, width)
        self.difference_out = torch.nn.Linear(width, width, bias=False)
        self.block = torch.nn.Sequential(
            torch.nn.LayerNorm(width),
            torch.nn.Linear(width, 2 * width),
            torch.nn.ReLU(),
            torch.nn.Linear(2 * width, width),
        )
        self.head = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.ReLU(), torch.nn.Linear(width, classes))
        for name, empty in (
            ("candidates", torch.zeros(0, features)),
            ("candidate_classes", torch.zeros(0, dtype=torch.long)),
            ("candidate_of_row", torch.zeros(0, dtype=torch.long)),
        ):
            # Not among what is kept of the best weights: they do not change.
            self.register_buffer(name, empty, persistent=False)

    def see(self, rows: torch.Tensor, classes: torch.Tensor, weights: torch.Tensor) -> None:
        """Keep the candidates among the training rows."""
        numbers = torch.arange(len(rows))
        if len(rows) > self.max_candidates:
            numbers = torch.randperm(len(rows))[: self.max_candidates].sort().values
        numbers = numbers.to(rows.device)
        self.candidates, self.candidate_classes = rows[numbers], classes[numbers]
        self.candidate_of_row = torch.full((len(rows),), -1, device=rows.device)
        self.candidate_of_row[numbers] = torch.arange(len(numbers), device=rows.device)
        # The only row of a class never meets its own label while training, and would be misled when it predicts.
        alone = torch.bincount(classes, minlength=self.label_values.num_embeddings) < 2
        self.label_values.weight.data[alone] = 0.0

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row, predicted from the other rows."""
        own = self.candidate_of_row[numbers.to(rows.device)]
        with torch.no_grad():
            keys = self.key(self.encoder(self.candidates))
        return torch.nn.functional.cross_entropy(self._outputs(rows, keys, own), classes, reduction="none")

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            keys = self.key(self.encoder(self.candidates))
        return torch.cat([self._outputs(block, keys, None) for block in rows.split(_BLOCK_ROWS)])

    def neighbours(self, rows: torch.Tensor, keys: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        """Return the indices of the candidates nearest to each row, without the row itself."""
        # Were the context all other rows, the label that it lacks would give away a row's own while it is trained on.
        count = min(self.context, max(2, len(keys) // 4), len(keys) - 1)
        with torch.no_grad():
            return nearest_keys(self.key(self.encoder(rows)), keys, count, excluded=own)

    def _outputs(self, rows: torch.Tensor, keys: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        # Candidates that are no row's neighbours need no gradient.
        used, places = self.neighbours(rows, keys, own).unique(return_inverse=True)
        encoded = self.encoder(rows)
        if len(used):
            encoded = encoded + self._context(self.key(encoded), used, places)
        return torch.as_tensor(self.head(encoded + self.block(encoded)))

    def _context(self, queries: torch.Tensor, used: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        keys = self.key(self.encoder(self.candidates[used]))
        # Minus the squared distance, less the part that is the same for all neighbours of a row.
        likeness = torch.addmm(-keys.square().sum(dim=1), queries, keys.T, alpha=2)
        shares = likeness.gather(1, places).softmax(dim=1)
        first = self.difference_in.weight
        ahead = torch.nn.functional.linear(queries, first, self.difference_in.bias)
        # An embedding's backward pass is several times as fast as that of an index.
        behind = torch.nn.functional.embedding(places, torch.nn.functional.linear(keys, first))
        differences = (ahead[:, None] - behind).relu_()
        found = self.candidate_classes[used][places]
        labels = torch.zeros(len(queries), self.label_values.num_embeddings, device=queries.device)
        labels = labels.scatter_add(1, found, shares) @ self.label_values.weight
        return torch.as_tensor(labels + self.difference_out((shares[:, None] @ differences)[:, 0]))


def nearest_keys(
    queries: torch.Tensor, keys: torch.Tensor, count: int, *, excluded: torch.Tensor | None = None
) -> torch.Tensor:
    """Return the indices of the nearest keys of each query, nearest first, by blocks of queries.

    ``excluded`` has one key for each query that is no neighbour of it, or -1.
    """
    norms = keys.square().sum(dim=1)
    found = []
    for block in torch.arange(len(queries), device=queries.device).split(max(1, _BLOCK_DISTANCES // len(keys))):
        # The query's own norm is the same for all keys and decides nothing.
        distances = torch.addmm(norms, queries[block], keys.T, alpha=-2)
        if excluded is not None:
            without = (excluded[block] >= 0).nonzero()[:, 0]
            distances[without, excluded[block][without]] = torch.inf
        found.append(distances.topk(count, dim=1, largest=False).indices)
    return torch.cat(found)
