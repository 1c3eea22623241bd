"""TabR: a row is judged together with the training rows that are most like it."""

from __future__ import annotations

import torch

from c2tc_pipeline.bench.networks.nearest import nearest_keys

# Rows that look at their neighbours at once when the network predicts.
_BLOCK_ROWS = 1_024


class TabrNetwork(torch.nn.Module):
    """TabR-S of Gorishniy et al. 2023: a linear encoder, attention over nearest rows, one block of prediction.

    A row is encoded, its key is compared with the keys of the training rows, and the nearest of them add their labels
    and their differences in key space to it, by the softmax of minus the squared distance. Neighbours are exact, of the
    keys as they are at that step. A training row is never its own neighbour; one that equals it may be.

    The value of a neighbour, W y + T2 relu(T1 (k - k')) for its label y and its key k', is computed for whole rows as
    far as it is linear, which leaves one subtraction and one rectifier for each pair. It is the same sum.

    Not here, of the paper's: dropout, embeddings of numbers, and a hidden layer twice as wide for differences.

    Parameters
    ----------
    features, classes : int
        Numbers a row that go in and come out.
    width : int, default=64
        Numbers that a row is encoded in.
    context : int, default=96
        Neighbours of a row; at most a quarter of the training rows, or two, and never the row itself.
    most_candidates : int, default=12000
        Training rows among which neighbours are looked for. If there are more, so many are drawn by lot, as every step
        encodes all of them.

    Examples
    --------
    >>> network = TabrNetwork(1, 2)
    >>> network.see(torch.tensor([[0.0], [1.0]]), torch.tensor([0, 1]), torch.ones(2))
    >>> network(torch.zeros(5, 1)).shape
    torch.Size([5, 2])
    """

    candidates: torch.Tensor
    candidate_classes: torch.Tensor
    candidate_of_row: torch.Tensor

    def __init__(
        self, features: int, classes: int, *, width: int = 64, context: int = 96, most_candidates: int = 12_000
    ) -> None:
        super().__init__()
        self.context = context
        self.most_candidates = most_candidates
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
        """Keep the training rows to look neighbours up among."""
        numbers = torch.arange(len(rows))
        if len(rows) > self.most_candidates:
            numbers = torch.randperm(len(rows))[: self.most_candidates].sort().values
        numbers = numbers.to(rows.device)
        self.candidates, self.candidate_classes = rows[numbers], classes[numbers]
        self.candidate_of_row = torch.full((len(rows),), -1, device=rows.device)
        self.candidate_of_row[numbers] = torch.arange(len(numbers), device=rows.device)
        # The only row of a class never meets its own label while training, and would be misled when it predicts.
        alone = torch.bincount(classes, minlength=self.label_values.num_embeddings) < 2
        self.label_values.weight.data[alone] = 0.0

    def row_losses(self, rows: torch.Tensor, classes: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Return the cross-entropy of each row, judged by the others."""
        own = self.candidate_of_row[numbers.to(rows.device)]
        with torch.no_grad():
            keys = self.key(self.encoder(self.candidates))
        return torch.nn.functional.cross_entropy(self._outputs(rows, keys, own), classes, reduction="none")

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return one number a class for each row, which is taken to be none of the training rows."""
        with torch.no_grad():
            keys = self.key(self.encoder(self.candidates))
        return torch.cat([self._outputs(block, keys, None) for block in rows.split(_BLOCK_ROWS)])

    def neighbours(self, rows: torch.Tensor, keys: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        """Return the numbers of the candidates nearest to each row, without the row's own."""
        # Were the context all other rows, the label that it lacks would give away a row's own while it is trained on.
        count = min(self.context, max(2, len(keys) // 4), len(keys) - 1)
        with torch.no_grad():
            return nearest_keys(self.key(self.encoder(rows)), keys, count, left_out=own)

    def _outputs(self, rows: torch.Tensor, keys: torch.Tensor, own: torch.Tensor | None) -> torch.Tensor:
        # Candidates that are nobody's neighbours need no gradient.
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
