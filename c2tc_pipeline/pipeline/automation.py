"""When an asset is remade without anybody asking: as soon as it is out of date and its turn has come.

Dagster's own conditions react to events: a parent was updated, the code version changed since the last look. A change
of one table's settings is no such event, run config is no part of a data version, and what happened while the daemon
was off, or before the first evaluation, would be missed. So the condition here compares states, by the one definition
in :mod:`c2tc_pipeline.pipeline.versioning`. ``raw_table`` has no condition: a sensor watches its source.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import dagster as dg

from c2tc_pipeline.pipeline.intervals import seconds_between_looks
from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import Partition, ancestors
from c2tc_pipeline.tables.spec import TableSpec

if TYPE_CHECKING:
    from dagster._core.asset_graph_view.asset_graph_view import AssetGraphView
    from dagster._core.asset_graph_view.entity_subset import EntitySubset

    Condition = dg.AutomationCondition[dg.AssetKey]
    Context = dg.AutomationContext[dg.AssetKey]
    Result = dg.AutomationResult[dg.AssetKey]
else:
    Condition = dg.AutomationCondition

SENSOR_NAME = "out_of_date_sensor"
EVALUATE_EVERY_SECONDS = 30

_LEDGERS: WeakKeyDictionary[AssetGraphView, Ledger] = WeakKeyDictionary()


class OutOfDate(Condition):
    """True for partitions that are out of date, once for each recipe.

    It remembers for which recipe it was last true, so that a run that failed is not launched again at every tick, but
    is as soon as anything it is made from changes. For that it must stand last in a conjunction: what it is true for
    is then what gets launched.

    Parameters
    ----------
    catalogue : mapping of str to TableSpec
        The tables.
    """

    def __init__(self, catalogue: Mapping[str, TableSpec]) -> None:
        self._catalogue = catalogue

    @property
    def name(self) -> str:
        """What the dashboard calls it."""
        return "out_of_date"

    @property
    def description(self) -> str:
        """What the dashboard says about it."""
        return "Algorithm, settings or parents' content are not those it was made from"

    def evaluate(self, context: Context) -> Result:
        """Compare recipes, and remember for which ones this is true."""
        pending = self._ledger(context).pending(context.key.to_user_string())
        # JSON has no None among its keys, so an asset without partitions is remembered under the empty text.
        tried: dict[str, str] = json.loads(context.cursor or "{}")
        untried = {key for key, recipe in pending.items() if tried.get(key or "") != recipe}
        true = _restricted(context.candidate_subset, untried, context)
        signalled = _partitions(true)
        remembered = {key or "": recipe for key, recipe in pending.items() if key in signalled or key not in untried}
        return dg.AutomationResult(context, true, cursor=json.dumps(remembered, sort_keys=True))

    def _ledger(self, context: Context) -> Ledger:
        # There is one view a tick: all assets are judged by the same records, and these are read once.
        view = context.asset_graph_view
        return _LEDGERS.setdefault(view, Ledger(view.instance, self._catalogue))


class RequestedThisTick(Condition):
    """True for partitions that this very tick is going to launch.

    Dagster's own ``will_be_requested`` is silent about a parent that can't share a run with its child, as a table and
    its cells can't.
    """

    @property
    def name(self) -> str:
        """What the dashboard calls it."""
        return "requested_this_tick"

    @property
    def requires_cursor(self) -> bool:
        """Whether it remembers anything."""
        return False

    def evaluate(self, context: Context) -> Result:
        """Look at what was decided before in this tick."""
        requested = context.request_subsets_by_key.get(context.key, context.get_empty_subset())
        return dg.AutomationResult(context, context.candidate_subset.compute_intersection(requested))


def automation_condition(asset: str, catalogue: Mapping[str, TableSpec]) -> Condition:
    """Return when an asset is launched.

    It waits while it, or anything upstream of the same table, is being made, so that a change in two places does not
    make it twice; and it never uses a parent whose blocking checks have not passed. A blocking check must have the
    partitions of its asset: without, the verdict on one table would stand for all of them.

    Parameters
    ----------
    asset : str
        The asset, with at least one parent.
    catalogue : mapping of str to TableSpec
        The tables.
    """
    being_made = dg.AutomationCondition.in_progress() | RequestedThisTick()
    upstream = [dg.AutomationCondition.asset_matches(above, being_made) for above in ancestors(asset)]
    return (
        ~dg.AutomationCondition.in_progress()
        & ~reduce(or_, upstream)
        & dg.AutomationCondition.all_deps_blocking_checks_passed()
        & OutOfDate(catalogue)
    )


def automation_sensor(target: dg.AssetSelection) -> dg.AutomationConditionSensorDefinition:
    """Return the sensor that evaluates the conditions; it is off until somebody switches it on.

    Examples
    --------
    >>> automation_sensor(dg.AssetSelection.all()).name
    'out_of_date_sensor'
    """
    with warnings.catch_warnings():
        # Evaluating on the code server is beta, and the only way to evaluate a condition of one's own.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return dg.AutomationConditionSensorDefinition(
            SENSOR_NAME,
            target=target,
            use_user_code_server=True,
            # One run a partition: in a backfill, all tables would wait for the slowest.
            emit_backfills=False,
            minimum_interval_seconds=seconds_between_looks(EVALUATE_EVERY_SECONDS),
            description="Launches every partition whose algorithm, settings or parents' content changed.",
        )


def _restricted(
    subset: EntitySubset[dg.AssetKey], partitions: set[Partition], context: Context
) -> EntitySubset[dg.AssetKey]:
    if not partitions:
        return context.get_empty_subset()
    if not subset.is_partitioned:
        return subset
    return subset.compute_intersection_with_partition_keys({key for key in partitions if key is not None})


def _partitions(subset: EntitySubset[dg.AssetKey]) -> set[Partition]:
    if subset.is_empty:
        return set()
    return set(subset.expensively_compute_partition_keys()) if subset.is_partitioned else {None}
