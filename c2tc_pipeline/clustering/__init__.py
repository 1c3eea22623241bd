"""K-means inside a class: one engine interface, equal rows merged, warm starts, and loss curves with their cache.

What belongs here: turning rows and a number of clusters into a partition, and the loss at many numbers of clusters.
What does not: deciding how many clusters a class gets (see :mod:`c2tc_pipeline.allocation`).
"""

from c2tc_pipeline.clustering.class_rows import ClassRows
from c2tc_pipeline.clustering.curve import ClassCurve
from c2tc_pipeline.clustering.curves import CurveSettings, MeasuredCurve, measure_curve, measure_curves
from c2tc_pipeline.clustering.engine import Engine, KMeansResult, make_engine

__all__ = [
    "ClassCurve",
    "ClassRows",
    "CurveSettings",
    "Engine",
    "KMeansResult",
    "MeasuredCurve",
    "make_engine",
    "measure_curve",
    "measure_curves",
]
