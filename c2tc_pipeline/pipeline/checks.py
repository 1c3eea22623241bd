"""Asset checks: blocking ones, which stop a table, and warnings.

A check has the partitions of its asset, a preview feature of Dagster: without them one table's result stands for all.
"""

import warnings
from typing import Any

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.formats import CondensedTable
from c2tc_pipeline.pipeline.steps import AssetOptions, baseline_schema
from c2tc_pipeline.pipeline.versioning import Partitions
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.schema import failure_sentence, unfit
from c2tc_pipeline.tables.spec import TableSpec

# Further back than any number of reruns of one delivery is likely to reach.
_DELIVERIES_LOOKED_AT = 50
# Relative distance between the objective and its bound above which the check warns.
MAX_GAP = 0.1


def all_checks(options: AssetOptions) -> list[dg.AssetChecksDefinition]:
    """Return every check of the pipeline."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return [*_raw_checks(options), *_condensed_checks(options), _accuracy_check(options)]


def _raw_checks(options: AssetOptions) -> list[dg.AssetChecksDefinition]:
    @dg.asset_check(
        asset="raw_table",
        blocking=True,
        partitions_def=options.partitions.datasets,
        required_resource_keys={"io_manager"},
        retry_policy=options.retries,
        description="The table is usable and fits the schema of the first one that was accepted; otherwise "
        "nothing after it runs, and what was made before stays as it is.",
    )
    def fits_schema(context: dg.AssetCheckExecutionContext, raw_table: Blocks) -> dg.AssetCheckResult:
        spec = _spec(context, options)
        failures = unfit(raw_table, spec, baseline_schema(context.resources.io_manager, spec))
        return dg.AssetCheckResult(
            passed=not failures,
            severity=dg.AssetCheckSeverity.ERROR,
            description=failure_sentence(failures, spec) if failures else "The table fits.",
            metadata=metadata.of_failures(failures),
        )

    @dg.asset_check(
        asset="raw_table",
        partitions_def=options.partitions.datasets,
        description="The classes have about the shares that they had in the last accepted delivery before this one.",
    )
    def label_drift(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        spec = _spec(context, options)
        [delivered] = _recent_metadata(context.instance, "raw_table", spec.name, most=1)
        accepted = _recent_metadata(context.instance, "validated_table", spec.name, most=_DELIVERIES_LOOKED_AT)
        # Equal bytes are the same delivery, and one that was refused does not count.
        version = delivered["data_version"].value
        earlier = [each for each in accepted if each["source_version"].value != version]
        if not earlier:
            return _warning(True, "There is no accepted delivery before this one.")
        now, before = _class_shares(delivered), _class_shares(earlier[0])
        drift = sum(abs(now.get(name, 0) - before.get(name, 0)) for name in {*now, *before}) / 2
        return _warning(
            drift <= spec.checks.drift,
            f"The shares of the classes moved by {drift:.3f} in all; up to {spec.checks.drift:g} is in order.",
            drift=drift,
        )

    return [fits_schema, label_drift]


def _condensed_checks(options: AssetOptions) -> list[dg.AssetChecksDefinition]:
    @dg.asset_check(
        asset="condensed_table",
        partitions_def=options.partitions.grid,
        description="Few condensed rows repeat a source row: because they stand for it alone or for equal rows, "
        "because they were picked, or by coincidence.",
    )
    def few_repeated_rows(
        context: dg.AssetCheckExecutionContext, condensed_table: CondensedTable
    ) -> dg.AssetCheckResult:
        allowed = _spec(context, options).checks.repeated_rows
        repeated, rows = dict(condensed_table.summary["repeated_rows"]), len(condensed_table)
        total = int(repeated.pop("total"))
        return _warning(
            total <= allowed * rows,
            f"{total} of {rows} condensed rows repeat a source row; up to {allowed:.0%} is in order.",
            repeated_rows=total,
            share=total / rows,
            **repeated,
        )

    @dg.asset_check(
        asset="condensed_table",
        partitions_def=options.partitions.grid,
        description="The objective is close to the lower bound that no allocation can beat.",
    )
    def near_bound(context: dg.AssetCheckExecutionContext, condensed_table: CondensedTable) -> dg.AssetCheckResult:
        gap = condensed_table.summary["gap"]
        if gap is None:
            return _warning(True, "There is no bound for this allocation.")
        return _warning(
            gap <= MAX_GAP,
            f"The objective may be {gap:.2%} too high, by its bound; up to {MAX_GAP:.0%} is in order.",
            gap=gap,
        )

    return [few_repeated_rows, near_bound]


def _accuracy_check(options: AssetOptions) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset="evaluation_scores",
        partitions_def=options.partitions.grid,
        description="Models trained on condensed rows are about as accurate as those trained on the whole table.",
    )
    def accurate_enough(context: dg.AssetCheckExecutionContext, evaluation_scores: pd.DataFrame) -> dg.AssetCheckResult:
        margin = _spec(context, options).checks.accuracy_margin
        encoded = evaluation_scores[evaluation_scores["columns"] == "encoded"]
        means = encoded.groupby(["model", "training_set"])["accuracy"].mean().unstack()
        behind = means["whole"] - means["condensed"]
        worst, points = str(behind.idxmax()), 100 * float(behind.max())
        cost = f"cost {points:.1f} points of accuracy" if points > 0 else "cost no accuracy"
        return _warning(
            behind.max() <= margin,
            f"With {worst}, condensed rows {cost}; up to {100 * margin:g} points are in order.",
            **{f"{model}_behind": float(value) for model, value in behind.items()},
        )

    return accurate_enough


def _spec(context: dg.AssetCheckExecutionContext, options: AssetOptions) -> TableSpec:
    return options.catalogue.table(Partitions.parse(str(context.partition_key))[0])


def _warning(passed: bool, description: str, **numbers: float) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=bool(passed), severity=dg.AssetCheckSeverity.WARN, description=description, metadata=numbers
    )


def _recent_metadata(instance: dg.DagsterInstance, asset: str, partition: str, *, most: int) -> list[Any]:
    """Return the metadata of the last materialisations, the newest first."""
    wanted = dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[partition])
    events = [record.asset_materialization for record in instance.fetch_materializations(wanted, most).records]
    return [event.metadata for event in events if event is not None]


def _class_shares(recorded: Any) -> dict[str, float]:
    found = recorded.get(metadata.CLASS_SHARES)
    return {} if found is None else dict(found.data)
