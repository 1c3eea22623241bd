"""The files of a benchmark of speed: its rows, what they say, a picture of each part and the machine."""

from __future__ import annotations

import json
from pathlib import Path

from c2tc_pipeline.bench.reports.speed_figure import times_faster
from c2tc_pipeline.bench.reports.speed_markdown import speed_markdown
from c2tc_pipeline.bench.speed.run import SpeedRun
from c2tc_pipeline.storage.parquet import write_parquet

ARTEFACT_KIND = "speed"


def write_speed(run: SpeedRun, directory: Path, *, command: str = "") -> None:
    """Write a run into an existing directory.

    Parameters
    ----------
    run : SpeedRun
        What was measured.
    directory : path
        Where to.
    command : str
        What makes the same again, for people.
    """
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
