"""Part ``autoencoder``: ten epochs of the factorised autoencoder, beside the paper's GPU and a dense autoencoder.

The dense reference is an ordinary torch network of the same layers on the dense matrix of similarities: the same
distinct rows with the same weights, as many epochs of batches of the same size, and torch's Adam.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch

from c2tc_pipeline.bench.speed.measuring import Bench, SpeedRow, all_hold, beside, reaches, spread
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings, train_autoencoder

PAPER_SECONDS: Mapping[str, float] = {"adult": 6.8, "diabetes130us": 46.3, "airlines": 98.5}
"""Ten epochs as the paper prints them."""
DENSE_TABLE = "diabetes130us"

_MAX_SECONDS = {"adult": 2.0, "diabetes130us": 8.0, "airlines": 8.0}
_MIN_RATIO = 15
_LOSS_TOLERANCE = 0.01
_PART = "autoencoder"
Columns = tuple[Sequence[np.ndarray], np.ndarray]
"""Similarities of each string column's categories, and the category of each cell."""


def measure_autoencoder(
    tables: Mapping[str, Columns], bench: Bench, *, dense_table: str = DENSE_TABLE, epochs: int = 10
) -> Iterator[SpeedRow]:
    """Train on the string columns of every table, and on one whose dense matrix fits in memory with that, too."""
    for name, (similarities, categories) in tables.items():
        rows = len(np.unique(categories, axis=0))
        size = min(max(math.ceil(rows / 16), 64), 8_192)
        settings = AutoencoderSettings(latent=categories.shape[1], epochs=epochs, batch_size=size)
        ours = bench.time(partial(train_autoencoder, similarities, categories, settings))
        limit = _MAX_SECONDS.get(name)
        loss = float(ours.value.losses[-1])
        shape = (
            f"rows x similarities: {len(categories):,} x {sum(map(len, similarities)):,}; "
            f"string columns: {categories.shape[1]}"
        )
        yield SpeedRow(
            part=_PART,
            table=name,
            what=f"{epochs} epochs, factorised",
            **spread(ours.times),
            reference="the paper's, on its GPU (A800)" if name in PAPER_SECONDS else "",
            reference_seconds=PAPER_SECONDS.get(name),
            amount=loss,
            unit="loss",
            aim="" if limit is None else f"under {limit:g} s on two idle cores",
            holds=None if limit is None else ours.seconds < limit,
            note=shape,
        )
        if name != dense_table:
            continue
        bench.report(f"{_PART}, {name}: the dense one, for about {bench.time_limit:g} s at most")
        train = partial(train_dense, similarities, categories, settings)
        timed = bench.once(partial(train, time_limit=bench.time_limit, clock=bench.clock))
        losses = timed.value
        at_least = len(losses) < epochs
        ratio = timed.seconds / ours.seconds
        # A dense training that was stopped has no final loss to compare with.
        as_low = None if at_least else loss <= losses[-1] * (1 + _LOSS_TOLERANCE)
        yield SpeedRow(
            part=_PART,
            table=name,
            what=f"{epochs} epochs, factorised against dense",
            **beside("a dense autoencoder of the same layers", timed, ours),
            at_least=at_least,
            amount=loss,
            reference_amount=None if at_least else losses[-1],
            unit="loss",
            aim=f"{_MIN_RATIO} x, loss no higher by {100 * _LOSS_TOLERANCE:g} %",
            holds=all_hold([reaches(ratio, _MIN_RATIO, at_least), as_low]),
            note=f"the dense one did {len(losses)} of {epochs} epochs; {shape}",
        )


def train_dense(
    similarities: Sequence[np.ndarray],
    categories: np.ndarray,
    settings: AutoencoderSettings,
    *,
    time_limit: float = float("inf"),
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Train a dense autoencoder and return the mean loss of each epoch; no epoch begins after the time limit."""
    end = clock() + time_limit
    distinct, counts = np.unique(categories, axis=0, return_counts=True)
    rows = torch.from_numpy(np.hstack([table[c] for table, c in zip(similarities, distinct.T, strict=True)]))
    weight = torch.from_numpy((counts / counts.mean()).astype(np.float32))
    losses: list[float] = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        network = torch.nn.Sequential(
            torch.nn.Linear(rows.shape[1], settings.hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(settings.hidden, settings.latent),
            torch.nn.Linear(settings.latent, settings.hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(settings.hidden, rows.shape[1]),
        )
        optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
        while len(losses) < settings.epochs and clock() <= end:
            total = 0.0
            for batch in torch.randperm(len(rows)).split(settings.batch_size or len(rows)):
                errors = (network(rows[batch]) - rows[batch]).square().sum(dim=1) * weight[batch]
                optimiser.zero_grad()
                errors.mean().backward()
                optimiser.step()
                total += float(errors.detach().sum())
            losses.append(total / len(rows))
    return losses
