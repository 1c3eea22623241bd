"""Part ``rivals``: methods that train networks to make rows, against ours, on the same encoded rows."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from c2tc_pipeline.bench.rivals import COSTLY, make_rival
from c2tc_pipeline.bench.rivals.limits import OutOfMemory, OutOfTime
from c2tc_pipeline.bench.speed.bench import Bench, beside
from c2tc_pipeline.bench.speed.row import SpeedRow, reaches
from c2tc_pipeline.bench.speed.tables import SpeedTable
from c2tc_pipeline.condensation.condenser import Condenser

RELAYS = {"ft_transformer": "relay FT-Transformer, as in the paper", "mlp": "relay MLP"}
"""The networks through which rivals match, by their names."""

_LEAST_RATIO = 100
_PART = "rivals"


def measure_rivals(
    table: SpeedTable,
    bench: Bench,
    *,
    ratio: float = 0.001,
    names: Sequence[str] = COSTLY,
    relays: Sequence[str] = tuple(RELAYS),
    **settings: Any,
) -> Iterator[SpeedRow]:
    """Condense with ours and with each rival; a rival that takes longer than the limit is stopped.

    Parameters
    ----------
    table : SpeedTable
        The table.
    bench : Bench
        Measures.
    ratio : float
        Condensed rows as a share of the rows.
    names : sequence of str
        The rivals.
    relays : sequence of str
        The networks that each of them matches through.
    **settings
        Other parameters of every rival.
    """
    X, codes = table.encoded.X, table.encoded.codes
    ours = bench.time(partial(_condense, Condenser(ratio, device="cpu"), X, codes))
    for name, relay in itertools.product(names, relays):
        reference = f"{name.upper()}, {RELAYS[relay]}"
        bench.report(f"{_PART}, {table.spec.name}: {reference}, for {bench.time_limit:g} s or so at most")
        rival = make_rival(name, ratio=ratio, relay=relay, device="cpu", time_limit=bench.time_limit, **settings)
        timed = bench.once(partial(_condense, rival, X, codes))
        stopped = timed.value
        measured = beside(reference, timed, ours.columns())
        if isinstance(stopped, OutOfMemory):
            # How soon it knew that it would not do tells nothing.
            measured["reference_seconds"] = None
        at_least = isinstance(stopped, OutOfTime)
        took = measured["reference_seconds"]
        yield SpeedRow(
            part=_PART,
            table=table.spec.name,
            ratio=ratio,
            what="ours, encoded rows to condensed rows",
            **measured,
            at_least=at_least,
            aim=f"{_LEAST_RATIO} x",
            holds=reaches(None if took is None else took / ours.seconds, _LEAST_RATIO, at_least),
            note="" if stopped is None else str(stopped),
        )


def _condense(sampler: Any, X: np.ndarray, codes: np.ndarray) -> OutOfTime | OutOfMemory | None:
    """Condense, and return why it was not brought to an end, if so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            sampler.fit_resample(X, codes)
        except (OutOfTime, OutOfMemory) as error:
            return error
    return None
