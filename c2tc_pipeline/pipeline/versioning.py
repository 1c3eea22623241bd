"""The steps of each table, their asset keys, and the code version of each.

A step's asset has the key ``[table, step]``, for condensing steps with the ratio in the name of the step:
``departures/condensed_table_0_001``. Ratios are not Dagster partitions, so that one run makes all of a table, and
checks, data versions and plots are those of one ratio; docs/pipeline.md has the reasons.

A code version is a hash of the algorithms' versions and of those settings of the table that the step reads. Dagster
records it with each materialisation, together with the data versions of the inputs;
:mod:`c2tc_pipeline.pipeline.records` compares them with the present ones to find what is out of date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import dagster as dg

from c2tc_pipeline.allocation import ALLOCATION_VERSION
from c2tc_pipeline.clustering import CLUSTER_VERSION, CURVE_VERSION
from c2tc_pipeline.condensation import CONDENSED_VERSION, EXPANSION_VERSION, WEIGHTS_VERSION
from c2tc_pipeline.encoding import AUTOENCODER_VERSION, ENCODER_VERSION
from c2tc_pipeline.evaluation import SCORES_VERSION
from c2tc_pipeline.reports import REPORT_VERSION
from c2tc_pipeline.sources import READING_VERSION
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables import PREPARATION_VERSION
from c2tc_pipeline.tables.spec import TableSpec

_VERSION_LENGTH = 20

ALGORITHM_VERSIONS = {
    "raw_table": str(READING_VERSION),
    "validated_table": str(PREPARATION_VERSION),
    "encoder": f"{ENCODER_VERSION}.{AUTOENCODER_VERSION}",
    "encoded_table": f"{ENCODER_VERSION}.{WEIGHTS_VERSION}",
    "cluster_allocation": f"{ALLOCATION_VERSION}.{CURVE_VERSION}",
    "condensed_table": f"{CONDENSED_VERSION}.{CLUSTER_VERSION}",
    "training_rows": str(EXPANSION_VERSION),
    "evaluation_scores": str(SCORES_VERSION),
    "report": str(REPORT_VERSION),
    "leaderboard": str(REPORT_VERSION),
    "ops_overview": str(REPORT_VERSION),
}
"""The version of each step's algorithm, composed of the constants beside the algorithms."""

PARENTS: dict[str, tuple[str, ...]] = {
    "raw_table": (),
    "validated_table": ("raw_table",),
    "encoder": ("validated_table",),
    "encoded_table": ("validated_table", "encoder"),
    "cluster_allocation": ("encoded_table",),
    "condensed_table": ("validated_table", "encoder", "encoded_table", "cluster_allocation"),
    "training_rows": ("condensed_table",),
    "evaluation_scores": ("validated_table", "encoded_table", "condensed_table"),
    "report": ("condensed_table", "evaluation_scores"),
    "leaderboard": ("evaluation_scores",),
    "ops_overview": ("leaderboard",),
}
"""What each step reads, in topological order."""

BY_RATIO = ("cluster_allocation", "condensed_table", "training_rows", "evaluation_scores")
GATHERING = ("report", "leaderboard")
"""Steps that are made from those of their parents that exist and are up to date."""
LEADERBOARD = "leaderboard"
OVERVIEW = "ops_overview"
OVER_ALL = (LEADERBOARD, OVERVIEW)
"""Steps over all tables."""

_RATIO_STEP = re.compile(rf"({'|'.join(BY_RATIO)})_(\d+(?:_\d+)?)")


@dataclass(frozen=True)
class TableStep:
    """One step of one table, at one ratio if it condenses; a step over all tables has no table."""

    table: str
    step: str
    ratio: float | None = None

    @classmethod
    def of_name(cls, table: str, name: str) -> TableStep:
        """Return the step with a name such as ``condensed_table_0_001``."""
        if found := _RATIO_STEP.fullmatch(name):
            return cls(table, found[1], float(found[2].replace("_", ".")))
        return cls(table, name)

    @classmethod
    def of_key(cls, key: dg.AssetKey) -> TableStep:
        """Return the step behind an asset key."""
        *table, name = key.path
        return cls.of_name("/".join(table), name)

    @classmethod
    def of_op(cls, op: str) -> TableStep:
        """Return the step behind the name that Dagster gives to an asset's op."""
        table, _, name = op.rpartition("__")
        return cls.of_name(table, name)

    @property
    def name(self) -> str:
        """The last part of the asset key."""
        return self.step if self.ratio is None else f"{self.step}_{_ratio_part(self.ratio)}"

    @property
    def key(self) -> dg.AssetKey:
        """The key of the asset."""
        return dg.AssetKey([self.table, self.name] if self.table else [self.name])

    @property
    def scope(self) -> str | None:
        """The table and ratio, such as ``departures|0.001``, as in the store; None over all tables."""
        return self.table + ("" if self.ratio is None else f"|{self.ratio!r}") if self.table else None


def _ratio_part(ratio: float) -> str:
    return format(Decimal(repr(ratio)), "f").replace(".", "_")


def table_steps(spec: TableSpec) -> list[TableStep]:
    """Return all steps of a table, parents first."""
    names = [step for step in PARENTS if step not in OVER_ALL]
    return [each for step in names for each in steps_named(step, spec)]


def steps_named(step: str, spec: TableSpec) -> list[TableStep]:
    """Return a step of a table at each of its ratios, or the only one."""
    ratios = spec.ratios if step in BY_RATIO else (None,)
    return [TableStep(spec.name, step, ratio) for ratio in ratios]


def parents_of(step: TableStep, catalogue: Mapping[str, TableSpec]) -> Iterator[TableStep]:
    """Yield the steps that a step reads."""
    specs = [catalogue[step.table]] if step.table else [*catalogue.values()]
    for parent in PARENTS[step.step]:
        if parent in OVER_ALL:
            yield TableStep("", parent)
        elif parent in BY_RATIO and step.ratio is not None:
            yield TableStep(step.table, parent, step.ratio)
        else:
            for spec in specs:
                yield from steps_named(parent, spec)


def ancestors(step: str) -> set[str]:
    """Return the names of all direct and indirect parents of a step."""
    return set(PARENTS[step]).union(*(ancestors(parent) for parent in PARENTS[step]))


def in_between(step: str) -> list[str]:
    """Return the ancestors that read one of the step's parents themselves, so that the two have to agree."""
    above = ancestors(step)
    return [name for name in PARENTS if name in above and not set(PARENTS[step]).isdisjoint(ancestors(name))]


def settings_of(step: str, spec: TableSpec) -> dict[str, Any]:
    """Return the settings of a table that a step reads, and no others; device and engine do not change results."""
    chosen = spec.settings
    match step:
        case "raw_table":
            # All but the source are read by its check fits_schema.
            names = ("source", "label", "label_kind", "missing", "roles")
            fields: Any = {**dict.fromkeys(names, True), "checks": {"baseline"}}
            return spec.model_dump(mode="json", include=fields)
        case "validated_table":
            fields = {name: True for name in ("label", "label_kind", "missing", "roles", "split")}
            fields["checks"] = {"baseline"}
            return spec.model_dump(mode="json", include=fields)
        case "encoder":
            return chosen.model_dump(mode="json", include={"seed", "strings", "numeric"})
        case "encoded_table":
            return chosen.model_dump(mode="json", include={"seed", "column_weights"})
        case "training_rows":
            return chosen.model_dump(mode="json", include={"seed", "expand_rows"})
        case "cluster_allocation":
            return chosen.model_dump(mode="json", include={"seed", "allocation", "gamma", "min_rows_per_condensed_row"})
        case "condensed_table":
            read = {"seed", "representative", "min_rows_per_condensed_row", "min_category_rows"}
            # A limit that only warns does not change the table.
            limit = spec.checks.repeated_rows if spec.checks.on_repeated_rows == "stop" else None
            return {"repeated_rows": limit, **chosen.model_dump(mode="json", include=read)}
        case "evaluation_scores":
            return spec.evaluation.model_dump(mode="json")
        case _:
            return {}


def code_version(step: TableStep, catalogue: Mapping[str, TableSpec]) -> str:
    """Return the hash of a step's algorithm and of the settings that it reads."""
    settings = settings_of(step.step, catalogue[step.table]) if step.table else {}
    algorithms = [ALGORITHM_VERSIONS[step.step]]
    if step.step == "validated_table":
        # The data version of a raw table is the hash of the source's bytes, so how they are read counts here, too.
        algorithms.append(ALGORITHM_VERSIONS["raw_table"])
    return hash_json({"algorithms": algorithms, "settings": settings})[:_VERSION_LENGTH]
