"""Imported once by the process from which others are forked: what every run of the pipeline imports sooner or later.

Nothing is computed: the threads of numeric libraries would be missing in a forked process.
"""

from __future__ import annotations

import importlib
import tempfile

import dagster as dg

from c2tc_pipeline.pipeline.instance import open_instance

for name in (
    "c2tc_pipeline.cli.job",
    "c2tc_pipeline.clustering.kernels",
    "c2tc_pipeline.condensation.steps",
    "c2tc_pipeline.evaluation.scores",
    "c2tc_pipeline.evaluation.models.sklearn_models",
    "c2tc_pipeline_tests.pipeline.faulty_definitions",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.pyplot",
    "pandera.pandas",
    "pyarrow.parquet",
    "s3fs",
    "sklearn.decomposition",
    "sklearn.ensemble",
):
    importlib.import_module(name)


@dg.asset
def nothing() -> None:
    """Is made once, which imports most of Dagster and of its database."""


with tempfile.TemporaryDirectory() as _home, open_instance(_home) as _instance:
    dg.materialize(
        [nothing], instance=_instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    )
