"""Running many cases: in a process of its own, which may die, run out of memory or hang without ending the rest.

The process writes the number of each case into a file before it begins, so that the one it died of is known.
"""

from __future__ import annotations

import json
import mmap
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from c2tc_pipeline_tests.tools.fuzzing.targets import GOOD, TARGETS
from c2tc_pipeline_tests.tools.fuzzing.verdicts import SECONDS, Verdict, judge

ADDRESS_SPACE = 3 << 30
"""Bytes that a process may ask for beyond what it has when it begins."""
# Seconds on the clock, where those of the processor are not used up; a machine that others use may be slow.
_HANGS_AFTER = 30 * SECONDS
# What the process writes when its last case is done: it may take its time to end.
_DONE = b"\xff" * 8
_MANY_DEATHS = 50
# Files in memory: a disk would take most of the time.
_QUICK = "/dev/shm"


@dataclass
class Crash:
    """A case that crashed."""

    target: str
    number: int
    told: str
    where: str


@dataclass
class Figures:
    """What became of the cases of one target."""

    target: str
    cases: int = 0
    values: int = 0
    refusals: int = 0
    seconds: float = 0.0
    crashes: list[Crash] = field(default_factory=list)

    @property
    def distinct(self) -> Counter[str]:
        """How often each place crashed."""
        return Counter(crash.where for crash in self.crashes)


def made_case(target: str, good: Path, seed: int, number: int) -> bytes:
    """Return a case; the same numbers give the same bytes."""
    return TARGETS[target].make(good / GOOD[target], random.Random(f"{target} {seed} {number}"))


def judged(target: str, case: bytes, good: Path) -> Verdict:
    """Read a case in this process."""
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as folder:
        return _judged_in(Path(folder), target, case, good)


def _judged_in(folder: Path, target: str, case: bytes, good: Path) -> Verdict:
    return judge(lambda: TARGETS[target].read(case, good / GOOD[target], folder))


def run_cases(target: str, good: Path, *, seed: int, cases: int) -> Figures:
    """Run cases of one target in processes of their own, and count."""
    figures = Figures(target)
    started = time.monotonic()
    first = deaths = 0
    while first < cases and deaths < _MANY_DEATHS:
        with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as name:
            told, at = Path(name, "told"), Path(name, "at")
            at.write_bytes(bytes(8))
            command = [sys.executable, "-m", f"{__package__}.runner", target, good, seed, first, cases, told, at]
            ended = _watched([str(part) for part in command], at)
            for line in told.read_text().splitlines() if told.exists() else []:
                _count(figures, json.loads(line))
            if ended == "":
                break
            number = int.from_bytes(at.read_bytes(), "little")
            figures.cases += 1
            figures.crashes.append(Crash(target, number, ended, f"process: {ended}"))
            deaths += 1
            first = number + 1
    figures.seconds = time.monotonic() - started
    return figures


def _count(figures: Figures, verdict: dict[str, str | int]) -> None:
    count = int(verdict.get("count", 1))
    figures.cases += count
    figures.values += count if verdict["kind"] == "value" else 0
    figures.refusals += count if verdict["kind"] == "refusal" else 0
    if verdict["kind"] == "crash":
        crash = Crash(figures.target, int(verdict["number"]), str(verdict["told"]), str(verdict["where"]))
        figures.crashes.append(crash)


def _watched(command: list[str], at: Path) -> str:
    """Run a process to its end, and say how it died if it did; one that stays at a case is ended."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    last, since = b"", time.monotonic()
    while process.poll() is None:
        time.sleep(0.2)
        now = at.read_bytes()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > _HANGS_AFTER:
            process.kill()
            process.communicate()
            return "" if now == _DONE else "hangs"
    _, errors = process.communicate()
    if process.returncode == 0:
        return ""
    last_line = errors.strip().splitlines()[-1:] or [""]
    return f"ended with {process.returncode} {last_line[0][:200]}"


def _work(target: str, good: Path, seed: int, first: int, last: int, told: Path, at: Path) -> None:
    """Run cases in this process and write down what became of them."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE if Path("/proc").exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, resource.RLIM_INFINITY))
    with (
        told.open("w") as lines,
        at.open("r+b") as file,
        mmap.mmap(file.fileno(), 8) as place,
        tempfile.TemporaryDirectory(prefix="c2tc-fuzz-", dir=_QUICK if Path(_QUICK).is_dir() else None) as name,
    ):
        folder = Path(name)
        passed: Counter[str] = Counter()
        for number in range(first, last):
            place[:8] = number.to_bytes(8, "little")
            verdict = _judged_in(folder, target, made_case(target, good, seed, number), good)
            for left in folder.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            if verdict.kind == "crash":
                lines.write(json.dumps({"number": number, **asdict(verdict)}) + "\n")
                lines.flush()
            else:
                passed[verdict.kind] += 1
            if sum(passed.values()) >= 200 or number == last - 1:
                for kind, count in passed.items():
                    lines.write(json.dumps({"kind": kind, "count": count}) + "\n")
                lines.flush()
                passed.clear()
        place[:8] = _DONE


if __name__ == "__main__":
    _target, _good, _seed, _first, _last, _told, _at = sys.argv[1:]
    _work(_target, Path(_good), int(_seed), int(_first), int(_last), Path(_told), Path(_at))
