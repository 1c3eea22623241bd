"""K-means inside a class, block by block, here or on a cluster; equal rows merged, warm starts, cached loss curves.

What belongs here: turning rows and a number of clusters into a partition, and the loss at many numbers of clusters.
What does not: deciding how many clusters a class gets (see :mod:`c2tc_pipeline.allocation`).
"""

CURVE_VERSION = 6
"""Raise it when the same rows give another loss curve; part of the key of cached curves."""
CLUSTER_VERSION = 1
"""Raise it when the same rows and plan give other clusters."""
