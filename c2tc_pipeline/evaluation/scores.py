"""Scores of models trained on a condensed table, on random samples and on the whole table.

Test rows are used here for the first time. One model is trained and scored in :mod:`c2tc_pipeline.evaluation.trial`.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from c2tc_pipeline.common.errors import InputError, one_line
from c2tc_pipeline.common.optimisers import one_thread
from c2tc_pipeline.common.processes import side_by_side
from c2tc_pipeline.common.stages import Listener
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.expand import expand_table
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.evaluation.metrics import ALL_METRICS, CLASS_METRICS, Scores
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.row_worth import MULTIPLES, random_set
from c2tc_pipeline.evaluation.trial import HasRecipe, LabelledRows, Trial, random_rows, random_rows_by_class, run_trial
from c2tc_pipeline.storage.cache import CacheLookup, ContentCache
from c2tc_pipeline.tables.frames import as_pandas
from c2tc_pipeline.tables.kinds import plain
from c2tc_pipeline.tables.row_sample import sampled_numbers
from c2tc_pipeline.tables.table import Table, known_codes

logger = logging.getLogger(__name__)

TRAINING_SETS = ("condensed", "condensed_bare", "random", "random_same_classes", "whole")
"""Training sets of every evaluation; larger random samples, ``random_x5``, come before the whole table.

``condensed`` is what one would train on: rows drawn from the condensed table, or the condensed rows themselves for
models that gain nothing from drawn rows. ``condensed_bare`` is the condensed rows themselves for the other models.
"""
# Rows of the whole table, and of the test rows, that are used at most: encoded, and in the original columns.
MAX_ROWS = 2**20
MAX_ORIGINAL_ROWS = 2**19


@dataclass(frozen=True)
class Trials:
    """The models to train and how, the same for every training set.

    ``models`` are names from :data:`~c2tc_pipeline.evaluation.models.MODELS` or classifiers of scikit-learn's
    interface. Models that take original columns are trained on both kinds of columns.
    """

    models: Sequence[str | BaseEstimator] = ("mlp", "boosting")
    seeds: Sequence[int] = (0,)
    multiples: Sequence[float] = MULTIPLES
    recipe: str = "default"
    weighted: bool = True
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse unknown models and recipes before any row is encoded."""
        if isinstance(self.seeds, int):
            raise InputError(f"The seeds are {self.seeds!r}; give a sequence of them, as range({self.seeds!r}).")
        if not self.models or not self.seeds:
            raise InputError("There is nothing to evaluate; name at least one model and one seed.")
        for each in self.models:
            if isinstance(each, type):
                raise InputError(f"The model {each.__name__} is a class; give an instance, as {each.__name__}().")
            model = self.make(each, 0)
            if not hasattr(model, "fit") or not hasattr(model, "predict"):
                raise InputError(f"The model {each!r} is not a classifier; give one with fit and predict, or a name.")
        for multiple in self.multiples:
            if not isinstance(multiple, Real) or not 0 < multiple < math.inf:
                raise InputError(f"The multiple {multiple!r} is not a number above 0; correct it.")

    def make(self, model: str | BaseEstimator, seed: int) -> Any:
        """Return an unfitted model with a seed."""
        if isinstance(model, str):
            return make_model(model, recipe=self.recipe, seed=seed, device=self.device)
        copy = clone(model)
        return copy.set_params(random_state=seed) if "random_state" in copy.get_params() else copy

    def takes(self, model: str | BaseEstimator) -> tuple[str, ...]:
        """Return the kinds of columns that a model is trained on."""
        return ("encoded", "original") if getattr(self.make(model, 0), "takes_original", False) else ("encoded",)

    def expands(self, model: str | BaseEstimator) -> bool:
        """Return whether a model is trained on rows drawn from the condensed table."""
        return bool(getattr(self.make(model, 0), "gains_from_expansion", True))

    @property
    def uses_original(self) -> bool:
        """Whether a model is trained on original columns."""
        return any("original" in self.takes(model) for model in self.models)


Sides = dict[str, LabelledRows]
"""Rows in one kind of columns by ``"train"`` and ``"test"``; without training rows only condensed rows are scored."""


def evaluate(
    small: CondensedTable,
    test: Any,
    train: Any = None,
    *,
    models: Sequence[str | BaseEstimator] = ("mlp", "boosting"),
    seeds: Sequence[int] = (0,),
    multiples: Sequence[float] = MULTIPLES,
    recipe: str = "default",
    weighted: bool = True,
    device: str = "auto",
    cache: ContentCache | None = None,
    listener: Listener | None = None,
) -> pd.DataFrame:
    """Train models on a condensed table, on random rows and on the whole table, and score them on test rows.

    From the condensed table, models get rows drawn by :meth:`~c2tc_pipeline.CondensedTable.expand`, and beside that the
    condensed rows themselves (``condensed_bare``); the nearest neighbour gets the latter only. Encoded training sets
    and test rows go through the encoder of the condensed table. Random samples are drawn anew for each seed: uniformly,
    with at least one row per class, at several sizes; and with the class counts and class weights of the condensed
    table (``random_same_classes``).

    Parameters
    ----------
    small : CondensedTable
        The table to score.
    test : DataFrame or Table
        Rows with the label, which neither encoder nor condensation used.
    train : DataFrame or Table, optional
        The rows it was condensed from, with the label; rows without a label are left out. Without them there are no
        random samples and no scores of the whole table.
    models : sequence of str or classifier
        Names from :data:`~c2tc_pipeline.evaluation.models.MODELS`, or unfitted classifiers, which get encoded rows and
        have the name of their class.
    seeds : sequence of int
        Each is the seed of random samples and the ``random_state`` of a model.
    multiples : sequence of float
        Sizes of the random samples, in multiples of the condensed rows; those larger than the table are left out.
    recipe : str
        How networks are trained: ``"default"`` or ``"paper"``.
    weighted : bool, default=True
        Whether condensed rows count by their ``training_weight``; in the paper they count alike.
    device : {"auto", "cpu", "cuda", "mps"}
        Where networks are trained.
    cache : ContentCache, optional
        Where scores are kept, under the hash of what determines them; not those of your own classifiers.
    listener : callable, optional
        Called with ("evaluate", trials done, trials in all).

    Returns
    -------
    DataFrame
        One row per trained model: ``training_set``, ``model``, ``columns`` (``encoded`` or ``original``), ``seed``,
        ``rows`` (trained on; the condensed rows where rows are drawn from them), ``accuracy``, ``macro_f1``, ``auc``,
        ``log_loss``, ``brier`` (NaN where undefined),
        ``class_precision``, ``class_recall``, ``class_f1`` and ``class_auc`` (lists in the order of the classes; None
        for a class without test rows),
        ``fit_seconds`` (of the fit that gave the score, now or in an earlier run) and ``cache_hit``.
        :func:`~c2tc_pipeline.evaluation.row_worth.row_worth` takes it.

    Raises
    ------
    InputError
        When a model or recipe is unknown, or rows lack the label or a column.

    See Also
    --------
    row_worth : How many random rows a condensed row replaces, from these scores.
    condense : Make the table to score.

    Examples
    --------
    >>> from c2tc_pipeline import condense
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 400)})
    >>> people["retired"] = np.where(people.age > 65, "yes", "no")
    >>> train, test = people[:300], people[300:]
    >>> small = condense(train, label="retired", rows=20)
    >>> scores = evaluate(small, test, train, models=["logistic"], multiples=[1, 5])
    >>> scores["training_set"].tolist()
    ['condensed', 'condensed_bare', 'random', 'random_same_classes', 'random_x5', 'whole']
    >>> bool((scores["auc"] > 0.8).all())
    True
    """
    trials = Trials(models, seeds, multiples, recipe, weighted, device)
    test = as_pandas(test, "The test table")[0]
    train = None if train is None else as_pandas(train, "The training table")[0]
    frames = {"test": _labelled(small, test, "test")}
    if train is not None:
        frames["train"] = _labelled(small, train, "training")
        if (frames["train"].codes == len(_classes(small))).any():
            raise InputError(
                "The training rows have a class that the condensed table lacks; give the rows that it was condensed "
                "from."
            )
    for side, found in frames.items():
        _warn_about_absent_classes(small, found.codes, "test" if side == "test" else "training")
    rows = {"encoded": {"test": LabelledRows(small.encoder.encode_rows(frames["test"].X), frames["test"].codes)}}
    if train is not None:
        rows["encoded"]["train"] = _encoded_training(small, frames["train"])
    if trials.uses_original:
        features = original_features(small)
        rows["original"] = {
            side: LabelledRows(small.encoder.readings_.read(found.X[features]), found.codes)
            for side, found in frames.items()
        }
    return score_rows(small, rows, trials, cache=cache, listener=listener)


def original_features(small: CondensedTable) -> list[str]:
    """Return the source columns that the encoder uses, which models on original columns get."""
    used = set(small.encoder.feature_names_in_)
    return [name for name in small.original_rows.columns if name in used and name != small.label_name]


def rows_to_score(small: CondensedTable, table: Table, encoded: EncodedRows, trials: Trials) -> dict[str, Sides]:
    """Return the training and test rows by kind of columns; at most a million, or half of that in original columns."""
    places = sampled_numbers(len(encoded.X), seed=0, most=MAX_ROWS)
    codes = encoded.codes()
    if len(places) < len(codes):
        whole = LabelledRows(encoded.rows.take(places), codes[places])
    else:
        whole = LabelledRows(np.asarray(encoded.X), codes)
    if not len(table.positions("test")):
        raise InputError("There are no test rows to evaluate on; choose a larger test share.")
    kept = table.statistics.kept
    blocks = [
        (small.encoder.encode_rows(frame), codes) for frame, codes in _sampled_blocks(table, "test", kept, MAX_ROWS)
    ]
    test = LabelledRows(np.vstack([rows for rows, _ in blocks]), np.concatenate([codes for _, codes in blocks]))
    found = {"encoded": {"train": whole, "test": test}}
    if trials.uses_original:
        found["original"] = {}
        for side in ("train", "test"):
            parts = list(_sampled_blocks(table, side, original_features(small), MAX_ORIGINAL_ROWS))
            frame = pd.concat([part for part, _ in parts], ignore_index=True)
            found["original"][side] = LabelledRows(frame, np.concatenate([codes for _, codes in parts]))
    return found


def _sampled_blocks(
    table: Table, side: str, columns: Sequence[str], most: int
) -> Iterator[tuple[pd.DataFrame, np.ndarray]]:
    """Yield the rows of a side and their class codes, block by block; a random sample where there are more."""
    positions = table.positions(side)
    picked = positions[sampled_numbers(len(positions), seed=0, most=most)]
    for block in table.rows(side, columns):
        own = np.flatnonzero(np.isin(block.row_ids, picked))
        yield block.frame[list(columns)].take(own), block.codes[own].astype(np.int64)


def score_rows(
    small: CondensedTable,
    rows: dict[str, Sides],
    trials: Trials,
    *,
    cache: ContentCache | None = None,
    listener: Listener | None = None,
) -> pd.DataFrame:
    """Train and score on rows by kind of columns; the result is that of :func:`evaluate`.

    Each trial takes one thread; networks and other models are trained side by side.
    """
    classes = _classes(small)
    own = {columns: _bare_rows(small, columns, weighted=trials.weighted) for columns in rows}
    pending = [
        (kind, columns, model, seed)
        for kind in _training_sets(len(small), rows["encoded"].get("train"), trials.multiples)
        for columns in rows
        for seed in trials.seeds
        for model in trials.models
        if columns in trials.takes(model) and (kind != "condensed_bare" or trials.expands(model))
    ]
    names = _names(trials.models)
    ended, lock, warned = itertools.count(), Lock(), set[str]()

    def report() -> None:
        if listener is not None:
            with lock:
                listener("evaluate", next(ended), len(pending))

    def scored(places: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Run some of the pending trials one after the other."""
        expanded: dict[tuple[str, int], LabelledRows] = {}
        found = {}
        for place in places:
            kind, columns, chosen, seed = pending[place]
            training = _training_rows(kind, own[columns], rows[columns].get("train"), trials.multiples, seed)
            if kind == "condensed" and trials.expands(chosen):
                if (columns, seed) not in expanded:
                    expanded = {(columns, seed): _expanded_rows(small, columns, seed, weighted=trials.weighted)}
                training = expanded[columns, seed]
            model, test = trials.make(chosen, seed), rows[columns]["test"]
            if isinstance(chosen, str):
                name, trial = chosen, run_trial(model, training, test, classes=len(classes), cache=cache)
            else:
                name = names[id(chosen)]
                trial = _own_trial(name, model, training, test, kind, len(classes))
                if name not in warned and trial.value.scores.accuracy >= 0 and trial.value.scores.log_loss is None:
                    warned.add(name)
                    logger.warning("%s gives no probabilities: its AUC, log-loss and Brier score are undefined.", name)
            scores = trial.value.scores
            found[place] = {
                "training_set": kind,
                "model": name,
                "columns": columns,
                "seed": seed,
                "rows": len(small) if kind == "condensed" else len(training),
                **{name: getattr(scores, name) for name in ALL_METRICS},
                **{name: list(getattr(scores, name)) for name in CLASS_METRICS},
                "fit_seconds": trial.value.fit_seconds,
                "cache_hit": trial.hit,
            }
            report()
        return found

    report()
    # Networks, and perhaps the user's own models, share torch's global random generator, so they run one after another.
    lanes: dict[bool, list[int]] = {True: [], False: []}
    for place, (_, _, chosen, _) in enumerate(pending):
        lanes[not isinstance(chosen, str) or isinstance(trials.make(chosen, 0), HasRecipe)].append(place)
    results: dict[int, dict[str, Any]] = {}
    # Each trial limits the threads of its own thread; this limits those of the process.
    with one_thread():
        for found in side_by_side([partial(scored, lane) for lane in lanes.values() if lane]):
            results |= found
    frame = pd.DataFrame([results[place] for place in range(len(pending))])
    return frame.astype(dict.fromkeys(ALL_METRICS, np.float64))


def _names(models: Sequence[str | BaseEstimator]) -> dict[int, str]:
    """Return a name for each classifier of the user's, by its identity: that of its class, numbered where it recurs."""
    own = {id(model): type(model).__name__ for model in models if not isinstance(model, str)}
    counts: dict[str, int] = {}
    for key, name in own.items():
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            own[key] = f"{name} {counts[name]}"
    return own


def _bare_rows(small: CondensedTable, columns: str, *, weighted: bool) -> LabelledRows:
    """Return the condensed rows in one kind of columns."""
    X = _features(small, small.X if columns == "encoded" else small.original_rows, columns)
    weights = small.training_weight.to_numpy() if weighted else None
    return LabelledRows(X, np.searchsorted(_classes(small), plain(small.y).to_numpy()), weights)


def _expanded_rows(small: CondensedTable, columns: str, seed: int, *, weighted: bool) -> LabelledRows:
    """Return rows drawn from the condensed table in one kind of columns."""
    X, y, weight = expand_table(small, None, space=columns, random_state=seed)
    codes = np.searchsorted(_classes(small), plain(y).to_numpy())
    return LabelledRows(_features(small, X, columns), codes, weight.to_numpy() if weighted else None)


def _features(small: CondensedTable, frame: pd.DataFrame, columns: str) -> Any:
    if columns == "encoded":
        return np.ascontiguousarray(frame.to_numpy(dtype=np.float32))
    return frame[original_features(small)]


def _own_trial(
    name: str, model: Any, training: LabelledRows, test: LabelledRows, kind: str, classes: int
) -> CacheLookup[Trial]:
    """Run a trial of the user's own classifier; a failure is logged and gives undefined scores."""
    try:
        return run_trial(model, training, test, classes=classes)
    except Exception as error:
        logger.warning("%s could not be trained and tested on the %s rows: %s", name, kind, one_line(str(error)))
        absent = (None,) * classes
        undefined = Scores(float("nan"), float("nan"), absent, absent, absent, class_auc=absent)
        return CacheLookup(Trial(undefined, float("nan")), hit=False)


def _training_sets(budget: int, whole: LabelledRows | None, multiples: Sequence[float]) -> list[str]:
    """Return the names of the training sets: the random samples of the condensed size first, the whole table last."""
    if whole is None:
        return ["condensed", "condensed_bare"]
    classes = len(np.unique(whole.codes))
    fitting = [multiple for multiple in sorted({*multiples}) if classes <= round(multiple * budget) < len(whole)]
    larger = [random_set(multiple) for multiple in fitting if multiple != 1]
    return ["condensed", "condensed_bare", "random", "random_same_classes", *larger, "whole"]


def _training_rows(
    kind: str, own: LabelledRows, whole: LabelledRows | None, multiples: Sequence[float], seed: int
) -> LabelledRows:
    """Return the rows of a training set."""
    if kind in ("condensed", "condensed_bare") or whole is None:
        return own
    if kind == "whole":
        return whole
    if kind == "random_same_classes":
        counts = np.bincount(own.codes)
        drawn = random_rows_by_class(whole.codes, counts, seed=seed)
        if own.weights is None:
            return whole.take(drawn)
        by_class = np.bincount(own.codes, own.weights) / np.maximum(counts, 1)
        return whole.take(drawn, by_class[whole.codes[drawn]])
    multiple = next(multiple for multiple in (1, *multiples) if random_set(multiple) == kind)
    return whole.take(random_rows(whole.codes, round(multiple * len(own)), seed=seed))


def _classes(small: CondensedTable) -> np.ndarray:
    return np.unique(plain(small.y).to_numpy())


def _labelled(small: CondensedTable, frame: pd.DataFrame, which: str) -> LabelledRows:
    """Return the labelled rows with their positions as index; an unknown class gets the code after the last."""
    rows = frame.set_axis([str(column) for column in frame.columns], axis=1).reset_index(drop=True)
    label = small.label_name
    if label not in rows.columns:
        raise InputError(f"The {which} rows lack the label column {label!r}; add it.")
    rows = rows.loc[rows[label].notna().to_numpy()]
    if rows.empty:
        raise InputError(f"None of the {which} rows has a label in column {label!r}; give some that do.")
    codes = known_codes(rows[label], _classes(small))
    if (codes == len(_classes(small))).all():
        raise InputError(
            f"No label of the {which} rows is a class of the condensed table, as {str(rows[label].iloc[0])!r} is none; "
            "check the values and the type of the label."
        )
    return LabelledRows(rows, codes)


def _warn_about_absent_classes(small: CondensedTable, codes: np.ndarray, which: str) -> None:
    absent = np.setdiff1d(np.arange(len(_classes(small))), codes)
    if len(absent):
        logger.warning(
            "The %s rows have no row of class %r%s: %s.",
            which,
            str(_classes(small)[absent[0]]),
            f" and of {len(absent) - 1} more" if len(absent) > 1 else "",
            "macro-F1 and AUC leave it out" if which == "test" else "models trained on them can't predict it",
        )


def _encoded_training(small: CondensedTable, labelled: LabelledRows) -> LabelledRows:
    """Return training rows encoded as when they were condensed: out of fold, by their positions in the source."""
    labels, positions = _classes(small)[labelled.codes], labelled.X.index.to_numpy()
    return LabelledRows(small.encoder.encode_training(labelled.X, labels, row_ids=positions), labelled.codes)
