"""Part ``autoencoder``: ten epochs of the factorised one, beside the paper's GPU and beside the dense one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from c2tc_pipeline.bench.speed.bench import Bench, Timed
from c2tc_pipeline.bench.speed.dense_autoencoder import same_task, train_dense
from c2tc_pipeline.bench.speed.row import SpeedRow, reaches
from c2tc_pipeline.bench.speed.tables import SpeedTable
from c2tc_pipeline.common.devices import Place
from c2tc_pipeline.encoding.autoencoder import AutoencoderSettings, TrainedAutoencoder, train_autoencoder
from c2tc_pipeline.encoding.strings import Vocabulary
from c2tc_pipeline.tables.categories import factorise
from c2tc_pipeline.tables.category_counts import CategoryCounts
from c2tc_pipeline.tables.roles import Role

PAPER_SECONDS: Mapping[str, float] = {"adult": 6.8, "diabetes130us": 46.3, "airlines": 98.5}
"""Ten epochs as the paper prints them."""
DENSE_TABLE = "diabetes130us"

_PAPER_GPU = "the paper's, on its GPU (A800)"
_MOST_SECONDS = {"adult": 2.0, "diabetes130us": 8.0, "airlines": 8.0}
_LEAST_RATIO = 15
_SAME_LOSS = 0.01
# Into how many parts batches are cut to add up the same gradients in other orders.
_OTHER_PARTS = (2, 4, 8)
_PART = "autoencoder"


def measure_autoencoder(
    tables: Sequence[SpeedTable], bench: Bench, *, dense_table: str = DENSE_TABLE, epochs: int = 10
) -> Iterator[SpeedRow]:
    """Train on the string columns of every table, and on one of them with the dense matrix, too.

    Parameters
    ----------
    tables : sequence of SpeedTable
        Tables with string columns.
    bench : Bench
        Measures.
    dense_table : str
        The table for the dense one, whose matrix has to fit into memory.
    epochs : int
        Passes over the rows.
    """
    for table in tables:
        name = table.spec.name
        similarities, places = string_rows(table)
        settings = AutoencoderSettings(latent=places.shape[1], epochs=epochs)
        ours = bench.time(partial(train_autoencoder, similarities, places, settings))
        limit = _MOST_SECONDS.get(name)
        yield SpeedRow(
            part=_PART,
            table=name,
            what=f"{epochs} epochs, factorised",
            **ours.columns(),
            reference=_PAPER_GPU if name in PAPER_SECONDS else "",
            reference_seconds=PAPER_SECONDS.get(name),
            amount=float(ours.value.losses[-1]),
            unit="loss",
            aim="" if limit is None else f"under {limit:g} s on two idle cores",
            holds=None if limit is None else ours.seconds < limit,
            note=_shape(similarities, places),
        )
        if name == dense_table:
            yield _against_dense(name, similarities, places, settings, ours, bench)


def string_rows(table: SpeedTable) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the similarities of each string column's categories, and the category of each cell."""
    prepared = table.prepared
    names = [name for name in prepared.X.columns if prepared.roles[name].role is Role.STRING]
    vocabularies = [Vocabulary.of_counts(CategoryCounts.of(prepared.X[name]), (2, 4), 1000) for name in names]
    cells = [v.nearest_places(*factorise(prepared.X[name])) for v, name in zip(vocabularies, names, strict=True)]
    return [vocabulary.similarities() for vocabulary in vocabularies], np.stack(cells, axis=1)


def _against_dense(
    name: str,
    similarities: Sequence[np.ndarray],
    places: np.ndarray,
    settings: AutoencoderSettings,
    ours: Timed[TrainedAutoencoder],
    bench: Bench,
) -> SpeedRow:
    bench.report(f"{_PART}, {name}: the dense one, for {bench.time_limit:g} s or so at most")
    task = same_task(similarities, places, settings)
    timed = bench.once(lambda: train_dense(task, settings, time_limit=bench.time_limit, clock=bench.clock))
    losses, at_least = timed.value.losses, not timed.value.finished
    own, final = ours.columns(), float(ours.value.losses[-1])
    times_faster = timed.seconds / ours.seconds
    fast = reaches(times_faster, _LEAST_RATIO, at_least)
    # Where the dense one was stopped, its loss is not that of a finished training, and tells nothing.
    others = [] if at_least else _in_other_orders(similarities, places, settings)
    same = None if at_least else same_loss(final, losses[-1], others)
    return SpeedRow(
        part=_PART,
        table=name,
        what=f"{settings.epochs} epochs, factorised against dense",
        **{**own, "probe_seconds": max(own["probe_seconds"], timed.probe_seconds)},
        reference="the dense one, from the same start by the same steps",
        reference_seconds=timed.seconds,
        times_faster=times_faster,
        at_least=at_least,
        amount=final,
        reference_amount=None if at_least else losses[-1],
        unit="loss",
        aim=f"{_LEAST_RATIO} x, same loss within {100 * _SAME_LOSS:g} %",
        holds=False if False in (fast, same) else (None if None in (fast, same) else True),
        note="; ".join(
            [
                f"the dense one did {len(losses)} of {settings.epochs} epochs",
                *([f"losses of the first epoch: {ours.value.losses[0]:.5g} and {losses[0]:.5g}"] if losses else []),
                *(
                    [f"ours with sums in other orders ends at {', '.join(f'{o:.4g}' for o in others)}"]
                    if others
                    else []
                ),
                _shape(similarities, places),
            ]
        ),
    )


def _in_other_orders(
    similarities: Sequence[np.ndarray], places: np.ndarray, settings: AutoencoderSettings
) -> list[float]:
    """Return the last losses of trainings that differ from ours in nothing but the order in which numbers are added."""
    return [
        float(train_autoencoder(similarities, places, settings, device=Place("cpu", parts)).losses[-1])
        for parts in _OTHER_PARTS
    ]


def same_loss(ours: float, theirs: float, others: Sequence[float]) -> bool | None:
    """Return whether two trainings end at the same loss.

    Parameters
    ----------
    ours, theirs : float
        The losses.
    others : sequence of float
        Where ours ends when numbers are added in other orders: rounding alone leads so far.

    Returns
    -------
    bool or None
        None where they are farther apart than the same loss may be, but no farther than rounding leads: training then
        does not tell them apart.

    Examples
    --------
    >>> same_loss(4.0, 4.01, []), same_loss(4.0, 4.2, [4.1]), same_loss(4.0, 4.2, [4.1, 4.3])
    (True, False, None)
    """
    if abs(ours / theirs - 1) <= _SAME_LOSS:
        return True
    return None if min(ours, *others, math.inf) <= theirs <= max(ours, *others, -math.inf) else False


def _shape(similarities: Sequence[np.ndarray], places: np.ndarray) -> str:
    width = sum(len(table) for table in similarities)
    return f"rows x similarities: {len(places):,} x {width:,}; string columns: {places.shape[1]}"
