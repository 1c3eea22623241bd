"""Automation condition: an asset is remade when it is out of date and nothing upstream is being made.

Dagster's own conditions react to events; a changed setting of one table is none, and changes made while the daemon was
off would be missed. So the condition here compares states, by the definition in :mod:`c2tc_pipeline.pipeline.ledger`.
``raw_table`` has no condition: a sensor watches its source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import dagster as dg

from c2tc_pipeline.pipeline.ledger import Ledger
from c2tc_pipeline.pipeline.versioning import Partition, ancestors
from c2tc_pipeline.tables.spec import TableSpec

if TYPE_CHECKING:
    Condition = dg.AutomationCondition[dg.AssetKey]
    Context = dg.AutomationContext[dg.AssetKey]
    Result = dg.AutomationResult[dg.AssetKey]
else:
    Condition = dg.AutomationCondition

# One ledger per view of the asset graph, which Dagster makes for each evaluation.
_LEDGERS: WeakKeyDictionary[Any, Ledger] = WeakKeyDictionary()


class OutOfDate(Condition):
    """True for partitions that are out of date, once for each version key.

    It remembers the version key for which it was last true, so that a failed run is not launched again before anything
    it is made from changes. It must be the last operand of a conjunction: what it is true for is then launched.
    """

    def __init__(self, catalogue: Mapping[str, TableSpec]) -> None:
        self._catalogue = catalogue

    @property
    def name(self) -> str:
        """The label on the dashboard."""
        return "out_of_date"

    @property
    def description(self) -> str:
        """The description on the dashboard."""
        return "Algorithm, settings or parents' content differ from those it was made from"

    def evaluate(self, context: Context) -> Result:
        """Compare version keys, and remember those for which this is true."""
        view = context.asset_graph_view
        ledger = _LEDGERS.setdefault(view, Ledger(view.instance, self._catalogue))
        pending = ledger.pending(context.key.to_user_string())
        # JSON has no None among its keys, so an asset without partitions is remembered under the empty string.
        tried: dict[str, str] = json.loads(context.cursor or "{}")
        untried = {key for key, wanted in pending.items() if tried.get(key or "") != wanted}
        true = _restricted(context, untried)
        launched = _partitions(true)
        remembered = {key or "": wanted for key, wanted in pending.items() if key in launched or key not in untried}
        return dg.AutomationResult(context, true, cursor=json.dumps(remembered, sort_keys=True))


class RequestedThisTick(Condition):
    """True for partitions that the current evaluation is going to launch.

    Dagster's own ``will_be_requested`` ignores a parent that can't share a run with its child, as a table and its cells
    can't.
    """

    @property
    def name(self) -> str:
        """The label on the dashboard."""
        return "requested_this_tick"

    @property
    def requires_cursor(self) -> bool:
        """Return whether the condition keeps state."""
        return False

    def evaluate(self, context: Context) -> Result:
        """Return what was requested earlier in this evaluation."""
        requested = context.request_subsets_by_key.get(context.key, context.get_empty_subset())
        return dg.AutomationResult(context, context.candidate_subset.compute_intersection(requested))


def automation_condition(asset: str, catalogue: Mapping[str, TableSpec]) -> Condition:
    """Return when an asset, which must have a parent, is launched.

    It waits while it, or anything upstream of the same table, is being made, so that a change in two places does not
    make it twice; and it never uses a parent whose blocking checks have not passed.
    """
    being_made = dg.AutomationCondition.in_progress() | RequestedThisTick()
    upstream = [dg.AutomationCondition.asset_matches(above, being_made) for above in ancestors(asset)]
    return (
        ~dg.AutomationCondition.in_progress()
        & ~reduce(or_, upstream)
        & dg.AutomationCondition.all_deps_blocking_checks_passed()
        & OutOfDate(catalogue)
    )


def _restricted(context: Context, partitions: set[Partition]) -> Any:
    """Return the candidates among some partitions."""
    subset = context.candidate_subset
    if not partitions:
        return context.get_empty_subset()
    if not subset.is_partitioned:
        return subset
    return subset.compute_intersection_with_partition_keys({key for key in partitions if key is not None})


def _partitions(subset: Any) -> set[Partition]:
    if subset.is_empty:
        return set()
    return set(subset.expensively_compute_partition_keys()) if subset.is_partitioned else {None}
