"""From a source to a table that was looked at: ``raw_table`` and ``validated_table``."""

from datetime import timedelta

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.ledger import SOURCE_TAG
from c2tc_pipeline.pipeline.steps import AssetOptions, baseline_schema
from c2tc_pipeline.tables.acceptance import baseline_of, refuse_unfit
from c2tc_pipeline.tables.delivery import read_delivery
from c2tc_pipeline.tables.validated import validate_table

GROUP = "ingest"
# Tables come when they come; a week in which none of them changed is worth a look, a month is not in order.
FRESHNESS = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=7))


def ingest_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that read a table and decide what its columns and rows are for."""

    @dg.asset(
        **options.of("raw_table", group=GROUP, kinds={"pandas", "parquet"}),
        partitions_def=options.partitions.datasets,
        freshness_policy=FRESHNESS,
        description="A table as its source delivered it. Its data version is the hash of the source's content.",
    )
    def raw_table(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            delivery = read_delivery(options.catalogue.resolve_source(step.spec))
            return step.result(
                delivery.frame,
                version=delivery.digest,
                tags={SOURCE_TAG: delivery.fingerprint},
                metadata={
                    **metadata.of_frame(delivery.frame),
                    "source": delivery.shown_address,
                    "source_version": delivery.fingerprint,
                    **({} if delivery.size is None else {"source_bytes": delivery.size}),
                    **metadata.of_classes(delivery.frame, step.spec.label),
                },
            )

    @dg.asset(
        **options.of("validated_table", group=GROUP, kinds={"pandas", "parquet"}),
        partitions_def=options.partitions.datasets,
        description="The table with a role for every column, a schema for later deliveries, and a side of the split "
        "(train, validation or test) for every row.",
    )
    def validated_table(context: dg.AssetExecutionContext, raw_table: pd.DataFrame):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            # The blocking check on raw_table has done so already, unless somebody launched this asset alone.
            refuse_unfit(raw_table, step.spec, baseline_schema(step.io_manager, step.spec))
            table = validate_table(raw_table, step.spec)
            return step.result(
                table,
                metadata={
                    **metadata.of_frame(table.frame),
                    **metadata.of_sides(table),
                    **metadata.of_notices(table.notices),
                    **metadata.same_columns(table.frame, "raw_table"),
                    **metadata.of_classes(table.frame, table.label),
                    "roles": metadata.roles_table(table.roles),
                    "baseline": baseline_of(step.spec),
                    "source_version": step.io_manager.version_read("raw_table", step.partition) or "",
                },
            )

    return [raw_table, validated_table]
