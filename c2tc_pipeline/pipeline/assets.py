"""The assets, made for each table of the catalogue: each reads its settings, calls the core, and describes the result.

Computation belongs to the core, not here. Core modules are imported in the steps, so that definitions load fast.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dagster as dg
import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline import checks, metadata
from c2tc_pipeline.pipeline.formats import AllocationPlan, CondensedTable, EncodedRows, TableEncoder
from c2tc_pipeline.pipeline.records import REFUSED_TAG, SOURCE_TAG
from c2tc_pipeline.pipeline.steps import EVALUATION_POOL, GPU_POOL, AssetOptions, baseline_schema
from c2tc_pipeline.pipeline.versioning import LEADERBOARD, OVERVIEW, TableStep
from c2tc_pipeline.sources.source import version_size
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import baseline_of, failure_sentence, fit_failures, unfit
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import Table, learn_described

Make = Callable[[AssetOptions, TableStep], dg.AssetsDefinition]


def all_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return every asset of the pipeline, in the order in which they are made."""
    tables = [asset for spec in options.catalogue.values() for asset in _table_assets(options, spec)]
    return [*tables, _leaderboard(options, TableStep("", LEADERBOARD)), _overview(options, TableStep("", OVERVIEW))]


def _table_assets(options: AssetOptions, spec: TableSpec) -> list[dg.AssetsDefinition]:
    once: dict[str, Make] = {
        "raw_table": _raw_table,
        "validated_table": _validated_table,
        "encoder": _encoder,
        "encoded_table": _encoded_table,
        "report": _report,
    }
    at_each_ratio: dict[str, Make] = {
        "cluster_allocation": _cluster_allocation,
        "condensed_table": _condensed_table,
        "training_rows": _training_rows,
        "evaluation_scores": _evaluation_scores,
    }
    return [
        *(make(options, TableStep(spec.name, name)) for name, make in once.items()),
        *(
            make(options, TableStep(spec.name, name, each))
            for each in spec.ratios
            for name, make in at_each_ratio.items()
        ),
    ]


def _raw_table(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"pandas", "parquet"}, checks=checks.OF_RAW_TABLE),
        description="The table as its source delivered it. Its data version is the hash of the source's content.",
    )
    def raw_table(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            blocks = Blocks.of_source(options.catalogue.resolve_source(step.spec))
            size = version_size(blocks.version)
            failures = unfit(blocks, step.spec, baseline_schema(step.io_manager, step.spec))
            described = metadata.of_blocks(blocks, step.spec.label)
            return step.result(
                blocks,
                version=blocks.digest,
                tags={SOURCE_TAG: blocks.version, **({REFUSED_TAG: "true"} if failures else {})},
                metadata={
                    **described,
                    "source": blocks.shown,
                    "source_version": blocks.version,
                    **({} if size is None else {"source_bytes": size}),
                },
                checks=[
                    checks.fits_schema(failures, step.spec),
                    checks.label_drift(context.instance, step.spec, blocks.digest, described),
                ],
            )

    return raw_table


def _validated_table(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    freshness = None
    if (hours := options.catalogue[of.table].fresh_hours) is not None:
        freshness = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))

    @dg.asset(
        **options.of(of, kinds={"pandas", "parquet"}),
        freshness_policy=freshness,
        description="The table with a role for every column, a schema for later deliveries, and a side of the split "
        "(train, validation or test) for every row. A delivery that does not fit the schema is refused here.",
    )
    def validated_table(context: dg.AssetExecutionContext, raw_table: Blocks):  # type: ignore[no-untyped-def]
        with options.step(context) as step:
            if failures := fit_failures(raw_table, step.spec, baseline_schema(step.io_manager, step.spec)):
                raise InputError(failure_sentence(failures, step.spec))
            table = learn_described(raw_table, step.spec, step.spec.split)
            return step.result(
                table,
                metadata={
                    **metadata.of_blocks(raw_table, table.label),
                    **metadata.of_sides(table),
                    **metadata.of_notices(table.notices),
                    **metadata.same_columns(raw_table.columns, TableStep(of.table, "raw_table")),
                    "roles": metadata.roles_table(table.roles),
                    "baseline": baseline_of(step.spec),
                    "source_version": step.io_manager.version_read("raw_table", of.scope) or "",
                },
            )

    return validated_table


def _encoder(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"pytorch", "scikitlearn"}, pool=GPU_POOL),
        description="The hybrid encoder (HCFE), fitted to the training rows; the autoencoder's weights are cached.",
    )
    def encoder(context: dg.AssetExecutionContext, validated_table: Table):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.steps import fit_encoder, make_encoder

        with options.step(context) as step:
            unfitted = make_encoder(step.spec, device=step.device, cache_dir=step.cache.path)
            fitted = fit_encoder(unfitted, validated_table)
            return step.result(fitted, metadata={**metadata.of_encoder(fitted), "device": step.device})

    return encoder


def _encoded_table(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"numpy"}),
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
            return step.result(encoded, metadata=metadata.of_encoded(encoded, encoder, _validated(of)))

    return encoded_table


def _cluster_allocation(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"numpy", "scikitlearn"}, pool=GPU_POOL),
        description="How many condensed rows each class gets (HFILS, or another allocator), over its loss curves.",
    )
    def cluster_allocation(context: dg.AssetExecutionContext, encoded_table: EncodedRows):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.common.stages import StageClock
        from c2tc_pipeline.condensation.steps import make_condenser

        with options.step(context) as step:
            condenser = make_condenser(step.spec, step.ratio, device=step.clustering_device, cache_dir=step.cache.path)
            condenser.check_classes(encoded_table.classes, np.diff(encoded_table.edges))
            plan = condenser.plan(encoded_table, clock=StageClock(step.progress))
            return step.result(plan, metadata={**metadata.of_plan(plan, encoded_table), **step.placement})

    return cluster_allocation


def _condensed_table(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"scikitlearn", "parquet"}, pool=GPU_POOL, checks=checks.OF_CONDENSED_TABLE),
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
        from c2tc_pipeline.common.stages import StageClock
        from c2tc_pipeline.condensation.steps import assemble, make_condenser, refuse_repeated

        with options.step(context) as step:
            clock = StageClock(step.progress)
            condenser = make_condenser(step.spec, step.ratio, device=step.clustering_device)
            clusters = condenser.cluster(encoded_table, cluster_allocation, clock=clock)
            table = assemble(
                validated_table,
                encoder,
                encoded_table,
                cluster_allocation,
                clusters,
                condenser,
                name=step.spec.name,
                clock=clock,
                min_category_rows=step.spec.settings.min_category_rows,
            )
            refuse_repeated(table, step.spec)
            return step.result(
                table,
                metadata={**metadata.of_condensed(table, _validated(of)), **step.placement},
                checks=[checks.few_repeated_rows(table, step.spec), checks.near_bound(table)],
            )

    return condensed_table


def _training_rows(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"parquet"}),
        description="Rows to train models on, in the columns of the source with label and weight, drawn from the "
        "condensed rows and their spread.",
        # Where both are made in one run, rows to train on do not wait for scores, which take much longer.
        op_tags={"dagster/priority": "1"},
    )
    def training_rows(context: dg.AssetExecutionContext, condensed_table: CondensedTable):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.condensation.expand import expanded_frame

        with options.step(context) as step:
            chosen = step.spec.settings
            rows = expanded_frame(condensed_table, chosen.expand_rows, random_state=chosen.seed)
            parent = TableStep(of.table, "condensed_table", of.ratio)
            return step.result(rows, metadata=metadata.of_training_rows(rows, condensed_table, parent))

    return training_rows


def _evaluation_scores(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"pytorch", "scikitlearn"}, pool=EVALUATION_POOL, checks=checks.OF_EVALUATION_SCORES),
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
            rows = rows_to_score(condensed_table, validated_table, encoded_table, trials)
            scores = score_rows(condensed_table, rows, trials, cache=step.cache.cache, listener=step.progress)
            described = metadata.of_scores(scores)
            return step.result(
                scores,
                metadata={**described, "device": step.device},
                checks=[
                    checks.accurate_enough(scores, step.spec),
                    checks.steady_quality(context.instance, of, described, len(validated_table.positions("test"))),
                ],
            )

    return evaluation_scores


def _report(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"html"}),
        description="One self-contained page: pictures, allocation, scores by class, and the condensed rows.",
    )
    def report(context: dg.AssetExecutionContext, **inputs):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.reports.table_report import render_table_report

        with options.step(context) as step:
            tables = {ratio: table for (_, ratio), table in step.gathered(inputs, "condensed_table").items()}
            scores = {ratio: frame for (_, ratio), frame in step.gathered(inputs, "evaluation_scores").items()}
            page = render_table_report(of.table, tables, scores)
            return step.result(page, metadata=metadata.of_report(page, tables, scores))

    return report


def _leaderboard(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"pandas"}),
        description="The scores of all tables and ratios side by side.",
    )
    def leaderboard(context: dg.AssetExecutionContext, **inputs: pd.DataFrame | None):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.evaluation.row_worth import gather_scores

        with options.step(context) as step:
            board = gather_scores(step.gathered(inputs, "evaluation_scores"))
            return step.result(board, metadata=metadata.of_leaderboard(board))

    return leaderboard


def _overview(options: AssetOptions, of: TableStep) -> dg.AssetsDefinition:
    @dg.asset(
        **options.of(of, kinds={"html"}),
        description="One page over all tables, the worst first: state, age, quality, cost and last failure.",
    )
    def ops_overview(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.pipeline.overview import table_states
        from c2tc_pipeline.reports.overview import render_overview

        with options.step(context) as step:
            now = datetime.now(UTC)
            states = table_states(context.instance, options.catalogue, now=now.timestamp())
            page = render_overview(states, moment=now.strftime("%Y-%m-%d %H:%M UTC"))
            return step.result(page, metadata=metadata.of_overview(states))

    return ops_overview


def _validated(of: TableStep) -> TableStep:
    return TableStep(of.table, "validated_table")
