"""Run the fuzz targets with hypothesis, or with atheris, which keeps the cases that reach new branches."""

from __future__ import annotations

import faulthandler
import itertools
import mmap
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click

# Targets of little code get fewer cases.
SHARES = {"csv": 4.0, "gzip": 2.0, "parquet": 4.0, "catalogue": 2.0, "encoder": 2.0, "condensed": 0.5, "store": 0.5}
ADDRESS_SPACE = 3 << 30
HANG_SECONDS = 60


@click.command()
@click.option("--cases", type=click.IntRange(1), default=2_000, show_default=True, help="Cases in all.")
@click.option("--seed", type=click.IntRange(1), default=1, help="The same seed makes the same cases.")
@click.option("--target", "chosen", multiple=True, help="Only this target; repeatable.")
@click.option("--atheris", is_flag=True, help="Guide the cases by coverage; needs the extra fuzz.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/fuzzing"), help="Folder for failed cases.")
def main(cases: int, seed: int, chosen: tuple[str, ...], atheris: bool, out: Path) -> None:
    """Feed every reader with hostile input; exit with code 1 if any of it crashed one."""
    if atheris:
        import atheris as driver

        with driver.instrument_imports(include=["c2tc_pipeline", "yaml"], enable_loader_override=False):
            from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS
    else:
        from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS
    if unknown := set(chosen) - set(TARGETS):
        raise click.BadParameter(f"{', '.join(unknown)}; choose from {', '.join(TARGETS)}", param_hint="--target")
    shares = {name: SHARES.get(name, 1.0) for name in chosen or TARGETS}
    failed = []
    for name, share in shares.items():
        # A process for each target: a crash in compiled code ends only that one.
        count = max(1, round(cases * share / sum(shares.values())))
        process = multiprocessing.get_context("fork").Process(target=run, args=(name, count, seed, atheris, out))
        process.start()
        process.join()
        failed += [name] if process.exitcode else []
    if failed:
        sys.exit(f"Crashed: {', '.join(failed)}; the cases are in {out}.")


def run(name: str, cases: int, seed: int, atheris: bool, out: Path) -> None:
    """Run one target; a case that ends this process stays in the output folder."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import seed as seeded

    from c2tc_pipeline_tests.tools.fuzzing.corpus import make_files
    from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS, run_case

    out.mkdir(parents=True, exist_ok=True)
    kept = out / f"{name}.bin"
    counts: Counter[str] = Counter()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as folder:
        good = Path(folder, "good")
        make_files(name, good)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE if Path("/proc").exists() else 0
        resource.setrlimit(resource.RLIMIT_AS, (used + ADDRESS_SPACE, resource.RLIM_INFINITY))

        @seeded(seed)
        @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(TARGETS[name][0](good))
        def test(case: bytes) -> None:
            kept.write_bytes(case)
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            counts[run_case(name, case, good)] += 1

        def report() -> None:
            faulthandler.cancel_dump_traceback_later()
            kept.unlink(missing_ok=True)
            found = f"{counts['value']:>8} values{counts['refusal']:>8} refusals"
            click.echo(f"{name:<12}{counts.total():>8} cases{found}{time.monotonic() - begun:>7.0f} s")
            sys.stdout.flush()

        if atheris:
            _run_atheris(test.hypothesis.fuzz_one_input, cases, seed, Path(folder), report)  # type: ignore[attr-defined]
        else:
            test()
            report()


def _run_atheris(
    test: Callable[[bytes], object], cases: int, seed: int, folder: Path, report: Callable[[], None]
) -> None:
    """Mutate the bytes from which hypothesis draws; atheris ends the process."""
    import atheris

    runs = itertools.count(1)

    def once(data: bytes) -> None:
        test(data)
        if next(runs) == cases:
            report()

    # Shorter inputs end before a case is complete.
    (folder / "seeds").mkdir()
    for number in range(50):
        (folder / "seeds" / str(number)).write_bytes(random.Random(f"{seed} {number}").randbytes(2048))
    options = [f"-runs={cases}", f"-seed={seed}", "-max_len=4096", "-len_control=0", f"-artifact_prefix={folder}/"]
    atheris.Setup([sys.argv[0], *options, str(folder / "seeds")], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
