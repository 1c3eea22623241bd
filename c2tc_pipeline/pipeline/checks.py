"""Verdicts of asset checks, which the steps report with their values.

They are made in the step that makes the value, so that nothing is read twice. ``fits_schema`` is not marked as
blocking: Dagster would then retry the step that read the table. ``validated_table`` refuses such a delivery instead,
in the check's own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
import pandas as pd

from c2tc_pipeline.pipeline import metadata
from c2tc_pipeline.pipeline.formats import CondensedTable
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.tables.schema import SchemaFailure, failure_sentence
from c2tc_pipeline.tables.spec import TableSpec

# More materialisations than one delivery is likely to be read again.
_DELIVERIES_LOOKED_AT = 50
# Relative distance between the objective and its bound above which the check warns.
MAX_GAP = 0.1
# Evaluations that a new one is compared with, and how far below the lowest of them an AUC may be: some three standard
# errors of it where test rows are few.
_EVALUATIONS_COMPARED = 5
_MAX_REGRESSION = 0.02
_REGRESSION_OF_ONE_ROW = 1.0

OF_RAW_TABLE = {
    "fits_schema": "The table is usable and fits the schema of the first one that was accepted; otherwise nothing "
    "after it is made, and what was made before stays as it is.",
    "label_drift": "The classes have about the shares that they had in the last accepted delivery before this one.",
}
OF_CONDENSED_TABLE = {
    "few_repeated_rows": "Few condensed rows repeat a source row: because they stand for it alone or for equal rows, "
    "because they were picked, or by coincidence.",
    "near_bound": "The objective is close to the lower bound that no allocation can beat.",
}
OF_EVALUATION_SCORES = {
    "accurate_enough": "Models trained on condensed rows are about as accurate as those trained on the whole table.",
    "steady_quality": "Models trained on condensed rows score about as they did after the last five deliveries.",
}


def fits_schema(failures: list[SchemaFailure], spec: TableSpec) -> dg.AssetCheckResult:
    """Return whether a delivery is usable and fits the baseline."""
    return dg.AssetCheckResult(
        check_name="fits_schema",
        passed=not failures,
        severity=dg.AssetCheckSeverity.ERROR,
        description=failure_sentence(failures, spec) if failures else "The table fits.",
        metadata=metadata.of_failures(failures),
    )


def label_drift(
    instance: dg.DagsterInstance, spec: TableSpec, version: str, delivered: Mapping[str, Any]
) -> dg.AssetCheckResult:
    """Compare the class shares of a delivery, from its metadata, with those of the last accepted one."""
    accepted = instance.fetch_materializations(TableStep(spec.name, "validated_table").key, _DELIVERIES_LOOKED_AT)
    recorded = [event.metadata for each in accepted.records if (event := each.asset_materialization) is not None]
    # Equal bytes are the same delivery; what was recorded by hand names none.
    earlier = [each for each in recorded if "source_version" in each and each["source_version"].value != version]
    if not earlier:
        return _warning("label_drift", True, "There is no accepted delivery before this one.")
    now, before = _class_shares(delivered), _class_shares(earlier[0])
    drift = sum(abs(now.get(name, 0) - before.get(name, 0)) for name in {*now, *before}) / 2
    return _warning(
        "label_drift",
        drift <= spec.checks.drift,
        f"The shares of the classes moved by {drift:.3f} in all; up to {spec.checks.drift:g} is in order.",
        drift=drift,
    )


def few_repeated_rows(table: CondensedTable, spec: TableSpec) -> dg.AssetCheckResult:
    """Return whether few condensed rows repeat a source row."""
    allowed, rows = spec.checks.repeated_rows, len(table)
    repeated = dict(table.summary["repeated_rows"])
    total = int(repeated.pop("total"))
    return _warning(
        "few_repeated_rows",
        total <= allowed * rows,
        f"{total} of {rows} condensed rows repeat a source row; up to {100 * allowed:g} % is in order.",
        repeated_rows=total,
        share=total / rows,
        **repeated,
    )


def near_bound(table: CondensedTable) -> dg.AssetCheckResult:
    """Return whether the objective is close to its bound."""
    gap = table.summary["gap"]
    if gap is None:
        return _warning("near_bound", True, "There is no bound for this allocation.")
    return _warning(
        "near_bound",
        gap <= MAX_GAP,
        f"The objective may be {100 * gap:.2f} % too high, by its bound; up to {100 * MAX_GAP:g} % is in order.",
        gap=gap,
    )


def accurate_enough(scores: pd.DataFrame, spec: TableSpec) -> dg.AssetCheckResult:
    """Return whether condensed rows cost little accuracy, by the model to which they cost most."""
    margin = spec.checks.accuracy_margin
    encoded = scores[scores["columns"] == "encoded"]
    means = encoded.groupby(["model", "training_set"])["accuracy"].mean().unstack()
    behind = means["whole"] - means["condensed"]
    worst, points = str(behind.idxmax()), 100 * float(behind.max())
    cost = f"cost {points:.1f} points of accuracy" if points > 0 else "cost no accuracy"
    return _warning(
        "accurate_enough",
        behind.max() <= margin,
        f"With {worst}, condensed rows {cost}; up to {100 * margin:g} points are in order.",
        **{f"{model}_behind": float(value) for model, value in behind.items()},
    )


def steady_quality(
    instance: dg.DagsterInstance, step: TableStep, scored: Mapping[str, Any], test_rows: int
) -> dg.AssetCheckResult:
    """Compare the AUC of models trained on condensed rows, from the metadata, with that of earlier evaluations."""
    allowed = max(_MAX_REGRESSION, _REGRESSION_OF_ONE_ROW / max(test_rows, 1) ** 0.5)
    made = instance.fetch_materializations(step.key, _EVALUATIONS_COMPARED).records
    earlier = [each.asset_materialization.metadata for each in made if each.asset_materialization is not None]
    regressions = {}
    for name in (name for name in scored if name.endswith("_condensed_auc")):
        known = [value for each in earlier if name in each and isinstance(value := each[name].value, float)]
        if known:
            regressions[name.removesuffix("_condensed_auc")] = min(known) - scored[name]
    if not regressions:
        return _warning("steady_quality", True, "There is no earlier evaluation.")
    worst = max(regressions, key=lambda name: regressions[name])
    lost = regressions[worst]
    change = f"is {100 * lost:.1f} points below" if lost > 0 else "is not below"
    return _warning(
        "steady_quality",
        lost <= allowed,
        f"The AUC of {worst} on condensed rows {change} the lowest of the last {len(earlier)} evaluations; up to "
        f"{100 * allowed:.1f} points are in order.",
        **{f"{name}_lost": value for name, value in regressions.items()},
    )


def _warning(name: str, passed: bool, description: str, **numbers: float) -> dg.AssetCheckResult:
    shown = {key: metadata.rounded(value) for key, value in numbers.items()}
    return dg.AssetCheckResult(
        check_name=name,
        passed=bool(passed),
        severity=dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=shown,
    )


def _class_shares(recorded: Mapping[str, Any]) -> dict[str, float]:
    found = recorded.get(metadata.CLASS_SHARES)
    return {} if found is None else dict(found.data)
