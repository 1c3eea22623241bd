"""Work dealt to threads: nothing lost, in forked processes and for several callers, and no process kept alive."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from multiprocessing.queues import SimpleQueue
from threading import Thread

import numpy as np
import pytest

from c2tc_pipeline.clustering.assignment import nearest_centers
from c2tc_pipeline.clustering.dealt_work import deal
from c2tc_pipeline_tests.clustering.test_assignment import case


def _label(X: np.ndarray, centers: np.ndarray, answers: SimpleQueue[bytes]) -> None:
    answers.put(nearest_centers(X, centers, 2).tobytes())


@pytest.mark.skipif(sys.platform != "linux", reason="others do not fork safely")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    X, centers = case(60_000, 150)
    here = nearest_centers(X, centers, 2).tobytes()
    context = multiprocessing.get_context("fork")
    answers: SimpleQueue[bytes] = context.SimpleQueue()
    child = context.Process(target=_label, args=(X, centers, answers))
    child.start()
    assert answers.get() == here
    child.join(30)
    assert child.exitcode == 0
    # The helpers here are those from before.
    assert nearest_centers(X, centers, 2).tobytes() == here


def test_threads_do_not_keep_a_process_alive() -> None:
    code = (
        "import numpy as np; from c2tc_pipeline.clustering.assignment import nearest_centers as near; "
        "X = np.random.default_rng(0).random((60_000, 4)); print(near(X, X[:150], 3).max())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "149"


def test_several_callers_at_once() -> None:
    X, centers = case(60_000, 150)
    alone = nearest_centers(X, centers, 1).tobytes()
    found: list[bytes] = []
    callers = [Thread(target=lambda: found.append(nearest_centers(X, centers, 3).tobytes())) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [alone] * 6


def test_an_error_in_a_helper_is_not_lost() -> None:
    def work(pieces: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        deal(work, [1, 2], 2)
