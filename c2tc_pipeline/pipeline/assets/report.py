"""What people read: ``report``, one page a table."""

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.steps import AssetOptions
from c2tc_pipeline.pipeline.values import CondensedTable

GROUP = "report"


def report_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the asset that writes the page of a table over all its ratios."""

    @dg.asset(
        **options.of("report", group=GROUP, kinds={"html"}),
        partitions_def=options.partitions.datasets,
        description="One self-contained page a table: pictures, allocation, scores by class, and the condensed rows.",
    )
    def report(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext,
        condensed_table: dict[str, CondensedTable],
        evaluation_scores: dict[str, pd.DataFrame],
    ):
        from c2tc_pipeline.reports.table_report import render_table_report

        with options.step(context) as step:
            tables = {ratio: table for (_, ratio), table in step.used(condensed_table).items()}
            scores = {ratio: frame for (_, ratio), frame in step.used(evaluation_scores).items()}
            page = render_table_report(step.table, tables, scores)
            return step.result(page, metadata=metadata.of_report(page, tables, scores))

    return [report]
