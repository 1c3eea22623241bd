"""Prepare the process from which Dagster forks the steps of a run.

It is killed together with the process of the run, and so are its steps: otherwise they would go on, perhaps for hours,
beside those of the run that Dagster launches instead. Definitions are built once for all steps: with many tables that
takes longer than most steps. In other processes the import does nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from c2tc_pipeline.common.processes import end_with_parent
from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE

if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    end_with_parent(signal.SIGKILL)
    os.register_at_fork(after_in_child=lambda: end_with_parent(signal.SIGKILL))

# Below a run only, whose catalogue needs no connection. What is wrong with definitions is reported by the run itself.
if IN_FORCE_VARIABLE in os.environ:
    from c2tc_pipeline.definitions import loaded_defs

    with suppress(Exception):
        loaded_defs().get_repository_def().get_all_jobs()
