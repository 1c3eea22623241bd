"""Who is better, by how much, and whether the runs at hand can tell.

What belongs here: arithmetic on the tidy frame of scores that an experiment writes, one row a trained model. What does
not: training, and showing; tables and pictures of these results are in ``reports``.

The frame has the columns ``table``, ``ratio``, ``method``, ``space``, ``variant``, ``model``, ``split``, ``seed``,
``model_seed``, ``status`` and one column a metric. A *run* is one split and one condensation seed: the scores of models
trained on the same condensed rows are averaged first, because they are no independent evidence about those rows. A
*unit* is one table, ratio and model. A *contender* is a method, with its variant where it has one.
"""
