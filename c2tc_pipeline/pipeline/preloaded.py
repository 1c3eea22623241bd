"""Definitions that steps inherit from the process of their run from which they are forked.

With many tables, building them takes longer than most steps.
"""

import os
from contextlib import suppress

from c2tc_pipeline.definitions import loaded_defs
from c2tc_pipeline.pipeline.acceptance import IN_FORCE_VARIABLE

# Below a run only, whose catalogue needs no connection. What is wrong with definitions is reported by the run itself.
if IN_FORCE_VARIABLE in os.environ:
    with suppress(Exception):
        loaded_defs().get_repository_def().get_all_jobs()
