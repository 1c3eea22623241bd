"""Run the fuzz targets with hypothesis, or with atheris, which keeps the cases that reach new branches."""

from __future__ import annotations

import faulthandler
import itertools
import mmap
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click

SHARES = {"csv": 4, "gzip": 2, "parquet": 4, "catalogue": 2, "encoder": 2, "condensed": 0.5, "store": 0.5}
TARGETS = ("csv", "gzip", "parquet", "sqlite", "catalogue", "experiment", "schema", "address", "name")
TARGETS += ("encoder", "curves", "weights", "manifest", "condensed", "store")
ADDRESS_SPACE = 3 << 30
HANG_SECONDS = 60


@click.command()
@click.option("--cases", type=click.IntRange(1), default=2_000, show_default=True, help="Cases in all.")
@click.option(
    "--seed", type=click.IntRange(1), default=1, show_default=True, help="The same seed makes the same cases."
)
@click.option("--target", "targets", type=click.Choice(TARGETS), multiple=True, help="Only this one; repeatable.")
@click.option("--atheris", is_flag=True, help="Guide the cases by coverage; needs the extra fuzz.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/fuzzing"), help="Folder for failed cases.")
def main(cases: int, seed: int, targets: tuple[str, ...], atheris: bool, out: Path) -> None:
    """Feed every reader with hostile input; exit with code 1 if any of it crashed one."""
    if len(targets) == 1:
        run_target(targets[0], cases, seed, atheris, out)
        return
    chosen = targets or TARGETS
    total = sum(SHARES.get(name, 1) for name in chosen)
    failed = []
    for name in chosen:
        # A process for each target: a crash in compiled code ends only that one.
        share = max(1, round(cases * SHARES.get(name, 1) / total))
        command = [sys.executable, "-m", __package__, "--target", name, "--cases", share, "--seed", seed, "--out", out]
        command += ["--atheris"] if atheris else []
        failed += [name] if subprocess.run([str(part) for part in command], check=False).returncode else []
    if failed:
        sys.exit(f"Crashed: {', '.join(failed)}; the cases are in {out}.")


def run_target(name: str, cases: int, seed: int, atheris: bool, out: Path) -> None:
    """Run one target in this process; a case that ends it stays in the output folder."""
    if atheris:
        import atheris as driver

        with driver.instrument_imports(include=["c2tc_pipeline", "yaml"], enable_loader_override=False):
            from c2tc_pipeline_tests.tools.fuzzing import corpus, targets
    else:
        from c2tc_pipeline_tests.tools.fuzzing import corpus, targets
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded

    out.mkdir(parents=True, exist_ok=True)
    kept = out / f"{name}.bin"
    counts: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as folder:
        good = Path(folder, "good")
        corpus.make_files(name, good)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE if Path("/proc").exists() else 0
        resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, resource.RLIM_INFINITY))

        @seeded(seed)
        @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(targets.TARGETS[name].cases(good))
        def test(case: bytes) -> None:
            kept.write_bytes(case)
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            counts[targets.run_case(name, case, good)] += 1

        def report() -> None:
            faulthandler.cancel_dump_traceback_later()
            kept.unlink(missing_ok=True)
            found = f"{counts['value']:>8} values{counts['refusal']:>8} refusals"
            click.echo(f"{name:<12}{counts.total():>8} cases{found}{time.monotonic() - begun:>7.0f} s")

        if not atheris:
            test()
            report()
            return

        runs = itertools.count(1)

        def once(data: bytes) -> None:
            test.hypothesis.fuzz_one_input(data)  # type: ignore[attr-defined]
            if next(runs) == cases:
                report()

        options = [f"-runs={cases}", f"-seed={seed}", "-max_len=4096", "-timeout=60", f"-artifact_prefix={folder}/"]
        driver.Setup([sys.argv[0], *options], once)
        driver.Fuzz()


if __name__ == "__main__":
    main()
