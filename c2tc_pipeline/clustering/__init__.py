"""K-means inside a class, over blocks of rows: kernels (CPU, torch), engines (local, Dask), seeding, loss curves.

Deciding how many clusters each class gets belongs to :mod:`c2tc_pipeline.allocation`.
"""

CURVE_VERSION = 8
"""Raise it when the same rows give another loss curve; part of the key of cached curves."""
CLUSTER_VERSION = 3
"""Raise it when the same rows and plan give other clusters."""
