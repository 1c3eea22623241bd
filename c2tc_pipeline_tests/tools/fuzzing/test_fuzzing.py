"""The fuzzer itself, a few cases of every target, and every input that once crashed a reader."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline_tests.tools.fuzzing import verdicts
from c2tc_pipeline_tests.tools.fuzzing.corpus import make_corpus
from c2tc_pipeline_tests.tools.fuzzing.runner import judged, made_case, run_cases
from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS
from c2tc_pipeline_tests.tools.fuzzing.verdicts import judge

FOUND = sorted(Path(__file__).with_name("found").glob("*.bin"))
CASES = 12


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzzing") / "good"
    make_corpus(folder)
    return folder


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_an_input_that_once_crashed_is_refused_or_read(good: Path, path: Path) -> None:
    verdict = judged(path.stem.partition("-")[0], path.read_bytes(), good)
    assert verdict.kind != "crash", verdict


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_cases_of_every_target(good: Path, target: str) -> None:
    crashes = []
    for number in range(CASES):
        verdict = judged(target, made_case(target, good, 12, number), good)
        crashes += [(number, verdict)] if verdict.kind == "crash" else []
    assert crashes == []


@pytest.mark.parametrize("target", TARGETS)
def test_good_input_is_read(good: Path, target: str) -> None:
    """A reader that refused everything would pass all other tests."""
    assert any(judged(target, made_case(target, good, 3, number), good).kind == "value" for number in range(100))


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_number_makes_the_same_case(good: Path, target: str) -> None:
    cases = {made_case(target, good, 0, number) for number in range(8)}
    assert cases == {made_case(target, good, 0, number) for number in range(8)}
    assert len(cases) > 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, "value"),
        (InputError("There is no file a.csv; check the path."), "refusal"),
        (InputError("no sentence"), "crash"),
        (KeyError("label"), "crash"),
        (ConnectionError("The server went away while it was read."), "crash"),
        (RecursionError("too deep"), "crash"),
        (MemoryError(), "crash"),
    ],
)
def test_what_counts_as_a_crash(error: Exception | None, kind: str) -> None:
    def call() -> None:
        if error is not None:
            raise error

    assert judge(call).kind == kind


def test_a_case_that_goes_on_and_on_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "SECONDS", 0.05)

    def call() -> None:
        while True:
            pass

    assert judge(call).where.startswith("_TookTooLong")


def test_a_case_that_takes_memory_is_a_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter((100, 100 + verdicts.MEGABYTES + 1))
    monkeypatch.setattr(verdicts, "_peak_megabytes", lambda: next(readings))
    assert judge(lambda: None).where.startswith("memory")


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process alone is known on Linux")
def test_a_case_that_takes_memory_is_found_below_a_process_that_had_more() -> None:
    program = textwrap.dedent("""
        from c2tc_pipeline_tests.fuzzing import verdicts
        verdicts.MEGABYTES = 100
        print(verdicts.judge(lambda: len(b"1" * 200_000_000)).where)
    """)
    # The ru_maxrss of a process begins with that of the one that starts it.
    held = b"1" * 400_000_000
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert told.startswith("memory")
    assert len(held) > 200_000_000


@pytest.mark.faults
def test_a_process_that_dies_is_counted_and_the_rest_is_run(good: Path, tmp_path: Path) -> None:
    # A folder of good inputs that is not there ends every process at its first case.
    figures = run_cases("csv", tmp_path / "nowhere", seed=0, cases=3)
    assert [crash.number for crash in figures.crashes] == [0, 1, 2]
    figures = run_cases("csv", good, seed=0, cases=300)
    assert (figures.cases, figures.values + figures.refusals, figures.crashes) == (300, 300, [])
