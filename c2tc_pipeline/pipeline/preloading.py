"""What is imported once, in the process from which runs and their steps are forked.

A step of a small table computes for a fraction of a second, and would import for longer than that: Dagster's databases
alone, which every step opens, are 460 modules. Nothing here is computed or opened, since threads and connections do not
survive a fork.
"""

from __future__ import annotations

# Python leaves out those that are not there, so that a name of Dagster's own that is gone costs time and no run.
PRELOADED = (
    "c2tc_pipeline.definitions",
    "c2tc_pipeline.clustering.kernels",
    "c2tc_pipeline.cli.job",
    "dagster._cli",
    "dagster._core.definitions.repository_definition.repository_data_builder",
    "dagster._core.instance.factory",
    "dagster._core.secrets.env_file",
    "dagster._core.storage.local_compute_log_manager",
    "dagster._core.storage.root",
    "dagster._core.storage.sqlite_storage",
    "dagster._core.workspace.autodiscovery",
    "dagster._utils.test.definitions",
    "fsspec.implementations.local",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandera.pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "torch",
    "upath.implementations.local",
)
"""Modules that most steps need sooner or later."""
