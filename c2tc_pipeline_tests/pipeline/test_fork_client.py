"""Commands that are copies of a prepared process: what they find there, and when another one is prepared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from c2tc_pipeline.pipeline import fork_client
from c2tc_pipeline.pipeline.fork_client import ForkClient
from c2tc_pipeline.pipeline.instance import prepare_home
from c2tc_pipeline.pipeline.preloading import PRELOADED

pytestmark = pytest.mark.slow

# What a copy tells of itself when a command of Dagster calls it, through a named pipe.
TOLD = """
import json, os, signal, sys
import dagster as dg

@dg.definitions
def defs():
    found = {
        "modules": sorted(sys.modules),
        "SIGINT": signal.getsignal(signal.SIGINT) is not signal.SIG_IGN,
        "SIGCHLD": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
    }
    # Once: Dagster asks for definitions several times.
    if not hasattr(sys, "told"):
        sys.told = True
        with open(os.environ["TOLD"], "w") as pipe:
            json.dump(found, pipe)
    return dg.Definitions()
"""


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkClient]:
    os.mkfifo(tmp_path / "told")
    (tmp_path / "telling.py").write_text(TOLD)
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("DAGSTER_HOME", str(prepare_home(tmp_path / "home")))
    client = ForkClient()
    yield client
    client.close()


def ask(client: ForkClient, folder: Path) -> dict[str, object]:
    """Start a command that loads definitions, and return what they told."""
    client.start(["asset", "list", "-f", str(folder / "telling.py")])
    with (folder / "told").open() as pipe:
        told: dict[str, object] = json.load(pipe)
    return told


def test_a_copy_has_everything_imported_and_handles_signals_itself(client: ForkClient, tmp_path: Path) -> None:
    told = ask(client, tmp_path)
    assert set(PRELOADED) <= set(told["modules"])  # type: ignore[call-overload]
    assert (told["SIGINT"], told["SIGCHLD"]) == (True, True)


def test_one_prepared_process_serves_many_and_another_takes_its_place_when_it_is_killed(
    client: ForkClient, tmp_path: Path
) -> None:
    ask(client, tmp_path)
    first = client._server
    assert first is not None
    ask(client, tmp_path)
    assert client._server is first
    first.kill()
    first.wait()
    ask(client, tmp_path)
    assert client._server is not None
    assert client._server.pid != first.pid


def test_another_one_is_prepared_when_the_code_has_changed(
    client: ForkClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(client, tmp_path)
    first = client._server
    assert first is not None
    monkeypatch.setattr(fork_client, "_state_of_sources", lambda: (0, 0))
    ask(client, tmp_path)
    assert client._server is not first
    # Nobody can ask the first one any more, so that it has ended or is about to.
    assert first.wait(60) == 0


def test_a_change_of_any_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.py").write_text("")
    monkeypatch.setattr(fork_client, "_PACKAGE", tmp_path)
    states = [fork_client._state_of_sources()]
    (tmp_path / "b.py").write_text("")
    states.append(fork_client._state_of_sources())
    os.utime(tmp_path / "inner" / "a.py", ns=(2**62, 2**62))
    states.append(fork_client._state_of_sources())
    assert len(set(states)) == 3


def test_a_process_that_cannot_be_prepared_is_told(client: ForkClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_client, "_SERVER", "c2tc_pipeline.no_such_module")
    with pytest.raises(ConnectionError, match="ended or hangs instead of answering"):
        client.start(["--version"])


# A copy of this process is what multiprocessing forks from: it has what was imported here, and a number of its own.
STEPS = """
import multiprocessing, os, sys
from c2tc_pipeline.pipeline.step_forks import fork_steps_from_here

def tell(pipe):
    pipe.send((os.getppid(), "wave" in sys.modules, os.environ.get("LATER")))

if __name__ == "__main__":
    import wave
    assert fork_steps_from_here()
    assert not fork_steps_from_here()
    os.environ["LATER"] = "set in the run"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["sndhdr"])
    ours, theirs = context.Pipe()
    for _ in range(2):
        process = context.Process(target=tell, args=(theirs,))
        process.start()
        print(*ours.recv(), os.getpid())
        process.join()
        assert process.exitcode == 0
"""


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="multiprocessing starts its server in another way")
def test_steps_are_copies_of_what_their_run_is_a_copy_of(tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    root = str(Path(fork_client.__file__).parents[2])
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env={"PYTHONPATH": root}
    )
    assert done.returncode == 0, done.stderr
    first, second = (line.split() for line in done.stdout.splitlines())
    server, imported, later, run = first
    assert (imported, later) == ("True", "None")
    assert server not in (run, "1")
    assert second == first
