"""Metrics of predictions on test rows: accuracy, F1, area under the ROC curve, log-loss and Brier score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

METRICS = ("accuracy", "macro_f1")
"""Metrics of predicted classes."""
PROBABILITY_METRICS = ("auc", "log_loss", "brier")
"""Metrics of predicted probabilities; undefined for a model that predicts none."""
ALL_METRICS = (*METRICS, *PROBABILITY_METRICS)
CLASS_METRICS = ("class_precision", "class_recall", "class_f1", "class_auc")
"""Metrics of each class, one value per class."""

# The smallest probability that log-loss uses, as in scikit-learn.
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Scores:
    """Metrics of one model on the test rows; None where a metric is undefined.

    ``macro_f1`` and ``auc`` are means over the classes that have test rows. ``auc`` is one-vs-rest. ``brier`` is half
    the squared distance between the probabilities and the class, from 0 to 1. Metrics of classes are in the order
    of the classes, None for a class without test rows; the precision of a class that is never predicted is 0.
    """

    accuracy: float
    macro_f1: float
    class_precision: tuple[float | None, ...]
    class_recall: tuple[float | None, ...]
    class_f1: tuple[float | None, ...]
    auc: float | None = None
    log_loss: float | None = None
    brier: float | None = None
    class_auc: tuple[float | None, ...] = ()


def score_predictions(
    truth: np.ndarray, predicted: np.ndarray, classes: int, probabilities: np.ndarray | None = None
) -> Scores:
    """Score predicted class codes and, where given, the probability of each class.

    Codes of ``truth`` from ``classes`` on are classes that no model can know: they count as errors, and as rows of
    another class in every AUC; log-loss and Brier score leave them out.
    """
    size = max(classes, int(truth.max()) + 1, int(predicted.max()) + 1)
    rows = np.bincount(truth, minlength=size)
    found = np.bincount(truth[truth == predicted], minlength=size)
    named = np.bincount(predicted, minlength=size)
    counts = list(zip(*map(np.ndarray.tolist, (found, rows, named)), strict=True))
    precision = [(hits / called if called else 0.0) if have else None for hits, have, called in counts]
    recall = [hits / have if have else None for hits, have, _ in counts]
    # A class with rows makes rows + named positive, so that its F1 is always defined.
    f1 = [2 * hits / (have + called) if have else None for hits, have, called in counts]
    by_class = tuple(precision[:classes]), tuple(recall[:classes]), tuple(f1[:classes])
    accuracy = float(found.sum() / rows.sum())
    macro_f1 = float(np.mean([value for value in f1 if value is not None]))
    if probabilities is None:
        return Scores(accuracy, macro_f1, *by_class, class_auc=(None,) * classes)
    # Imported here because the definitions of the pipeline, which name the metrics, load without scikit-learn.
    from sklearn.metrics import roc_auc_score

    aucs = [
        float(roc_auc_score(truth == code, probabilities[:, code])) if 0 < rows[code] < len(truth) else None
        for code in range(classes)
    ]
    defined = [value for value in aucs if value is not None]
    known = truth < classes
    log_loss = brier = None
    if known.any():
        own = probabilities[np.flatnonzero(known), truth[known]]
        log_loss = float(-np.log(np.clip(own, _EPS, 1)).mean())
        squares = (probabilities[known] ** 2).sum(axis=1)
        brier = float(((squares - 2 * own + 1) / 2).mean())
    return Scores(
        accuracy,
        macro_f1,
        *by_class,
        float(np.mean(defined)) if defined else None,
        log_loss,
        brier,
        tuple(aucs),
    )
