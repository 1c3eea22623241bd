"""One condensation in an experiment: a contender, a split, a ratio and a seed, within limits and kept in the cache."""

from __future__ import annotations

import dataclasses
import inspect
import json
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from c2tc_pipeline.allocation import make_allocator
from c2tc_pipeline.allocation.hfils import HfilsAllocator
from c2tc_pipeline.bench.experiments.grid import OURS, Contender
from c2tc_pipeline.bench.experiments.limits import OK, OUT_OF_MEMORY, OUT_OF_TIME, Outcome, run_limited
from c2tc_pipeline.bench.experiments.spaces import EncodedSplit
from c2tc_pipeline.bench.rivals import make_rival
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.table import PULL, training_weights
from c2tc_pipeline.evaluation.trial import LabelledRows
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.storage.hashing import hash_json
from c2tc_pipeline.storage.parquet import open_arrays

# Part of every key: ours is raised by any change of the method that changes what it makes, that of the rivals by any
# change of theirs, so that the hours of the one do not go with the other.
_OURS_VERSION = 7
_RIVALS_VERSION = 5

# What a contender may be set to about how much its rows count; the sampler knows neither.
_WEIGHTING = ("weighted", "pull")
_HFILS_SETTINGS = tuple(inspect.signature(HfilsAllocator).parameters)


@dataclass(frozen=True)
class Condensed:
    """What a method made.

    Parameters
    ----------
    rows : LabelledRows or None
        The condensed rows, with weights where the method gives some; None unless all went well.
    status : str
        ``"ok"``, ``"OOT"``, ``"OOM"`` or ``"failed"``.
    seconds : float
        How long it took.
    objective : float or None
        What it minimised, where that is the objective of the paper.
    reason : str
        Why there are no rows.
    """

    rows: LabelledRows | None
    status: str
    seconds: float
    objective: float | None = None
    reason: str = ""


def condense_split(
    contender: Contender,
    split: EncodedSplit,
    ratio: float,
    seed: int,
    *,
    time_limit: float,
    memory_limit: float,
    alike: str = "",
    cache: ContentCache | None = None,
) -> CacheLookup[Condensed]:
    """Condense the training rows of a split, or look up what came of it before.

    A method sees the training rows; ours may also look at the validation rows, on which gamma is chosen when it is
    ``"auto"``. Nobody sees a test row. A method that ran out of time or memory is not tried again where all is
    ``alike``.

    Parameters
    ----------
    contender : Contender
        Who condenses.
    split : EncodedSplit
        The table.
    ratio : float
        Condensed rows as a share of the training rows.
    seed : int
        The method's ``random_state``.
    time_limit, memory_limit : float
        Seconds and gigabytes.
    alike : str
        What this condensation has in common with others that are as much work.
    cache : ContentCache, optional
        Where the rows are kept.
    """

    def compute() -> Condensed:
        started = time.perf_counter()
        limited = run_limited(
            lambda: _condense(contender, split, ratio, seed), seconds=time_limit, gigabytes=memory_limit
        )
        return _of_outcome(limited, time.perf_counter() - started)

    if cache is None:
        return CacheLookup(compute(), hit=False)
    version = _OURS_VERSION if contender.method == OURS else _RIVALS_VERSION
    parts = [version, contender.method, _settings(contender, ratio, seed)]
    ending = hash_json([*parts[:2], contender.settings, ratio, alike, time_limit, memory_limit])

    def compute_or_end() -> Condensed:
        known = _known(cache, ending)
        if known is not None:
            raise _Ended(dataclasses.replace(known, reason=f"{known.reason} on another split of this table"))
        made = compute()
        if made.status == OK:
            return made
        if made.status in (OUT_OF_TIME, OUT_OF_MEMORY):
            cache.fetch("endings", ending, compute=lambda: made, write=_write, read=_read)
        raise _Ended(made)

    try:
        found = cache.fetch(
            "condensed_rows", hash_json([*parts, split.seen]), compute=compute_or_end, write=_write, read=_read
        )
        if found.value.seconds > time_limit:
            # It was made under another limit.
            slow = Condensed(None, OUT_OF_TIME, found.value.seconds, reason=f"it took more than {time_limit:g} seconds")
            return CacheLookup(slow, hit=True)
        return found
    except _Ended as ended:
        return CacheLookup(ended.made, hit=False)


class _Ended(Exception):
    """A condensation gave no rows, so that there is nothing to keep under its key."""

    def __init__(self, made: Condensed) -> None:
        super().__init__()
        self.made = made


def _known(cache: ContentCache, ending: str) -> Condensed | None:
    def absent() -> Condensed:
        raise LookupError

    try:
        return cache.fetch("endings", ending, compute=absent, write=_write, read=_read).value
    except LookupError:
        return None


def make_sampler(contender: Contender, ratio: float, seed: int) -> Any:
    """Return the sampler of a contender.

    Examples
    --------
    >>> make_sampler(Contender(method="ours", settings={"decay": 0.3}), 0.01, 0).allocation.decay
    0.3
    """
    settings: dict[str, Any] = dict(contender.settings)
    if contender.method != OURS:
        return make_rival(contender.method, ratio=ratio, seed=seed, **settings)
    search = {name: settings.pop(name) for name in _HFILS_SETTINGS if name in settings}
    if search:
        settings["allocation"] = HfilsAllocator(**search)
    return Condenser(ratio, random_state=seed, **settings)


def _settings(contender: Contender, ratio: float, seed: int) -> dict[str, Any]:
    """Return all that a method is set to, defaults included, so that a changed default is another key."""
    sampler = make_sampler(_without_weighting(contender), ratio, seed)
    settings: dict[str, Any] = {**sampler.get_params(), "weighted": contender.settings.get("weighted", True)}
    if contender.method == OURS:
        allocator = make_allocator(settings["allocation"])
        pull = contender.settings.get("pull", PULL)
        settings |= {"allocation": [allocator.name, vars(allocator)], "pull": pull}
    return {name: value for name, value in settings.items() if name not in ("device", "cache_dir")}


def _without_weighting(contender: Contender) -> Contender:
    settings = {name: value for name, value in contender.settings.items() if name not in _WEIGHTING}
    return contender.model_copy(update={"settings": settings})


def _condense(contender: Contender, split: EncodedSplit, ratio: float, seed: int) -> tuple[Any, ...]:
    weighted = contender.settings.get("weighted", True)
    sampler = make_sampler(_without_weighting(contender), ratio, seed)
    known = split.known_validation
    extra = {"validation": (known.X, known.codes)} if contender.method == OURS and len(known) else {}
    with warnings.catch_warnings():
        # What a method warns about on a hundred sets tells nobody anything.
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        X, codes = sampler.fit_resample(split.train.X, split.train.codes, **extra)
        seconds = time.perf_counter() - started
    allocation = getattr(sampler, "allocation_", None)
    weights = None
    if weighted and contender.method == OURS:
        weights = training_weights(sampler.weights_, codes, float(contender.settings.get("pull", PULL)))
    elif weighted:
        weights = sampler.weights_
    return X, codes, weights, None if allocation is None else float(allocation.objective), seconds


def _of_outcome(outcome: Outcome[tuple[Any, ...]], seconds: float) -> Condensed:
    if outcome.value is None:
        return Condensed(None, outcome.status, seconds, reason=outcome.reason)
    X, codes, weights, objective, own_seconds = outcome.value
    rows = LabelledRows(
        np.ascontiguousarray(X, dtype=np.float32),
        np.asarray(codes, dtype=np.int64),
        None if weights is None else np.asarray(weights, dtype=np.float64),
    )
    return Condensed(rows, OK, own_seconds, objective)


def _write(made: Condensed, directory: Path) -> None:
    values = {name: value for name, value in asdict(made).items() if name != "rows"}
    (directory / "condensed.json").write_text(json.dumps(values), encoding="utf-8")
    if made.rows is not None:
        arrays: dict[str, Any] = {"X": made.rows.X, "codes": made.rows.codes}
        if made.rows.weights is not None:
            arrays["weights"] = made.rows.weights
        np.savez(directory / "rows.npz", **arrays)


def _read(directory: Path) -> Condensed:
    values = json.loads((directory / "condensed.json").read_text(encoding="utf-8"))
    rows = None
    if values["status"] == OK:
        with open_arrays(directory / "rows.npz") as arrays:
            rows = LabelledRows(arrays["X"], arrays["codes"], arrays.get("weights"))
    return Condensed(rows, **values)
