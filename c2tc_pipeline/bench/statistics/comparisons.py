"""Ours against each rival: paired over the runs of one unit, and pooled over units.

What belongs here: which runs are paired, which tests are corrected together, and the frames that result. Random splits
of one table share most of their training rows; the t-test allows for it, Wilcoxon's test has no way to. Runs on the
same split share their test rows, too, so five splits with five seeds each are less evidence than twenty-five splits.
Nor are the ratios of one table independent of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from c2tc_pipeline.bench.statistics.runs import UNIT, is_whole, runs_by_cell
from c2tc_pipeline.bench.statistics.significance import DECIMALS, holm, paired_t, smallest_wilcoxon, wilcoxon
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS

LEVEL = 0.05
TEST_TO_TRAIN = 0.1 / 0.8
"""Test rows divided by training rows, as tables are split unless they say otherwise."""
FAMILY = ("rival", "space", "metric")
"""Each rival is one question: is ours better, on any of the tables, at any of the ratios? Its tests are corrected
together, those against other rivals answer other questions."""


def compare(
    scores: pd.DataFrame,
    *,
    metrics: Sequence[str] = METRICS,
    ours: str = "ours",
    ours_space: str | None = None,
    family: Sequence[str] = FAMILY,
    test_to_train: float = TEST_TO_TRAIN,
) -> pd.DataFrame:
    """Test ours against every rival in every unit, paired over (split, condensation seed).

    Parameters
    ----------
    scores : DataFrame
        One row a trained model.
    metrics : sequence of str
        Which scores.
    ours : str
        The contender that the others are compared with: a method, ``"ours (gamma=0.5)"`` for a variant.
    ours_space : str or None
        The column space that ours is taken from; None takes that of each rival, so that only methods differ.
    family : sequence of str
        Columns of the result; the tests that agree in them are corrected together. The default corrects over tables,
        ratios and models, for each rival, space and metric.
    test_to_train : float
        Test rows divided by training rows, for the t-test of Nadeau and Bengio (2003); 0 for Student's, which takes
        splits to be independent. See :func:`~c2tc_pipeline.bench.statistics.significance.paired_t`.

    Returns
    -------
    DataFrame
        One row a unit, rival's space, rival and metric: ``pairs``, mean ``difference`` (ours less rival), ``wins``,
        ``losses``, ``t_p``, ``wilcoxon_p``, both corrected (``t_p_holm``, ``wilcoxon_p_holm``), and a ``note`` that
        says why a value is missing or can't be small.

    Raises
    ------
    InputError
        When the scores do not hold ours.

    Examples
    --------
    >>> scores = pd.DataFrame({"table": "t", "ratio": 0.1, "model": "mlp", "space": "hcfe",
    ...     "method": ["ours"] * 5 + ["random"] * 5, "variant": "", "split": [0, 1, 2, 3, 4] * 2, "seed": 0,
    ...     "model_seed": 0, "status": "ok", "accuracy": [0.9, 0.8, 0.9, 0.8, 0.9, 0.7, 0.7, 0.7, 0.7, 0.9]})
    >>> found = compare(scores, metrics=["accuracy"]).round(3)
    >>> found[["rival", "pairs", "difference", "wins", "wilcoxon_p"]].values.tolist()
    [['random', 5, 0.12, 4, 0.125]]
    """
    parts = [_compare_metric(scores, metric, ours, ours_space, test_to_train) for metric in metrics]
    found = pd.concat(parts, ignore_index=True)
    for name in ("t_p", "wilcoxon_p"):
        corrected = found.groupby(list(family), sort=False)[name].transform(lambda values: holm(values.to_numpy()))
        found[f"{name}_holm"] = corrected.astype(np.float64)
    order = ["t_p", "wilcoxon_p", "t_p_holm", "wilcoxon_p_holm", "note"]
    return found[[name for name in found.columns if name not in order] + order]


def _compare_metric(
    scores: pd.DataFrame, metric: str, ours: str, ours_space: str | None, test_to_train: float
) -> pd.DataFrame:
    cells = runs_by_cell(scores, metric)
    names = list(dict.fromkeys(key[-1] for key in cells))
    if ours not in names:
        raise InputError(f"The scores hold no method {ours!r}; choose one of: {', '.join(names)}.")
    rows: list[dict[str, Any]] = []
    for (*unit, space, rival), other in cells.items():
        if rival == ours or is_whole(rival):
            continue
        own = cells.get((*unit, space if ours_space is None else ours_space, ours))
        if own is None or not own.means or not other.means:
            differences = np.empty(0)
            note = f"no finished run: {other.ending}" if not other.means else f"{ours} has no finished run"
        else:
            paired = [own.means[run] - score for run, score in other.means.items() if run in own.means]
            differences = np.round(np.array(paired), DECIMALS)
            note = _note(differences)
        rows.append(
            {
                **dict(zip(UNIT, unit, strict=True)),
                "space": space,
                "rival": rival,
                "metric": metric,
                "pairs": len(differences),
                "difference": differences.mean() if len(differences) else np.nan,
                "wins": int((differences > 0).sum()),
                "losses": int((differences < 0).sum()),
                "t_p": paired_t(differences, test_to_train=test_to_train),
                "wilcoxon_p": wilcoxon(differences),
                "note": note,
            }
        )
    if not rows:
        raise InputError(f"The scores hold no rival of {ours!r}; run another method over the same tables.")
    return pd.DataFrame(rows)


def _note(differences: np.ndarray) -> str:
    if len(differences) < 2:
        return f"{len(differences)} pair{'' if len(differences) == 1 else 's'}: a test needs 2"
    informative = int((differences != 0).sum())
    if not informative:
        return "all differences are zero"
    notes = []
    if not np.ptp(differences):
        notes.append("all differences are the same, so t has no value")
    if smallest_wilcoxon(informative) > LEVEL:
        text = f"{smallest_wilcoxon(informative):.4f}".rstrip("0")
        notes.append(f"{informative} differences cannot get below {text} in Wilcoxon's test")
    return "; ".join(notes)


def pool(comparisons: pd.DataFrame, *, family: Sequence[str] = ("metric",)) -> pd.DataFrame:
    """Test ours against every rival over all units: each unit counts once, with its mean difference.

    Parameters
    ----------
    comparisons : DataFrame
        What :func:`compare` returned.
    family : sequence of str
        Columns of the result; the tests that agree in them are corrected together. There is one test a rival and space,
        and the default corrects over these.

    Returns
    -------
    DataFrame
        One row a space, rival and metric: ``units``, ``left_out`` (units without a pair), mean and median
        ``difference``, units won and lost, ``wilcoxon_p`` and ``wilcoxon_p_holm``.

    Examples
    --------
    >>> comparisons = pd.DataFrame({"space": "hcfe", "rival": "random", "metric": "accuracy",
    ...                             "difference": [0.1, 0.2, 0.3, float("nan")]})
    >>> pool(comparisons)[["units", "left_out", "wins", "wilcoxon_p"]].values.tolist()
    [[3.0, 1.0, 3.0, 0.25]]
    """
    rows = []
    for (space, rival, metric), part in comparisons.groupby(["space", "rival", "metric"], sort=False):
        differences = part["difference"].dropna().to_numpy()
        rows.append(
            {
                "space": space,
                "rival": rival,
                "metric": metric,
                "units": len(differences),
                "left_out": len(part) - len(differences),
                "difference": differences.mean() if len(differences) else np.nan,
                "median_difference": np.median(differences) if len(differences) else np.nan,
                "wins": int((differences > 0).sum()),
                "losses": int((differences < 0).sum()),
                "wilcoxon_p": wilcoxon(differences),
            }
        )
    found = pd.DataFrame(rows)
    corrected = found.groupby(list(family), sort=False)["wilcoxon_p"].transform(lambda values: holm(values.to_numpy()))
    return found.assign(wilcoxon_p_holm=corrected.astype(np.float64))
