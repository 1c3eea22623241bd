"""The numbers that the paper prints, beside which ours are shown.

What belongs here: reading ``paper_numbers.csv``, a tidy retabulation of the results in Sijia Xu, Fan Li, Xiaoyang Wang,
Zhengyi Yang and Xuemin Lin, "C2TC: A Training-Free Framework for Efficient Tabular Data Condensation" (IEEE conference
format): its tables of overall results, architectures, allocations, modules and encodings, and the times in its text.
The file holds them as printed, scores in percent. Names are ours: the paper's own method is ``"ours"``. Its rivals ran
on label-encoded columns. Averages over architectures are left out: they follow from the rest. The sizes that it scales
over are shares of its tables; here they are shares of 1.2 million rows and of 2,000 columns.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.evaluation.averages import METRICS

FILE = "paper_numbers.csv"


def paper_numbers(experiment: str) -> pd.DataFrame:
    """Return what the paper reports in one of its experiments.

    Parameters
    ----------
    experiment : str
        ``"overall"``, ``"cross-architecture"``, ``"allocation"``, ``"modules"``, ``"encoding"``, ``"time"``,
        ``"scaling-rows"`` or ``"scaling-columns"``.

    Returns
    -------
    DataFrame
        ``experiment``, ``table``, ``ratio``, ``method``, ``space``, ``variant``, ``model``, ``metric``, ``mean``,
        ``std`` and ``status``. Scores are shares of one, times are seconds. ``std`` is NaN where the paper gives none,
        ``status`` is ``"OOT"`` or ``"OOM"`` where it says so and ``"under"`` where it gives an upper bound.

    Raises
    ------
    InputError
        When the paper has no such experiment.

    Examples
    --------
    >>> numbers = paper_numbers("overall")
    >>> adult = numbers[(numbers["table"] == "adult") & (numbers["ratio"] == 0.001) & (numbers["method"] == "ours")]
    >>> adult[["metric", "mean"]].values.tolist()
    [['accuracy', 0.815], ['macro_f1', 0.708]]
    """
    numbers = _all_numbers()
    chosen = numbers[numbers["experiment"] == experiment].reset_index(drop=True)
    if chosen.empty:
        known = ", ".join(dict.fromkeys(numbers["experiment"]))
        raise InputError(f"The paper has no numbers for experiment {experiment!r}; choose one of: {known}.")
    return chosen


@cache
def _all_numbers() -> pd.DataFrame:
    texts = ("experiment", "table", "method", "space", "variant", "model", "metric", "status")
    types = {name: str for name in texts} | {name: float for name in ("ratio", "mean", "std")}
    with files(__package__).joinpath(FILE).open(encoding="utf-8") as source:
        # An empty text is a text, an empty number is missing.
        missing = {"ratio": "", "mean": "", "std": ""}
        numbers = pd.read_csv(source, dtype=types, keep_default_na=False, na_values=missing)
    percent = numbers["metric"].isin(METRICS)
    for name in ("mean", "std"):
        # Rounded, so that 57.6 percent are 0.576 and not its neighbour.
        numbers[name] = numbers[name].where(~percent, (numbers[name] / 100).round(6))
    return numbers
