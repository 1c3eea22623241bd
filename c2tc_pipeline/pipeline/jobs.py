"""The jobs: which assets run together, for one partition of one kind.

A run has one partition key, so what is divided by table and what is divided by table and ratio are separate jobs; how
they are divided Dagster takes from their assets. When they run is decided in
:mod:`c2tc_pipeline.pipeline.schedules` and :mod:`c2tc_pipeline.pipeline.sensors`.
"""

from __future__ import annotations

import dagster as dg

# The assets of each job, parents first.
INGEST = ("raw_table", "validated_table", "encoder", "encoded_table")
CONDENSE = ("cluster_allocation", "condensed_table", "evaluation_scores")
REPORT = ("report",)
LEADERBOARD = ("leaderboard",)

ingest_job = dg.define_asset_job(
    "ingest_job",
    dg.AssetSelection.assets(*INGEST),
    description="Read, check, split and encode one table.",
)
condense_job = dg.define_asset_job(
    "condense_job",
    dg.AssetSelection.assets(*CONDENSE),
    description="Condense one table to one ratio, and score models trained on what is left.",
)
report_job = dg.define_asset_job(
    "report_job",
    dg.AssetSelection.assets(*REPORT),
    description="Write the page of one table, over all its ratios.",
)
leaderboard_job = dg.define_asset_job(
    "leaderboard_job",
    dg.AssetSelection.assets(*LEADERBOARD),
    description="Compare the scores of all tables and ratios.",
)
JOBS = (ingest_job, condense_job, report_job, leaderboard_job)
