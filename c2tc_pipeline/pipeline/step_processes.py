"""Let the steps of a run that was killed end with it.

Dagster forks the processes of steps from a server process of :mod:`multiprocessing`, which imports this module first.
When the process of the run is killed, the server is, and with it its steps: otherwise they would compute on, for hours
perhaps, beside those of the run that Dagster launches in its place. Elsewhere the import does nothing.
"""

from __future__ import annotations

import os
import signal
import sys

from c2tc_pipeline.common.processes import end_with_parent

if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    end_with_parent(signal.SIGKILL)
    os.register_at_fork(after_in_child=lambda: end_with_parent(signal.SIGKILL))
