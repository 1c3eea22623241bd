"""Kill step processes when their run process dies.

Dagster forks the processes of steps from a server process of :mod:`multiprocessing`, which imports this module first.
The kernel then kills the server and the steps with the process of the run: otherwise they would go on, perhaps for
hours, beside those of the run that Dagster launches instead. Elsewhere the import does nothing.
"""

from __future__ import annotations

import os
import signal
import sys

from c2tc_pipeline.common.processes import end_with_parent

if any("multiprocessing.forkserver" in argument for argument in sys.orig_argv):
    end_with_parent(signal.SIGKILL)
    os.register_at_fork(after_in_child=lambda: end_with_parent(signal.SIGKILL))
