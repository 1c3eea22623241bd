"""The assets, one thin file a group: read settings, call the core, say what came out.

What computes belongs in the core; an asset that does is in the wrong room.
"""

from __future__ import annotations

import dagster as dg

from c2tc_pipeline.pipeline.assets.condense import condense_assets
from c2tc_pipeline.pipeline.assets.encode import encode_assets
from c2tc_pipeline.pipeline.assets.evaluate import evaluate_assets
from c2tc_pipeline.pipeline.assets.ingest import ingest_assets
from c2tc_pipeline.pipeline.assets.report import report_assets
from c2tc_pipeline.pipeline.steps import AssetOptions


def all_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return every asset of the pipeline, in the order in which they are made."""
    return [
        *ingest_assets(options),
        *encode_assets(options),
        *condense_assets(options),
        *evaluate_assets(options),
        *report_assets(options),
    ]
