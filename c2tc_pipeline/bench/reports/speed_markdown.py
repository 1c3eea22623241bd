"""The benchmark of speed as Markdown: what was aimed at and reached, one table a part, and the machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.speed.measuring import TOO_MUCH, Noise
from c2tc_pipeline.bench.speed.run import SpeedRun
from c2tc_pipeline.reports.markdown import markdown_escaped, markdown_table
from c2tc_pipeline.reports.markup import Column
from c2tc_pipeline.reports.wording import MISSING, number, seconds, share

TITLES = {
    "stages": "Stages, from file to files",
    "search": "Search for the allocation",
    "autoencoder": "Autoencoder",
    "throughput": "Throughput of the clustering",
    "whole": "Against what a user would do instead",
    "rivals": "Against methods that train networks to make rows",
}
# Processes that want to run on a machine that nobody uses, at most.
_IDLE = 0.5
_COLUMNS = [
    Column("table"),
    Column("what"),
    Column("ours", True),
    Column("reference"),
    Column("took", True),
    Column("times as fast", True),
    Column("measured", True),
    Column("aim"),
    Column("holds"),
    Column("note"),
]


def speed_markdown(run: SpeedRun, *, command: str = "", pictures: Collection[str] = ()) -> str:
    """Return a run as a Markdown document.

    Parameters
    ----------
    run : SpeedRun
        What was measured.
    command : str
        What makes the same again.
    pictures : collection of str
        The parts that have a picture in the folder ``figures`` beside the document.

    Examples
    --------
    >>> from c2tc_pipeline.bench.speed.measuring import SpeedRow, to_frame
    >>> rows = to_frame([SpeedRow(part="stages", table="covertype", what="read", seconds=1.5)])
    >>> machine = {"cores": 2, "processor": "abacus", "system": "", "python": "3", "versions": {}, "torch_threads": 2}
    >>> print(speed_markdown(SpeedRun(rows, Noise.of([0.05]), machine, {"repeats": 3, "time_limit": 300.0})))
    # Speed
    ...
    | covertype | read | 1.5 s |...
    """
    parts = ["# Speed", " ".join([noise_sentence(run.noise), *_busy(run.machine)]), _aims(run.rows)]
    for part, title in TITLES.items():
        rows = run.rows[run.rows["part"] == part]
        if len(rows):
            picture = f"\n\n![{title}: how many times as fast.](figures/{part}.png)" if part in pictures else ""
            parts.append(
                f"## {title}\n\n{markdown_table(_COLUMNS, [_cells(row) for row in rows.to_dict('records')])}{picture}"
            )
    if run.left_out:
        parts.append("## Left out\n\n" + "\n".join(f"- {markdown_escaped(sentence)}" for sentence in run.left_out))
    parts.append(f"## How it was measured\n\n{_method(run.machine, run.settings)}")
    if command:
        parts.append(f"Made by: `{command}`")
    return "\n\n".join(parts) + "\n"


def noise_sentence(noise: Noise) -> str:
    """Say how steady the machine was.

    Examples
    --------
    >>> noise_sentence(Noise.of([0.05, 0.05, 0.2, 0.2]))[:51]
    'The machine was too noisy to tell: the same piece o'
    """
    wide = share(noise.third / noise.first - 1) if noise.first else share(0.0)
    timed = (
        f"the same piece of work, timed {noise.samples} times, took {wide} longer at its third quartile than at its "
        "first"
    )
    if noise.too_much:
        return f"The machine was too noisy to tell: {timed}. Measure again when nothing else runs."
    return f"The machine was steady: {timed}. Rows marked 'noisy' were measured in a moment when it was not."


def _busy(machine: Mapping[Any, Any]) -> list[str]:
    load = machine.get("load_before")
    if load is None or load < _IDLE:
        return []
    return [f"It was not idle: in the minute before, {load:.1f} processes wanted its {machine['cores']} cores."]


def _aims(rows: pd.DataFrame) -> str:
    aimed = rows[rows["aim"] != ""]
    reached = int(aimed["holds"].eq(True).sum())
    unknown = int(aimed["holds"].isna().sum())
    untold = f"; {unknown} can't be told" if unknown else ""
    return f"{reached} of {len(aimed)} aims are reached{untold}."


def _cells(row: Mapping[Any, Any]) -> list[str]:
    where = row["table"] if pd.isna(row["ratio"]) else f"{row['table']}, {share(row['ratio'])}"
    ours, took = (MISSING if pd.isna(row[name]) else seconds(row[name]) for name in ("seconds", "reference_seconds"))
    faster = MISSING if pd.isna(row["times_faster"]) else number(float(f"{row['times_faster']:.3g}"))
    holds = MISSING if not row["aim"] else ("can't be told" if pd.isna(row["holds"]) else _YES_NO[bool(row["holds"])])
    return [
        where or MISSING,
        row["what"],
        ours,
        row["reference"] or MISSING,
        took,
        f"at least {faster}" if row["at_least"] else faster,
        _measured(row),
        row["aim"] or MISSING,
        holds,
        "; ".join(filter(None, ["noisy" if row["noisy"] else "", row["note"]])),
    ]


_YES_NO = {True: "yes", False: "no"}


def _measured(row: Mapping[Any, Any]) -> str:
    """Word what was measured beside the time: the objective, or the row's own amount."""
    if not pd.isna(row["objective"]):
        return f"objective {_pair(row['objective'], row['reference_objective'])}"
    return MISSING if pd.isna(row["amount"]) else f"{_pair(row['amount'], row['reference_amount'])} {row['unit']}"


def _pair(own: float, other: float) -> str:
    return number(own) if pd.isna(other) else f"{number(own)} against {number(other)}"


def _method(machine: Mapping[Any, Any], settings: Mapping[Any, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    return "\n".join(
        [
            f"- Ours: the median; repeats: {settings['repeats']}. References that take long: once. A reference "
            f"that can be stopped is stopped after {settings['time_limit']:g} s, and the ratio is then a lower bound.",
            "- Noise: a matrix product is timed around every measurement. A row is noisy when one of its own took "
            f"more than {TOO_MUCH:g} times the median of all.",
            f"- Machine: {machine['cores']} cores, {markdown_escaped(machine['processor'])}, "
            f"{machine['torch_threads']} threads; {markdown_escaped(machine['system'])}.",
            f"- Python {machine['python']}; {markdown_escaped(versions)}.",
        ]
    )
