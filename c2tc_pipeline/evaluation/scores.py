"""Scores of models trained on a condensed table, on a random sample of its size and on the whole table.

Test rows are used here for the first time. One model is trained and scored in :mod:`c2tc_pipeline.evaluation.trial`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.stages import Listener
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.evaluation.models import make_model
from c2tc_pipeline.evaluation.trial import LabelledRows, random_rows, run_trial
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.tables.kinds import plain
from c2tc_pipeline.tables.row_sample import sampled_numbers
from c2tc_pipeline.tables.table import Table, known_codes

TRAINING_SETS = ("condensed", "random", "whole")
# Rows of the whole table, and of the test rows, that are used at most.
MAX_ROWS = 2**20


def evaluate_condensed(
    condensed: CondensedTable,
    train: pd.DataFrame,
    test: pd.DataFrame,
    *,
    models: Sequence[str] = ("mlp", "boosting"),
    seeds: Sequence[int] = (0,),
    recipe: str = "default",
    weighted: bool = True,
    device: str = "auto",
    cache: ContentCache | None = None,
    listener: Listener | None = None,
) -> pd.DataFrame:
    """Train models on a condensed table, on random rows and on the whole table, and score them on test rows.

    All training sets and the test rows go through the encoder of the condensed table. The random sample is drawn anew
    for each seed, uniformly, with at least one row per class.

    Parameters
    ----------
    condensed : CondensedTable
        The table to score.
    train : DataFrame
        The rows it was condensed from, with the label; rows without a label are left out.
    test : DataFrame
        Other rows with the label, that neither encoder nor condensation have seen.
    models : sequence of str
        Names from :data:`~c2tc_pipeline.evaluation.models.MODELS`.
    seeds : sequence of int
        Each is the seed of a random sample and the ``random_state`` of a model.
    recipe : str
        How networks are trained: ``"default"`` or ``"paper"``.
    weighted : bool, default=True
        Whether condensed rows count by their ``training_weight``; in the paper they count alike.
    device : {"auto", "cpu", "cuda", "mps"}
        Where networks are trained.
    cache : ContentCache, optional
        Where scores are kept, under the hash of what determines them.
    listener : callable, optional
        Called with ("evaluate", trials done, trials in all).

    Returns
    -------
    DataFrame
        One row per trained model: ``training_set``, ``model``, ``seed``, ``rows`` (trained on), ``accuracy``,
        ``macro_f1``, ``class_f1`` (a list in the order of the classes; None for a class without test rows),
        ``fit_seconds`` (of the fit that gave the score, now or in an earlier run) and ``cache_hit``.

    Raises
    ------
    InputError
        When a model or recipe is unknown, or rows lack the label or a column.

    Examples
    --------
    >>> from c2tc_pipeline import condense
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 400)})
    >>> people["retired"] = np.where(people.age > 65, "yes", "no")
    >>> train, test = people[:300], people[300:]
    >>> small = condense(train, label="retired", rows=20)
    >>> scores = evaluate_condensed(small, train, test, models=["boosting"])
    >>> scores[["training_set", "rows"]].values.tolist()
    [['condensed', 20], ['random', 20], ['whole', 300]]
    >>> bool((scores["accuracy"] > 0.8).all())
    True
    """
    classes = np.unique(plain(condensed.y).to_numpy())
    check_models(models, seeds, recipe=recipe, device=device)
    whole = _encoded(condensed, train, classes, "training")
    if (whole.codes == len(classes)).any():
        raise InputError(
            "The training rows have a class that the condensed table lacks; give the rows that it was condensed from."
        )
    return score_rows(
        condensed,
        whole,
        _encoded(condensed, test, classes, "test"),
        models=models,
        seeds=seeds,
        recipe=recipe,
        weighted=weighted,
        device=device,
        cache=cache,
        listener=listener,
    )


def check_models(models: Sequence[str], seeds: Sequence[int], *, recipe: str, device: str) -> None:
    """Refuse unknown models and recipes before any row is encoded."""
    if not models or not seeds:
        raise InputError("There is nothing to evaluate; name at least one model and one seed.")
    for name in models:
        make_model(name, recipe=recipe, device=device)


def rows_to_score(encoder: TableEncoder, table: Table, encoded: EncodedRows) -> tuple[LabelledRows, LabelledRows]:
    """Return the training rows, already encoded, and the encoded test rows; at most a million of each, sampled."""
    places = sampled_numbers(len(encoded.X), seed=0, most=MAX_ROWS)
    codes = encoded.codes()
    if len(places) < len(codes):
        whole = LabelledRows(encoded.rows.take(places), codes[places])
    else:
        whole = LabelledRows(np.asarray(encoded.X), codes)
    test = table.positions("test")
    if not len(test):
        raise InputError("There are no test rows to evaluate on; choose a larger test share.")
    picked = test[sampled_numbers(len(test), seed=0, most=MAX_ROWS)]
    parts = []
    for block in table.rows("test", table.statistics.kept):
        own = np.flatnonzero(np.isin(block.row_ids, picked))
        parts.append(encoder.encode_rows(block.frame.take(own)))
    return whole, LabelledRows(np.vstack(parts), table.codes[picked].astype(np.int64))


def score_rows(
    condensed: CondensedTable,
    whole: LabelledRows,
    tested: LabelledRows,
    *,
    models: Sequence[str] = ("mlp", "boosting"),
    seeds: Sequence[int] = (0,),
    recipe: str = "default",
    weighted: bool = True,
    device: str = "auto",
    cache: ContentCache | None = None,
    listener: Listener | None = None,
) -> pd.DataFrame:
    """Score encoded rows; the parameters and the result are those of :func:`evaluate_condensed`."""
    check_models(models, seeds, recipe=recipe, device=device)
    classes = np.unique(plain(condensed.y).to_numpy())
    own = LabelledRows(
        np.ascontiguousarray(condensed.X.to_numpy(dtype=np.float32)),
        np.searchsorted(classes, plain(condensed.y).to_numpy()),
        condensed.training_weight.to_numpy() if weighted else None,
    )
    trials = [(kind, name, seed) for kind in TRAINING_SETS for name in models for seed in seeds]
    results = []
    for done, (kind, name, seed) in enumerate(trials):
        if listener is not None:
            listener("evaluate", done, len(trials))
        training = own if kind == "condensed" else whole if kind == "whole" else _sample(whole, len(own), seed)
        model = make_model(name, recipe=recipe, seed=seed, device=device)
        found = run_trial(model, training, tested, classes=len(classes), cache=cache)
        results.append(
            {
                "training_set": kind,
                "model": name,
                "seed": seed,
                "rows": len(training),
                "accuracy": found.value.scores.accuracy,
                "macro_f1": found.value.scores.macro_f1,
                "class_f1": list(found.value.scores.class_f1),
                "fit_seconds": found.value.fit_seconds,
                "cache_hit": found.hit,
            }
        )
    if listener is not None:
        listener("evaluate", len(trials), len(trials))
    return pd.DataFrame(results)


def _encoded(condensed: CondensedTable, frame: pd.DataFrame, classes: np.ndarray, which: str) -> LabelledRows:
    """Return the rows that have a label, encoded; an unknown class gets the code after the last."""
    rows = frame.set_axis([str(column) for column in frame.columns], axis=1)
    label = condensed.label_name
    if label not in rows.columns:
        raise InputError(f"The {which} rows lack the label column {label!r}; add it.")
    rows = rows.loc[rows[label].notna().to_numpy()]
    if rows.empty:
        raise InputError(f"None of the {which} rows has a label in column {label!r}; give some that do.")
    return LabelledRows(condensed.encoder.encode_rows(rows), known_codes(rows[label], classes))


def _sample(whole: LabelledRows, rows: int, seed: int) -> LabelledRows:
    drawn = random_rows(whole.codes, rows, seed=seed)
    return LabelledRows(whole.X[drawn], whole.codes[drawn])
