"""Condensing a described table: the encoder and the condenser that its settings ask for."""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import EncodedTable
from c2tc_pipeline.condensation.partition import ClassOrder
from c2tc_pipeline.condensation.plan import AllocationPlan
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.steps import condensed_table
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.validated import ValidatedTable


def condense_planned(
    spec: TableSpec,
    ratio: float,
    validated: ValidatedTable,
    encoder: TableEncoder,
    encoded: EncodedTable,
    plan: AllocationPlan,
    *,
    device: str | None = None,
    listener: Listener | None = None,
) -> CondensedTable:
    """Take the last step alone: condense a table for which all steps before were taken and stored.

    Parameters
    ----------
    spec : TableSpec
        The table's description.
    ratio : float
        Condensed rows as a share of the training rows.
    validated, encoder, encoded, plan : ValidatedTable, TableEncoder, EncodedTable, AllocationPlan
        What the steps before made.
    device : str, optional
        Where k-means runs, instead of where the description says.
    listener : callable, optional
        Told about progress: (stage, steps done, steps in all).
    """
    clock = StageClock(listener)
    prepared = validated.prepared()
    by_class = ClassOrder.of(prepared.y.to_numpy())
    condenser = make_condenser(spec, ratio, device=device)
    centers = condenser.condense_sorted(encoded.rows, by_class, plan, clock=clock)
    table = condensed_table(
        validated.frame,
        prepared,
        encoder,
        encoded,
        condenser,
        centers,
        by_class,
        name=spec.name,
        clock=clock,
        chosen_drops=spec.roles,
    )
    refuse_repeated(table, spec)
    table.notices = [*validated.notices, *table.notices]
    return table


def refuse_repeated(table: CondensedTable, spec: TableSpec) -> None:
    """Refuse a table of which too many rows repeat a source row, where the description wants that to stop it."""
    allowed, repeated = spec.checks.repeated_rows, table.summary["repeated_rows"]["total"]
    if spec.checks.on_repeated_rows == "stop" and repeated > allowed * len(table):
        raise InputError(
            f"Table {spec.name!r}: {repeated} of {len(table)} condensed rows repeat a source row, more than the "
            f"{allowed:.0%} that checks.repeated_rows allows; choose a smaller ratio, set min_rows_per_condensed_row, "
            "or allow more."
        )


def make_encoder(spec: TableSpec, *, device: str | None = None, cache_dir: Path | None = None) -> HybridEncoder:
    """Return the encoder that a table's description asks for, unfitted.

    Examples
    --------
    >>> make_encoder(TableSpec(name="t", source="t.csv", label="y")).strings
    'auto'
    """
    chosen = spec.settings
    return HybridEncoder(
        chosen.strings,
        chosen.numeric,
        device=device or chosen.device,
        cache_dir=cache_dir,
        random_state=chosen.seed,
    )


def make_condenser(
    spec: TableSpec, ratio: float, *, device: str | None = None, cache_dir: Path | None = None
) -> Condenser:
    """Return the condenser that a table's description asks for, for one of its ratios.

    Examples
    --------
    >>> make_condenser(TableSpec(name="t", source="t.csv", label="y"), 0.01).gamma
    0.25
    """
    chosen = spec.settings
    return Condenser(
        ratio,
        allocation=chosen.allocation,
        gamma=chosen.gamma,
        representative=chosen.representative,
        min_rows_per_condensed_row=chosen.min_rows_per_condensed_row,
        device=device or chosen.device,
        engine=chosen.engine,
        cache_dir=cache_dir,
        random_state=chosen.seed,
    )
