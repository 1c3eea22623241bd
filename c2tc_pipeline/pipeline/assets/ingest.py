"""From a source to a table that was looked at: ``raw_table`` and ``validated_table``."""

from datetime import timedelta

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.ledger import SOURCE_TAG
from c2tc_pipeline.pipeline.steps import AssetOptions, baseline_schema
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.fingerprint import fingerprint_size
from c2tc_pipeline.tables.schema import baseline_of, failure_sentence, fit_failures
from c2tc_pipeline.tables.table import learn_table

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
            blocks = Blocks.of_source(options.catalogue.resolve_source(step.spec))
            size = fingerprint_size(blocks.version)
            return step.result(
                blocks,
                version=blocks.digest,
                tags={SOURCE_TAG: blocks.version},
                metadata={
                    **metadata.of_blocks(blocks, step.spec.label),
                    "source": blocks.shown,
                    "source_version": blocks.version,
                    **({} if size is None else {"source_bytes": size}),
                },
            )

    @dg.asset(
        **options.of("validated_table", group=GROUP, kinds={"pandas", "parquet"}),
        partitions_def=options.partitions.datasets,
        description="The table with a role for every column, a schema for later deliveries, and a side of the split "
        "(train, validation or test) for every row.",
    )
    def validated_table(context: dg.AssetExecutionContext, raw_table: Blocks):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            # The blocking check on raw_table has done so already, unless this asset was launched alone.
            if failures := fit_failures(raw_table, step.spec, baseline_schema(step.io_manager, step.spec)):
                raise InputError(failure_sentence(failures, step.spec))
            table = learn_table(raw_table, label=step.spec.label, roles=step.spec.roles, split=step.spec.split)
            return step.result(
                table,
                metadata={
                    **metadata.of_blocks(raw_table, table.label),
                    **metadata.of_sides(table),
                    **metadata.of_notices(table.notices),
                    **metadata.same_columns(raw_table.columns, "raw_table"),
                    "roles": metadata.roles_table(table.roles),
                    "baseline": baseline_of(step.spec),
                    "source_version": step.io_manager.version_read("raw_table", step.partition) or "",
                },
            )

    return [raw_table, validated_table]
