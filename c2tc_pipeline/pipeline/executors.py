"""Where the steps of a run are executed: in processes of their own, or in the process of the run.

In processes of their own, steps are forked from one that has imported what they need: under the launcher of the default
instance from the one that runs are forked from, too, otherwise from one that each run starts. A step that is killed, by
the system for want of memory, does not take the run along. In the run's own process there is nothing to fork and less
to open; but a step that is killed ends the run, and steps come one after the other. Retries of steps that fail, checks,
versions and pools are the same.
"""

from __future__ import annotations

import os

import dagster as dg

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.preloading import PRELOADED

VARIABLE = "C2TC_STEPS"

# Two of them, because their number of threads is not ours to know.
_APART = dg.multiprocess_executor.configured(
    {
        "max_concurrent": 2,
        "start_method": {"forkserver": {"preload_modules": [*PRELOADED]}},
    }
)
_EXECUTORS = {"apart": _APART, "together": dg.in_process_executor}


def steps_are_apart() -> bool:
    """Tell whether steps are executed in processes of their own.

    Examples
    --------
    >>> steps_are_apart()
    True
    """
    return step_executor() is _APART


def step_executor() -> dg.ExecutorDefinition:
    """Return what executes steps: ``C2TC_STEPS`` is ``apart``, as without it, or ``together``.

    Raises
    ------
    InputError
        When the variable holds something else.

    Examples
    --------
    >>> step_executor().name
    'multiprocess'
    """
    wanted = os.environ.get(VARIABLE, "").strip() or "apart"
    if wanted not in _EXECUTORS:
        raise InputError(f"{VARIABLE} is {wanted!r}; set it to one of: {', '.join(_EXECUTORS)}.")
    return _EXECUTORS[wanted]
