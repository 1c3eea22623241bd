"""Who is better, by how much, and whether the runs at hand can tell.

What belongs here: arithmetic on the tidy frame of scores that an experiment writes, one row a trained model. What does
not: training, and showing; tables and pictures of these results are in ``reports``.

The frame has the columns ``table``, ``ratio``, ``method``, ``space``, ``variant``, ``model``, ``split``, ``seed``,
``model_seed``, ``status`` and one column a metric. A *run* is one split and one condensation seed: the scores of models
trained on the same condensed rows are averaged first, because they are no independent evidence about those rows. A
*unit* is one table, ratio and model. A *contender* is a method, with its variant where it has one.
"""

from c2tc_pipeline.evaluation.statistics.anchors import anchored
from c2tc_pipeline.evaluation.statistics.comparisons import compare, pool
from c2tc_pipeline.evaluation.statistics.model_means import with_mean_of_models
from c2tc_pipeline.evaluation.statistics.power_law import fitted_exponent
from c2tc_pipeline.evaluation.statistics.ranks import Ranking, rank_contenders
from c2tc_pipeline.evaluation.statistics.regret import relative_regret, summarise_regret
from c2tc_pipeline.evaluation.statistics.runs import cell_scores, run_scores
from c2tc_pipeline.evaluation.statistics.significance import holm, paired_t, wilcoxon
from c2tc_pipeline.evaluation.statistics.standings import standings

__all__ = [
    "Ranking",
    "anchored",
    "cell_scores",
    "compare",
    "fitted_exponent",
    "holm",
    "paired_t",
    "pool",
    "rank_contenders",
    "relative_regret",
    "run_scores",
    "standings",
    "summarise_regret",
    "wilcoxon",
    "with_mean_of_models",
]
