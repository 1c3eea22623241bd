"""K-means inside a class, block by block, here or on a cluster; equal rows merged, warm starts, cached loss curves.

What belongs here: turning rows and a number of clusters into a partition, and the loss at many numbers of clusters.
What does not: deciding how many clusters a class gets (see :mod:`c2tc_pipeline.allocation`).
"""

from c2tc_pipeline.clustering.class_rows import ClassRows
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.clustering.curves import CurveSettings, MeasuredCurve, measure_curve, measure_curves
from c2tc_pipeline.clustering.engine import Engine, make_engine
from c2tc_pipeline.clustering.executor import Executor, open_executor
from c2tc_pipeline.clustering.lloyd import KMeansResult
from c2tc_pipeline.clustering.row_source import RowSource

__all__ = [
    "ClassCurve",
    "ClassRows",
    "CurveSettings",
    "Engine",
    "Executor",
    "KMeansResult",
    "MeasuredCurve",
    "RowSource",
    "make_engine",
    "measure_curve",
    "measure_curves",
    "open_executor",
]
