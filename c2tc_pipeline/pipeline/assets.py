"""The assets in five groups: each reads its settings, calls the core, and describes the result.

Computation belongs to the core, not here. Core modules are imported in the steps, so that definitions load fast.
"""

from datetime import timedelta

import dagster as dg
import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.formats import AllocationPlan, CondensedTable, EncodedRows, TableEncoder
from c2tc_pipeline.pipeline.ledger import SOURCE_TAG
from c2tc_pipeline.pipeline.steps import AssetOptions, baseline_schema
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import baseline_of, failure_sentence, fit_failures
from c2tc_pipeline.tables.table import Table, learn_described

# A table that has not changed for a week is worth a warning; after a month something is wrong.
FRESHNESS = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=7))


def all_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return every asset of the pipeline, in the order in which they are made."""
    groups = (_ingest, _encode, _condense, _evaluate, _report)
    return [asset for group in groups for asset in group(options)]


def _ingest(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that read a table, find the roles of its columns, and split its rows."""

    @dg.asset(
        **options.of("raw_table", group="ingest", kinds={"pandas", "parquet"}),
        partitions_def=options.partitions.datasets,
        freshness_policy=FRESHNESS,
        description="A table as its source delivered it. Its data version is the hash of the source's content.",
    )
    def raw_table(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            blocks = Blocks.of_source(options.catalogue.resolve_source(step.spec))
            size = version_size(blocks.version)
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
        **options.of("validated_table", group="ingest", kinds={"pandas", "parquet"}),
        partitions_def=options.partitions.datasets,
        description="The table with a role for every column, a schema for later deliveries, and a side of the split "
        "(train, validation or test) for every row.",
    )
    def validated_table(context: dg.AssetExecutionContext, raw_table: Blocks):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            # The blocking check on raw_table has done so already, unless this asset was launched alone.
            if failures := fit_failures(raw_table, step.spec, baseline_schema(step.io_manager, step.spec)):
                raise InputError(failure_sentence(failures, step.spec))
            table = learn_described(raw_table, step.spec, step.spec.split)
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


def _encode(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that fit the encoder and encode the training rows."""

    @dg.asset(
        **options.of("encoder", group="encode", kinds={"pytorch", "scikitlearn"}, gpu=True),
        partitions_def=options.partitions.datasets,
        description="The hybrid encoder (HCFE), fitted to the training rows; the autoencoder's weights are cached.",
    )
    def encoder(context: dg.AssetExecutionContext, validated_table: Table):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.steps import fit_encoder, make_encoder

        with options.step(context) as step:
            unfitted = make_encoder(step.spec, device=step.device, cache_dir=step.cache.path)
            fitted = fit_encoder(unfitted, validated_table)
            return step.result(fitted, metadata={**metadata.of_encoder(fitted), "device": step.device})

    @dg.asset(
        **options.of("encoded_table", group="encode", kinds={"numpy"}),
        partitions_def=options.partitions.datasets,
        description="The training rows as numbers in [0, 1], sorted by class, with validation rows beside them.",
    )
    def encoded_table(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext, validated_table: Table, encoder: TableEncoder
    ):
        from c2tc_pipeline.condensation.steps import encode, weigh_columns

        with options.step(context) as step:
            rows = encode(encoder, validated_table, origin=validated_table.training_digest())
            chosen = step.spec.settings
            encoded = weigh_columns(rows, encoder, chosen.column_weights, seed=chosen.seed)
            return step.result(encoded, metadata=metadata.of_encoded(encoded, encoder))

    return [encoder, encoded_table]


def _condense(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that allocate condensed rows to classes and compute them."""

    @dg.asset(
        **options.of("cluster_allocation", group="condense", kinds={"numpy", "scikitlearn"}, gpu=True),
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
            return step.result(plan, metadata={**metadata.of_plan(plan, encoded_table), **step.placement})

    @dg.asset(
        **options.of("condensed_table", group="condense", kinds={"scikitlearn", "parquet"}, gpu=True),
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
            table = assemble(
                validated_table,
                encoder,
                encoded_table,
                plan,
                clusters,
                condenser,
                name=name,
                clock=clock,
                min_category_rows=step.spec.settings.min_category_rows,
            )
            refuse_repeated(table, step.spec)
            return step.result(table, metadata={**metadata.of_condensed(table), **step.placement})

    @dg.asset(
        **options.of("training_rows", group="condense", kinds={"parquet"}),
        partitions_def=options.partitions.grid,
        description="Rows to train models on, in the columns of the source with label and weight, drawn from the "
        "condensed rows and their spread.",
        # Rows to train on do not wait for scores, which take much longer.
        op_tags={"dagster/priority": "1"},
    )
    def training_rows(context: dg.AssetExecutionContext, condensed_table: CondensedTable):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.expand import expanded_frame

        with options.step(context) as step:
            chosen = step.spec.settings
            rows = expanded_frame(condensed_table, chosen.expand_rows, random_state=chosen.seed)
            return step.result(rows, metadata=metadata.of_training_rows(rows, condensed_table))

    return [cluster_allocation, condensed_table, training_rows]


def _evaluate(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that score models on the test rows, which no earlier asset uses."""

    @dg.asset(
        **options.of("evaluation_scores", group="evaluate", kinds={"pytorch", "scikitlearn"}, gpu=True),
        partitions_def=options.partitions.grid,
        description="What models learn from the condensed rows, from random rows and from the whole table: scores on "
        "test rows, and the number of random rows that a condensed row is worth.",
    )
    def evaluation_scores(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext,
        validated_table: Table,
        encoded_table: EncodedRows,
        condensed_table: CondensedTable,
    ):
        from c2tc_pipeline.evaluation.scores import Trials, rows_to_score, score_rows

        with options.step(context) as step:
            chosen = step.spec.evaluation
            trials = Trials(chosen.models, range(chosen.seeds), recipe=chosen.recipe, device=step.device)
            scores = score_rows(
                condensed_table,
                rows_to_score(condensed_table, validated_table, encoded_table, trials),
                trials,
                cache=step.cache.cache,
                listener=step.progress,
            )
            return step.result(scores, metadata={**metadata.of_scores(scores), "device": step.device})

    @dg.asset(
        **options.of("leaderboard", group="evaluate", kinds={"pandas"}),
        ins={"evaluation_scores": dg.AssetIn(partition_mapping=dg.AllPartitionMapping())},
        description="The scores of all tables and ratios side by side.",
    )
    def leaderboard(context: dg.AssetExecutionContext, evaluation_scores: dict[str, pd.DataFrame]):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.evaluation.averages import gather_scores

        with options.step(context) as step:
            board = gather_scores(step.used(evaluation_scores))
            return step.result(board, metadata=metadata.of_leaderboard(board))

    return [evaluation_scores, leaderboard]


def _report(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the asset that writes the page of a table over all its ratios."""

    @dg.asset(
        **options.of("report", group="report", kinds={"html"}),
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
