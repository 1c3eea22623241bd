"""From encoded rows to a few: ``cluster_allocation`` and ``condensed_table``."""

import dagster as dg
import numpy as np

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.steps import AssetOptions
from c2tc_pipeline.pipeline.values import AllocationPlan, EncodedRows, TableEncoder
from c2tc_pipeline.tables.table import Table

GROUP = "condense"


def condense_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that share out the condensed rows and make them."""

    @dg.asset(
        **options.of("cluster_allocation", group=GROUP, kinds={"numpy", "scikitlearn"}, gpu=True),
        partitions_def=options.partitions.grid,
        description="How many condensed rows each class gets (HFILS, or another allocator), over its loss curves.",
    )
    def cluster_allocation(context: dg.AssetExecutionContext, encoded_table: EncodedRows):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.stages import StageClock
        from c2tc_pipeline.condensation.steps import make_condenser

        with options.step(context) as step:
            condenser = make_condenser(step.spec, step.ratio, device=step.clustering_device, cache_dir=step.cache.path)
            condenser.check_classes(encoded_table.classes, np.diff(encoded_table.edges))
            plan = condenser.plan(encoded_table, clock=StageClock(step.progress))
            return step.result(
                plan,
                metadata={
                    **metadata.of_plan(plan, encoded_table),
                    "device": step.clustering_device,
                    "engine": step.spec.settings.engine,
                },
            )

    @dg.asset(
        **options.of("condensed_table", group=GROUP, kinds={"scikitlearn", "parquet"}, gpu=True),
        partitions_def=options.partitions.grid,
        description="The condensed rows: encoded, with label and weight; the source rows behind each; the same "
        "rows in the columns of the source.",
    )
    def condensed_table(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext,
        validated_table: Table,
        encoder: TableEncoder,
        encoded_table: EncodedRows,
        cluster_allocation: AllocationPlan,
    ):
        from c2tc_pipeline.condensation.stages import StageClock
        from c2tc_pipeline.condensation.steps import assemble, make_condenser, refuse_repeated

        with options.step(context) as step:
            clock = StageClock(step.progress)
            condenser = make_condenser(step.spec, step.ratio, device=step.clustering_device)
            clusters = condenser.cluster(encoded_table, cluster_allocation, clock=clock)
            plan, name = cluster_allocation, step.spec.name
            table = assemble(validated_table, encoder, encoded_table, plan, clusters, condenser, name=name, clock=clock)
            refuse_repeated(table, step.spec)
            return step.result(
                table,
                metadata={
                    **metadata.of_condensed(table),
                    "device": step.clustering_device,
                    "engine": step.spec.settings.engine,
                },
            )

    return [cluster_allocation, condensed_table]
