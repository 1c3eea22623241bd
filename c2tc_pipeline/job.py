"""One described table, from its source to a directory of results: what a command, or a pipeline step, runs.

Reading, splitting, condensing, reporting and publishing meet here and nowhere else.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from c2tc_pipeline.condensation import CondensedTable, SingletonWarning, condense
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.table import ARTEFACT_KIND, write_parquet
from c2tc_pipeline.evaluation.scores import evaluate_condensed, mean_scores
from c2tc_pipeline.notices import Notice
from c2tc_pipeline.reports import render_report
from c2tc_pipeline.storage import ContentCache, publish_directory
from c2tc_pipeline.storage.artefact import check_target
from c2tc_pipeline.tables import TableSpec, duplicate_groups, prepare_table, read_table, split_rows


def condense_to_directory(
    spec: TableSpec,
    out: Path,
    *,
    name: str,
    ratio: float,
    rows: int | None = None,
    split: bool = False,
    trials: int = 0,
    cache_dir: Path | None = None,
    listener: Listener | None = None,
) -> CondensedTable:
    """Read a table, condense it, and write the result with its report; all of it or nothing.

    Parameters
    ----------
    spec : TableSpec
        The table, with a source that can be opened from here, and its settings.
    out : path
        Directory to write; one that was written here before is replaced.
    name : str
        What the table is called in the summary and the report.
    ratio : float
        Condensed rows as a share of the rows.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    split : bool
        Condense the training part of the spec's split only, and write down which row is where.
    trials : int
        With a split: how many times each model is trained on the condensed, a random and the whole table and tested on
        the test part; 0 tests nothing.
    cache_dir : path, optional
        Where autoencoder weights and loss curves are kept.
    listener : callable, optional
        Told about progress: (stage, steps done, steps in all).
    """
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    clock = StageClock(listener)
    with clock.stage("read"):
        frame = read_table(spec.source)
    sides: pd.DataFrame | None = None
    notices: list[Notice] = []
    if split:
        with clock.stage("split"):
            sides, notices = split_table(frame, spec)
    settings = spec.settings.model_dump()
    with warnings.catch_warnings():
        # The count of singletons is among the notices.
        warnings.simplefilter("ignore", SingletonWarning)
        table = condense(
            frame if sides is None else frame.loc[(sides["side"] == "train").to_numpy()],
            spec.label,
            ratio,
            rows=rows,
            roles=spec.roles,
            validation=None if sides is None else frame.loc[(sides["side"] == "validation").to_numpy()],
            cache_dir=cache_dir,
            random_state=settings.pop("seed"),
            name=name,
            listener=listener,
            **settings,
        )
    if sides is not None:
        positions = sides.loc[sides["side"] == "train", "source_row"].to_numpy()
        table.membership["source_row"] = positions[table.membership["source_row"]]
    table.notices = [*notices, *table.notices]
    table.summary["source"] = spec.source
    scores = None
    if sides is not None and trials:
        with clock.stage("evaluate"):
            scores = evaluate_condensed(
                table,
                frame.loc[(sides["side"] == "train").to_numpy()],
                frame.loc[(sides["side"] == "test").to_numpy()],
                seeds=range(trials),
                device=spec.settings.device,
                cache=None if cache_dir is None else ContentCache(cache_dir),
                listener=listener,
            )
        table.summary["scores"] = mean_scores(scores).to_dict(orient="records")
    evaluating = {"evaluate": clock.seconds.pop("evaluate")} if scores is not None else {}
    table.summary["seconds"] = {**clock.seconds, **table.summary["seconds"], **evaluating}

    def write(directory: Path) -> None:
        table.write_files(directory)
        (directory / "report.html").write_text(render_report(table), encoding="utf-8")
        if sides is not None:
            write_parquet(sides, directory / "split.parquet")
        if scores is not None:
            write_parquet(scores, directory / "scores.parquet")

    with clock.stage("write"):
        publish_directory(out, write, kind=ARTEFACT_KIND, replace=True)
    # The files were written without knowing it.
    table.summary["seconds"]["write"] = clock.seconds["write"]
    return table


def split_table(frame: pd.DataFrame, spec: TableSpec) -> tuple[pd.DataFrame, list[Notice]]:
    """Return the side of every row ("train", "validation", "test" or "no label"), and notices about rows left out.

    Examples
    --------
    >>> table = pd.DataFrame({"x": range(40), "y": ["a", "b"] * 20})
    >>> sides, _ = split_table(table, TableSpec(name="t", source="t.csv", label="y", roles={"x": "numeric"}))
    >>> sorted(sides["side"].value_counts().items())
    [('test', 4), ('train', 32), ('validation', 4)]
    """
    prepared = prepare_table(frame, label=spec.label, roles=spec.roles)
    chosen = spec.split
    groups = duplicate_groups(prepared.X) if chosen.group_duplicates else None
    parts = split_rows(prepared.y, validation=chosen.validation, test=chosen.test, seed=chosen.seed, groups=groups)
    side = np.full(len(frame), "no label", dtype=object)
    for part in ("train", "validation", "test"):
        side[prepared.row_ids[getattr(parts, part)]] = part
    sides = pd.DataFrame({"source_row": np.arange(len(frame)), "side": pd.Series(side, dtype="str")})
    # Whatever else was noticed is noticed again in the training part.
    return sides, [notice for notice in prepared.notices if notice.kind == "missing_labels"]
