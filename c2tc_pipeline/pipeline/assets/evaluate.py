"""Is it any good: ``evaluation_scores`` for each cell, and the ``leaderboard`` over all of them."""

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.steps import AssetOptions
from c2tc_pipeline.pipeline.values import CondensedTable, EncodedRows
from c2tc_pipeline.tables.table import Table

GROUP = "evaluate"


def evaluate_assets(options: AssetOptions) -> list[dg.AssetsDefinition]:
    """Return the assets that test models on the test rows, which nothing before them has touched."""

    @dg.asset(
        **options.of("evaluation_scores", group=GROUP, kinds={"pytorch", "scikitlearn"}, gpu=True),
        partitions_def=options.partitions.grid,
        description="Accuracy and macro-F1 on test rows of models trained on the condensed rows, on as many random "
        "rows and on the whole table.",
    )
    def evaluation_scores(  # type: ignore[no-untyped-def]
        context: dg.AssetExecutionContext,
        validated_table: Table,
        encoded_table: EncodedRows,
        condensed_table: CondensedTable,
    ):
        from c2tc_pipeline.evaluation.scores import rows_to_score, score_rows

        with options.step(context) as step:
            chosen = step.spec.evaluation
            scores = score_rows(
                condensed_table,
                *rows_to_score(condensed_table.encoder, validated_table, encoded_table),
                models=chosen.models,
                seeds=range(chosen.seeds),
                recipe=chosen.recipe,
                device=step.device,
                cache=step.cache.cache,
                listener=step.progress,
            )
            return step.result(scores, metadata={**metadata.of_scores(scores), "device": step.device})

    @dg.asset(
        **options.of("leaderboard", group=GROUP, kinds={"pandas"}),
        ins={"evaluation_scores": dg.AssetIn(partition_mapping=dg.AllPartitionMapping())},
        description="The scores of all tables and ratios side by side.",
    )
    def leaderboard(context: dg.AssetExecutionContext, evaluation_scores: dict[str, pd.DataFrame]):  # type: ignore[no-untyped-def]
        from c2tc_pipeline.evaluation.averages import gather_scores

        with options.step(context) as step:
            board = gather_scores(step.used(evaluation_scores))
            return step.result(board, metadata=metadata.of_leaderboard(board))

    return [evaluation_scores, leaderboard]
