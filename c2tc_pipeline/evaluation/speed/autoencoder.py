"""Part ``autoencoder``: ten epochs of the factorised one, beside the paper's GPU and beside the dense one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from c2tc_pipeline.encoding.autoencoder_training import (
    LEAST_STEPS,
    AutoencoderSettings,
    TrainedAutoencoder,
    default_batch_size,
    train_autoencoder,
)
from c2tc_pipeline.encoding.categories import factorise
from c2tc_pipeline.encoding.look_ups import distinct_rows
from c2tc_pipeline.encoding.vocabulary import Vocabulary
from c2tc_pipeline.evaluation.speed.bench import Bench, Timed
from c2tc_pipeline.evaluation.speed.dense_autoencoder import dense_matrix, same_start, train_dense
from c2tc_pipeline.evaluation.speed.row import SpeedRow, reaches
from c2tc_pipeline.evaluation.speed.tables import SpeedTable
from c2tc_pipeline.tables import Role

PAPER_SECONDS: Mapping[str, float] = {"adult": 6.8, "diabetes130us": 46.3, "airlines": 98.5}
"""Ten epochs as the paper prints them."""
DENSE_TABLE = "diabetes130us"

_PAPER_GPU = "the paper's, on its GPU (A800)"
_MOST_SECONDS = {"adult": 2.0, "diabetes130us": 8.0, "airlines": 8.0}
_LEAST_RATIO = 15
_SAME_LOSS = 0.01
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
    vocabularies = [Vocabulary.of_column(prepared.X[name], (2, 4), 1000) for name in names]
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
    dense, start = dense_matrix(similarities, places), same_start(similarities, places, settings)
    distinct = len(distinct_rows(places)[0])
    batches = math.ceil(distinct / default_batch_size(distinct))
    # A table with few distinct rows is passed over several times an epoch.
    steps = batches * max(1, LEAST_STEPS // batches)
    timed = bench.once(
        lambda: train_dense(
            start,
            dense,
            settings,
            batch_size=math.ceil(len(places) / steps),
            time_limit=bench.time_limit,
            clock=bench.clock,
        )
    )
    losses, at_least = timed.value.losses, not timed.value.finished
    own = ours.columns()
    times_faster = timed.seconds / ours.seconds
    fast = reaches(times_faster, _LEAST_RATIO, at_least)
    # Where the dense one was stopped, its loss is not that of a finished training, and tells nothing.
    same = None if at_least else abs(ours.value.losses[-1] / losses[-1] - 1) <= _SAME_LOSS
    return SpeedRow(
        part=_PART,
        table=name,
        what=f"{settings.epochs} epochs, factorised against dense",
        **{**own, "probe_seconds": max(own["probe_seconds"], timed.probe_seconds)},
        reference="the dense one, from the same start with as many steps",
        reference_seconds=timed.seconds,
        times_faster=times_faster,
        at_least=at_least,
        amount=float(ours.value.losses[-1]),
        reference_amount=None if at_least else losses[-1],
        unit="loss",
        aim=f"{_LEAST_RATIO} x, same loss within {100 * _SAME_LOSS:g} %",
        holds=False if False in (fast, same) else (None if None in (fast, same) else True),
        note=f"the dense one did {len(losses)} of {settings.epochs} epochs; {_shape(similarities, places)}",
    )


def _shape(similarities: Sequence[np.ndarray], places: np.ndarray) -> str:
    width = sum(len(table) for table in similarities)
    return f"rows x similarities: {len(places):,} x {width:,}; string columns: {places.shape[1]}"
