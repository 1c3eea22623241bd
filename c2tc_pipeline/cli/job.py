"""``c2tc condense``: one table from its source to a directory of results."""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.cli.forgetting import SCORES_NAME, SPLIT_NAME
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.steps import condense_table, make_condenser, make_encoder, refuse_repeated
from c2tc_pipeline.condensation.table import ARTEFACT_KIND, CondensedTable, StoredMembership
from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.evaluation.scores import rows_to_score, score_rows
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline.storage.artefact import check_target, publish_directory
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.parquet import write_parquet
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import learn_table


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
        The table's name in the summary and the report.
    ratio : float
        Condensed rows as a share of the rows.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    split : bool
        Condense the training side of the spec's split only, and write the side of every row.
    trials : int
        With a split: how many times each model is trained on the condensed, a random and the whole table and tested on
        the test side; 0 tests nothing.
    cache_dir : path, optional
        Where autoencoder weights, loss curves and scores are kept.
    listener : callable, optional
        Called with (stage, steps done, steps in all).
    """
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    # A cluster that can't be reached is an error before the table is read.
    with open_engine(spec.settings.engine):
        pass
    clock = StageClock(listener)
    with clock.stage("read"):
        blocks = Blocks.of_source(spec.source)
    encoder, condenser = make_encoder(spec, cache_dir=cache_dir), make_condenser(spec, ratio, cache_dir=cache_dir)
    condenser.set_params(rows=rows)
    with clock.stage("prepare"):
        table = learn_table(blocks, label=spec.label, roles=spec.roles, split=spec.split if split else None)
    small, encoded = condense_table(table, encoder, condenser, name=name, clock=clock)
    refuse_repeated(small, spec)
    small.summary |= {"source": blocks.shown, "source_digest": blocks.digest}
    scores = None
    if split and trials:
        with clock.stage("evaluate"):
            scores = score_rows(
                small,
                *rows_to_score(encoder, table, encoded),
                seeds=range(trials),
                device=spec.settings.device,
                cache=None if cache_dir is None else ContentCache(cache_dir),
                listener=listener,
            )
        small.summary["scores"] = mean_scores(scores).to_dict(orient="records")
    # In the order of the stages.
    small.summary["seconds"] = dict(clock.seconds)
    small.summary["processor_seconds"] = dict(clock.processor_seconds)

    def write(directory: Path) -> None:
        small.write_files(directory)
        (directory / "report.html").write_text(render_report(small), encoding="utf-8")
        if split:
            write_parquet(table.split_frame(), directory / SPLIT_NAME)
        if scores is not None:
            write_parquet(scores, directory / SCORES_NAME)

    with clock.stage("write"):
        publish_directory(out, write, kind=ARTEFACT_KIND, replace=True)
    # Not known when the files were written.
    small.summary["seconds"]["write"] = clock.seconds["write"]
    if isinstance(small.members, StoredMembership):
        small.members = StoredMembership(out / "membership.parquet")
    return small
