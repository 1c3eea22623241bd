"""The results of the speed benchmark as files: Parquet, Markdown with one table per part, figures and JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from c2tc_pipeline.bench.speed.run import SpeedRun
from c2tc_pipeline.reports.markdown import columns, markdown_escaped, markdown_table
from c2tc_pipeline.reports.picture import COLOURS, FAINT_INK, INK, Figure, Picture, bar_rows, bar_text, log_scale
from c2tc_pipeline.reports.wording import MISSING, number, seconds, shortened
from c2tc_pipeline.reports.wording import ratio as shown_ratio
from c2tc_pipeline.storage.parquet import write_parquet

ARTEFACT_KIND = "speed"
TITLES = {
    "stages": "Stages, from file to files",
    "search": "Search for the allocation",
    "autoencoder": "Autoencoder",
    "throughput": "Throughput of the clustering",
    "whole": "Against what a user would do instead",
    "rivals": "Against methods that train networks to make rows",
}
_IDLE_LOAD = 0.5
_NUMBERS = ("ours", "took", "times as fast", "measured")
_COLUMNS = columns("table", "what", "ours", "reference", *_NUMBERS[1:], "aim", "holds", "note", numeric=_NUMBERS)


def write_speed(run: SpeedRun, directory: Path, *, command: str = "") -> None:
    """Write a run, and the command that repeats it, into an existing directory."""
    write_parquet(run.rows, directory / "speed.parquet")
    drawn = {part: times_faster(rows) for part, rows in run.rows.groupby("part", sort=False)}
    pictures = {str(part): picture for part, picture in drawn.items() if picture is not None}
    if pictures:
        (directory / "figures").mkdir()
    for part, picture in pictures.items():
        (directory / "figures" / f"{part}.png").write_bytes(picture.png())
    text = speed_markdown(run, command=command, pictures=pictures)
    (directory / "speed.md").write_text(text, encoding="utf-8")
    (directory / "speed.json").write_text(json.dumps(run.facts(), indent=2) + "\n", encoding="utf-8")


def times_faster(rows: pd.DataFrame) -> Picture | None:
    """Draw how many times longer each reference takes than ours on a logarithmic axis; None without a comparison."""
    bars = rows[rows["times_faster"] > 0].reset_index(drop=True)
    if bars.empty:
        return None
    low, high = min(bars["times_faster"].min() / 2, 0.5), max(bars["times_faster"].max(), 2.0)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        # Leave space for the number at the end of the longest bar.
        log_scale(axes, "x", low, high * (high / low) ** 0.18)
        bar_rows(axes, [_bar_name(bar) for bar in bars.to_dict("records")])
        axes.tick_params(axis="y", labelsize=8)
        for place, bar in enumerate(bars.to_dict("records")):
            value = bar["times_faster"]
            axes.barh(place, value - 1, 0.7, left=1, color=COLOURS[0])
            text = f"{'at least ' if bar['at_least'] else ''}{number(float(f'{value:.3g}'))}"
            bar_text(axes, text, max(value, 1.0), place, color=INK)
        axes.axvline(1, color=FAINT_INK, linewidth=0.8)
        axes.set_xlabel("times as fast")

    return Picture(draw, height=70 + 26 * len(bars))


def _bar_name(bar: Mapping[Any, Any]) -> str:
    where = ", ".join(
        filter(None, [shortened(bar["table"], 28), "" if pd.isna(bar["ratio"]) else shown_ratio(bar["ratio"])])
    )
    measured = ": ".join(filter(None, [str(bar["what"]), where]))
    return f"{shortened(measured, 54)}\nagainst {shortened(bar['reference'], 46)}"


def speed_markdown(run: SpeedRun, *, command: str = "", pictures: Collection[str] = ()) -> str:
    """Return a run as a Markdown document; ``pictures`` are the parts with a figure in the folder beside it."""
    parts = ["# Speed", " ".join(filter(None, [_load(run.machine), _aims(run.rows)]))]
    for part, title in TITLES.items():
        rows = run.rows[run.rows["part"] == part]
        if len(rows):
            picture = f"\n\n![{title}: how many times as fast.](figures/{part}.png)" if part in pictures else ""
            table = markdown_table(_COLUMNS, [_cells(row) for row in rows.to_dict("records")])
            parts.append(f"## {title}\n\n{table}{picture}")
    parts.append(f"## How it was measured\n\n{_method(run.machine, run.settings)}")
    if command:
        parts.append(f"Made by: `{command}`")
    return "\n\n".join(parts) + "\n"


def _load(machine: Mapping[Any, Any]) -> str:
    load = machine.get("load_before")
    if load is None or load < _IDLE_LOAD:
        return ""
    return f"The machine was not idle: in the minute before, {load:.1f} processes wanted its {machine['cores']} cores."


def _aims(rows: pd.DataFrame) -> str:
    aimed = rows[rows["aim"] != ""]
    unknown = int(aimed["holds"].isna().sum())
    rest = f"; {unknown} can't be judged" if unknown else ""
    return f"{int(aimed['holds'].eq(True).sum())} of {len(aimed)} aims are reached{rest}."


def _cells(row: Mapping[Any, Any]) -> list[str]:
    where = row["table"] if pd.isna(row["ratio"]) else f"{row['table']}, {shown_ratio(row['ratio'])}"
    ours, took = (MISSING if pd.isna(row[name]) else seconds(row[name]) for name in ("seconds", "reference_seconds"))
    faster = MISSING if pd.isna(row["times_faster"]) else number(float(f"{row['times_faster']:.3g}"))
    holds = MISSING
    if row["aim"]:
        holds = "can't be judged" if pd.isna(row["holds"]) else ("yes" if row["holds"] else "no")
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
        row["note"],
    ]


def _measured(row: Mapping[Any, Any]) -> str:
    """Return the measured objective, or the row's own amount."""
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
            f"- Machine: {machine['cores']} cores, {markdown_escaped(machine['processor'])}, "
            f"{machine['torch_threads']} threads; {markdown_escaped(machine['system'])}.",
            f"- Python {machine['python']}; {markdown_escaped(versions)}.",
        ]
    )
