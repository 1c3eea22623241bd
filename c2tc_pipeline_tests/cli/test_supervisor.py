"""The supervisor of services: order, restarts with growing pauses, and what is left behind; real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from c2tc_pipeline.cli import supervisor as module
from c2tc_pipeline.cli.supervisor import Service, ServiceFailedError, Supervisor

# Writes its process into a file, with a child that only a kill ends, and waits.
PROGRAM = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time\\nsignal.signal(15, 1)\\nwhile 1: time.sleep(60)"])
with open(sys.argv[1], "a") as file:
    print(child.pid, file=file)
while True:
    time.sleep(60)
"""


class Ended(Exception):
    """Ends the watching."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.01)


def service(name: str, folder: Path, code: str = PROGRAM, is_stale: Callable[[int], bool] | None = None) -> Service:
    file = folder / name
    return Service(
        name,
        [sys.executable, "-c", code, str(file)],
        dict(os.environ),
        lambda: file.exists() and file.read_text().endswith("\n"),
        log=folder / f"{name}.log",
        is_stale=is_stale,
    )


def children(folder: Path, name: str) -> list[int]:
    """Return the children that the starts of a service left a note of."""
    return [int(line) for line in (folder / name).read_text().split()]


@contextmanager
def supervised(folder: Path, said: list[str], *services: Service) -> Iterator[Supervisor]:
    supervisor = Supervisor(folder, said.append)
    try:
        for each in services:
            supervisor.start(each)
        yield supervisor
    finally:
        supervisor.stop()


def watch(supervisor: Supervisor, look: Callable[[float], None]) -> None:
    """Watch until a look, in the place of each pause, raises Ended."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.time, "sleep", look)
        with pytest.raises(Ended):
            supervisor.watch()


def is_gone(process: int) -> bool:
    return not psutil.pid_exists(process) or psutil.Process(process).status() == psutil.STATUS_ZOMBIE


def test_services_start_in_order_and_stop_in_reverse_with_their_children(tmp_path: Path) -> None:
    said: list[str] = []
    with supervised(tmp_path, said, service("a", tmp_path), service("b", tmp_path)) as supervisor:
        assert len(list(supervisor.processes())) == 2
    assert [(line.split()[0], line.split()[1]) for line in said] == [
        ("a", "ready"),
        ("b", "ready"),
        ("b", "stopped"),
        ("a", "stopped"),
    ]
    psutil.wait_procs([psutil.Process(p) for p in children(tmp_path, "a") if psutil.pid_exists(p)], timeout=10)
    assert all(is_gone(process) for name in "ab" for process in children(tmp_path, name))


def test_what_ends_is_started_again_after_a_growing_pause_and_its_children_are_killed(tmp_path: Path) -> None:
    said: list[str] = []
    with supervised(tmp_path, said, service("a", tmp_path)) as supervisor:
        seen: set[int] = set()

        def kill_each(_: float) -> None:
            started = children(tmp_path, "a")
            [process] = supervisor.processes()
            if len(started) == 3:
                raise Ended
            if len(started) > len(seen) and process not in seen:
                seen.add(process)
                os.kill(process, signal.SIGKILL)

        watch(supervisor, kill_each)
        assert all(is_gone(process) for process in children(tmp_path, "a")[:2])
        assert not is_gone(children(tmp_path, "a")[2])
    ends = [line for line in said if "ended with code -9" in line]
    assert [line.split()[-2] for line in ends] == ["0.01", "0.02"]


def test_a_service_that_does_not_start_is_named_with_the_end_of_its_log(tmp_path: Path) -> None:
    failing = service("a", tmp_path, "import sys; sys.exit('no such port')")
    with (
        pytest.raises(ServiceFailedError, match=r"(?s)ended with code 1.*no such port"),
        supervised(tmp_path, [], failing),
    ):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent ended")
def test_services_end_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from c2tc_pipeline_tests.cli.test_supervisor import service\n"
        "from c2tc_pipeline.cli.supervisor import Supervisor\n"
        "supervisor = Supervisor(Path(sys.argv[1]), print)\n"
        "supervisor.start(service('a', Path(sys.argv[1]), 'import sys, time\\n"
        'print(1, file=open(sys.argv[1], "a"), flush=True)\\ntime.sleep(600)\'))\n'
        "print(*supervisor.processes(), flush=True)\ninput()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        lines = [parent.stdout.readline(), parent.stdout.readline()]
        process = psutil.Process(int(lines[-1]))
        parent.kill()
    psutil.wait_procs([process], timeout=10)
    assert is_gone(process.pid)
