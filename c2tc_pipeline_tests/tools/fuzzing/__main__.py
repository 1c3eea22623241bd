"""Run the fuzz targets: ``python -m c2tc_pipeline_tests.tools.fuzzing --cases 100000``."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from c2tc_pipeline_tests.tools.fuzzing.corpus import make_corpus
from c2tc_pipeline_tests.tools.fuzzing.runner import Figures, made_case, run_cases
from c2tc_pipeline_tests.tools.fuzzing.targets import TARGETS

# Cases of the readers that take longer are fewer.
SHARES = {"csv": 4, "gzip": 2, "parquet": 4, "catalogue": 2, "encoder": 2, "condensed": 0.5, "store": 0.5}


@click.command()
@click.option("--cases", type=click.IntRange(1), default=2_000, show_default=True, help="Cases in all.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed makes the same cases.")
@click.option("--target", "chosen", type=click.Choice(sorted(TARGETS)), multiple=True, help="Only this; repeatable.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the figures and the inputs that crashed.")
def main(cases: int, seed: int, chosen: tuple[str, ...], out: Path | None) -> None:
    """Feed readers with hostile input; exit code 1 if any of it crashed one."""
    targets = chosen or tuple(TARGETS)
    weight = sum(SHARES.get(name, 1) for name in targets)
    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as name:
        good = Path(name, "good")
        make_corpus(good)
        click.echo(f"{'target':<12}{'cases':>9}{'values':>9}{'refusals':>10}{'crashes':>9}{'seconds':>9}")
        done = []
        for target in targets:
            share = max(1, round(cases * SHARES.get(target, 1) / weight))
            figures = run_cases(target, good, seed=seed, cases=share)
            done.append(figures)
            _print(figures)
            if out is not None:
                _keep(figures, good, seed, out)
    total = Figures("all")
    for figures in done:
        total.cases += figures.cases
        total.values += figures.values
        total.refusals += figures.refusals
        total.seconds += figures.seconds
        total.crashes += figures.crashes
    _print(total)
    sys.exit(1 if total.crashes else 0)


def _print(figures: Figures) -> None:
    counts = f"{figures.cases:>9}{figures.values:>9}{figures.refusals:>10}{len(figures.crashes):>9}"
    click.echo(f"{figures.target:<12}{counts}{figures.seconds:>9.0f}")
    if figures.target != "all":
        for where, count in figures.distinct.most_common():
            example = next(crash for crash in figures.crashes if crash.where == where)
            click.echo(f"    {count} x {where}; case {example.number}: {example.told[:300]}")
    sys.stdout.flush()


def _keep(figures: Figures, good: Path, seed: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{figures.target}.json").write_text(json.dumps(asdict(figures), indent=1) + "\n")
    for where in figures.distinct:
        crash = next(crash for crash in figures.crashes if crash.where == where)
        content = made_case(figures.target, good, seed, crash.number)
        (out / f"{figures.target}-{crash.number}.bin").write_bytes(content)


if __name__ == "__main__":
    main()
