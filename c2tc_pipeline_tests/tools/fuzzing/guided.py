"""Fuzzing that follows the code: atheris keeps the inputs that reach new branches of the readers and goes on from them.

    python -m c2tc_pipeline_tests.tools.fuzzing.guided catalogue --runs 20000

Needs the extra ``fuzz``. Only Python code is followed: all of this package, and the parser of YAML; of Parquet and
safetensors, which are read by other languages, what is done with what they return. The first crash ends it, and prints
the input.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

FILES = ("catalogue", "experiment", "address", "name", "csv", "gzip", "parquet")
FOLDERS = ("encoder", "curves", "weights", "manifest", "condensed", "store")
"""Their cases are a line that says which file of a folder is changed, and its content; only the content is mutated."""
_SEEDS = 200


class CrashFound(Exception):
    """A reader did not say in one sentence what is wrong."""


@click.command()
@click.argument("target", type=click.Choice(FILES + FOLDERS))
@click.option("--runs", type=click.IntRange(1), default=20_000, show_default=True, help="Cases.")
@click.option("--seed", type=click.IntRange(1), default=1, show_default=True, help="Of the mutations.")
def main(target: str, runs: int, seed: int) -> None:
    """Feed one reader with input that reaches ever more of its branches."""
    # What is imported under its eyes is followed.
    import atheris

    with atheris.instrument_imports(include=["c2tc_pipeline", "yaml"], enable_loader_override=False):
        from c2tc_pipeline_tests.tools.fuzzing.corpus import make_corpus
        from c2tc_pipeline_tests.tools.fuzzing.runner import judged, made_case
        from c2tc_pipeline_tests.tools.fuzzing.targets import GOOD

    with tempfile.TemporaryDirectory(prefix="c2tc-fuzz-") as name:
        good, found, seeds = Path(name, "good"), Path(name, "found"), Path(name, "seeds")
        make_corpus(good)
        found.mkdir()
        mutators = {}
        if target in FOLDERS:
            seeds.mkdir()
            for number in range(_SEEDS):
                (seeds / str(number)).write_bytes(made_case(target, good, seed, number))
            # The name stands for another function once the fuzzing has begun.
            mutators = {"custom_mutator": content_mutator(lambda content, most: atheris.Mutate(content, most))}
        else:
            seeds = good / GOOD[target]
        # Most files end before the position in the largest one.
        longest = max(4096, *(path.stat().st_size for path in seeds.iterdir()))
        counts = {"value": 0, "refusal": 0}

        def once(case: bytes) -> None:
            if target in FOLDERS and b"\n" not in case:
                # The empty case, with which every run begins.
                case = made_case(target, good, seed, 0)
            verdict = judged(target, case, good)
            if verdict.kind == "crash":
                raise CrashFound(f"{verdict.where}: {verdict.told}")
            counts[verdict.kind] += 1
            if sum(counts.values()) == runs:
                click.echo(f"{target}: {runs} cases, {counts['value']} values, {counts['refusal']} refusals, no crash")

        options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={longest}", "-rss_limit_mb=4096", "-timeout=60"]
        # What crashed is printed too, in base64.
        options.append(f"-artifact_prefix={name}/")
        atheris.Setup([sys.argv[0], *options, str(found), str(seeds)], once, **mutators)
        atheris.Fuzz()


def content_mutator(mutate: Callable[[bytes, int], bytes]) -> Callable[[bytes, int, int], bytes]:
    """Return a mutator of cases that are folders: it leaves their first line, and changes JSON value by value too.

    Parameters
    ----------
    mutate : callable
        Changes bytes, up to a length.

    Examples
    --------
    >>> content_mutator(lambda content, most: content[::-1])(b'{"good": "0"}\\nabc', 99, 0)
    b'{"good": "0"}\\ncba'
    """
    from c2tc_pipeline_tests.tools.fuzzing.mutation import mutated_value

    def mutated(case: bytes, longest: int, seed: int) -> bytes:
        line, _, content = case.partition(b"\n")
        rng = random.Random(seed)
        changed = None
        if rng.random() < 0.5:
            try:
                value = mutated_value(json.loads(content), rng)
                changed = json.dumps(value).encode("utf-8", "surrogatepass")
            except (ValueError, RecursionError):
                changed = None
        if changed is None:
            changed = bytes(mutate(content, max(1, longest - len(line) - 1)))
        return (line + b"\n" + changed)[:longest]

    return mutated


if __name__ == "__main__":
    main()
