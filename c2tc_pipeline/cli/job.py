"""One described table, from its source to a directory of results: what a command, or a pipeline step, runs.

Reading, splitting, condensing, reporting and publishing meet here and nowhere else.
"""

from __future__ import annotations

from pathlib import Path

from c2tc_pipeline.cli.forgetting import SCORES_NAME, SPLIT_NAME, check_key
from c2tc_pipeline.clustering.executor import open_executor
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.freed_memory import give_back_freed_memory
from c2tc_pipeline.condensation.api import condense_prepared
from c2tc_pipeline.condensation.job import make_condenser, make_encoder, refuse_repeated
from c2tc_pipeline.condensation.membership import StoredMembership
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.streamed import condense_blocks
from c2tc_pipeline.condensation.table import ARTEFACT_KIND, CondensedTable
from c2tc_pipeline.evaluation.averages import mean_scores
from c2tc_pipeline.evaluation.scores import evaluate_condensed
from c2tc_pipeline.reports.html import render_report
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.storage.artefact import ScratchDirectory, check_target, publish_directory
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.parquet import write_parquet
from c2tc_pipeline.tables.blocks import SourceBlocks, is_large
from c2tc_pipeline.tables.delivery import read_delivery
from c2tc_pipeline.tables.preparation import prepare_table
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.validated import validate_table


def condense_to_directory(
    spec: TableSpec,
    out: Path,
    *,
    name: str,
    ratio: float,
    rows: int | None = None,
    split: bool = False,
    trials: int = 0,
    key: str | None = None,
    cache_dir: Path | None = None,
    listener: Listener | None = None,
    blocks: bool | None = None,
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
    key : str, optional
        The column by whose values rows may later be forgotten; its name is recorded, and nothing else of it.
    cache_dir : path, optional
        Where autoencoder weights and loss curves are kept.
    listener : callable, optional
        Told about progress: (stage, steps done, steps in all).
    blocks : bool, optional
        Whether the table is gone through block by block instead of being read into memory; by default it is when it is
        large (:func:`c2tc_pipeline.tables.blocks.is_large`) and not to be split. The result is the same.
    """
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    # A cluster that cannot be reached is told about before a table is read for it.
    with open_executor(spec.settings.engine):
        pass
    if blocks and split:
        raise InputError("A split needs the whole table in memory; leave out --blocks, or --split and --evaluate.")
    if blocks or (blocks is None and not split and is_large(open_source(spec.source))):
        return _condense_in_blocks(
            spec, out, name=name, ratio=ratio, rows=rows, key=key, cache_dir=cache_dir, clock=StageClock(listener)
        )
    clock = StageClock(listener)
    with clock.stage("read"):
        delivery = read_delivery(spec.source)
        frame = delivery.frame
    check_key(key, frame.columns, delivery.shown_address)
    encoder, condenser = make_encoder(spec, cache_dir=cache_dir), make_condenser(spec, ratio, cache_dir=cache_dir)
    condenser.set_params(rows=rows)
    scores = None
    with clock.stage("prepare"):
        if split:
            validated = validate_table(frame, spec)
            prepared, notices = validated.prepared(), validated.notices
        else:
            prepared, notices = prepare_table(frame, label=spec.label, roles=spec.roles), []
    table = condense_prepared(
        frame,
        prepared,
        encoder,
        condenser,
        validation=validated.part("validation") if split else None,
        name=name,
        clock=clock,
        given_roles=spec.roles,
    )
    refuse_repeated(table, spec)
    table.notices = [*notices, *table.notices]
    table.summary |= {"source": delivery.shown_address, "source_digest": delivery.digest, "key": key}
    if split and trials:
        with clock.stage("evaluate"):
            scores = evaluate_condensed(
                table,
                validated.part("train"),
                validated.part("test"),
                seeds=range(trials),
                device=spec.settings.device,
                cache=None if cache_dir is None else ContentCache(cache_dir),
                listener=listener,
            )
        table.summary["scores"] = mean_scores(scores).to_dict(orient="records")
    # In the order in which the stages came, however long each took.
    table.summary["seconds"] = dict(clock.seconds)
    table.summary["processor_seconds"] = dict(clock.processor_seconds)

    def write(directory: Path) -> None:
        table.write_files(directory)
        (directory / "report.html").write_text(render_report(table), encoding="utf-8")
        if split:
            write_parquet(validated.split_frame(), directory / SPLIT_NAME)
        if scores is not None:
            write_parquet(scores, directory / SCORES_NAME)

    with clock.stage("write"):
        publish_directory(out, write, kind=ARTEFACT_KIND, replace=True)
    # The files were written without knowing it.
    table.summary["seconds"]["write"] = clock.seconds["write"]
    return table


def _condense_in_blocks(
    spec: TableSpec,
    out: Path,
    *,
    name: str,
    ratio: float,
    rows: int | None,
    key: str | None,
    cache_dir: Path | None,
    clock: StageClock,
) -> CondensedTable:
    """Condense a table that need not fit in memory; the encoded rows are in a temporary folder meanwhile."""
    encoder, condenser = make_encoder(spec, cache_dir=cache_dir), make_condenser(spec, ratio, cache_dir=cache_dir)
    condenser.set_params(rows=rows)
    source = open_source(spec.source)
    check_key(key, source.header().columns, source.shown)
    give_back_freed_memory()
    with ScratchDirectory() as made:
        folder = Path(made)
        with clock.stage("read"):
            blocks = SourceBlocks(source, folder)
        table = condense_blocks(
            blocks,
            folder,
            label=spec.label,
            roles=dict(spec.roles),
            encoder=encoder,
            condenser=condenser,
            name=name,
            clock=clock,
        )
        refuse_repeated(table, spec)
        table.summary |= {"source": source.shown, "source_digest": blocks.digest, "key": key}
        table.summary["seconds"] = dict(clock.seconds)
        table.summary["processor_seconds"] = dict(clock.processor_seconds)

        def write(directory: Path) -> None:
            table.write_files(directory)
            (directory / "report.html").write_text(render_report(table), encoding="utf-8")

        with clock.stage("write"):
            publish_directory(out, write, kind=ARTEFACT_KIND, replace=True)
    table.summary["seconds"]["write"] = clock.seconds["write"]
    table.members = StoredMembership(out / "membership.parquet")
    return table
