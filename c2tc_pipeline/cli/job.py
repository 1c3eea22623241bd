"""Directories of ``c2tc condense``: condense one table from its source into one, and forget source rows in one.

Mistakes in the table are reported before scikit-learn and torch are imported, which takes seconds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from c2tc_pipeline.allocation.shares import checked_budget
from c2tc_pipeline.clustering.engines import open_engine
from c2tc_pipeline.common.devices import check_device, resolve_device
from c2tc_pipeline.common.errors import InputError, closest
from c2tc_pipeline.common.stages import Listener, StageClock
from c2tc_pipeline.condensation import ARTEFACT_KIND
from c2tc_pipeline.evaluation.row_worth import SCORES_NAME, class_means, mean_scores, row_worth
from c2tc_pipeline.reports.verdict import verdict
from c2tc_pipeline.sources.addresses import SHOWN_STANDARD_INPUT
from c2tc_pipeline.storage.artefact import check_target, publish_directory, read_manifest
from c2tc_pipeline.storage.cache import ContentCache
from c2tc_pipeline.storage.parquet import read_parquet, write_parquet
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.kinds import to_text
from c2tc_pipeline.tables.spec import TableSpec
from c2tc_pipeline.tables.table import learn_described

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.forget import Forgotten
    from c2tc_pipeline.condensation.table import CondensedTable

SPLIT_NAME = "split.parquet"


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

    ``rows`` condensed rows in all replace the ratio. With ``split`` only the training side of the spec's split is
    condensed, and the side of every row is written; each model is then trained and tested ``trials`` times. The cache
    keeps autoencoder weights, loss curves and scores.
    """
    check_target(out, kind=ARTEFACT_KIND, replace=True)
    # A device that is not there and a cluster that can't be reached are errors before the table is read.
    check_device(spec.settings.device)
    with open_engine(spec.settings.engine):
        pass
    clock = StageClock(listener)
    with clock.stage("read"):
        blocks = Blocks.of_source(spec.source)
    with clock.stage("prepare"):
        table = learn_described(blocks, spec, spec.split if split else None)
    checked_budget(ratio, rows, int(table.class_rows.sum()), len(table.classes))

    from c2tc_pipeline.condensation.steps import condense_table, make_condenser, make_encoder, refuse_repeated
    from c2tc_pipeline.condensation.table import StoredMembership
    from c2tc_pipeline.evaluation.scores import Trials, rows_to_score, score_rows

    resolve_device(spec.settings.device)
    encoder, condenser = make_encoder(spec, cache_dir=cache_dir), make_condenser(spec, ratio, cache_dir=cache_dir)
    condenser.set_params(rows=rows)
    small, encoded = condense_table(
        table, encoder, condenser, name=name, clock=clock, min_category_rows=spec.settings.min_category_rows
    )
    refuse_repeated(small, spec)
    small.summary |= {"source": blocks.shown, "source_digest": blocks.digest}
    scores = None
    if split and trials:
        with clock.stage("evaluate"):
            wanted = Trials(seeds=range(trials), device=spec.settings.device)
            scores = score_rows(
                small,
                rows_to_score(small, table, encoded, wanted),
                wanted,
                cache=None if cache_dir is None else ContentCache(cache_dir),
                listener=listener,
            )
        small.summary |= {
            "verdict": verdict(scores),
            "scores": mean_scores(scores).to_dict(orient="records"),
            "class_scores": class_means(scores).to_dict(orient="records"),
            "row_worth": row_worth(scores).to_dict(orient="records"),
        }
    # In the order of the stages.
    small.summary["seconds"] = dict(clock.seconds)
    small.summary["processor_seconds"] = dict(clock.processor_seconds)

    def write(directory: Path) -> None:
        small.write_with_report(directory)
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


def expand_to_file(directory: Path, out: Path, *, rows: int | None, space: str, class_mix: str, seed: int) -> int:
    """Draw rows from a stored condensed table into a Parquet file, all or nothing; return how many there are."""
    from c2tc_pipeline.condensation.expand import expanded_frame
    from c2tc_pipeline.condensation.table import CondensedTable

    table = CondensedTable.load(directory)
    drawn = expanded_frame(table, rows, space=space, class_mix=class_mix, random_state=seed)
    private = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        write_parquet(drawn, private)
        os.replace(private, out)
    except BaseException:
        private.unlink(missing_ok=True)
        raise
    return len(drawn)


def forget_in_directory(
    directory: Path, wanted: dict[int, str], ids: Path, *, key: str | None = None, source: str | None = None
) -> Forgotten:
    """Forget source rows in a directory that ``c2tc condense`` wrote, all or nothing.

    ``wanted`` are the ids by their line in the file ``ids``.
    """
    from c2tc_pipeline.condensation.forget import forget_rows
    from c2tc_pipeline.condensation.table import CondensedTable

    # Before the table is read: whatever comes in its place from here on is not what is replaced.
    manifest = read_manifest(directory)
    check_target(directory, kind=ARTEFACT_KIND, replace=True)
    table = CondensedTable.load(directory)
    address, digest = source or table.summary.get("source"), table.summary.get("source_digest")
    if address is None or digest is None:
        raise InputError(
            f"Directory {str(directory)!r} does not say which source it was made from; condense the table anew without "
            "the rows."
        )
    if address == SHOWN_STANDARD_INPUT:
        raise InputError(
            f"Directory {str(directory)!r} was made from standard input; name a file of the same content with --source."
        )
    try:
        blocks = Blocks.of_source(address)
    except InputError as error:
        if source is not None:
            raise
        said = str(error).removesuffix(".")
        raise InputError(f"{said}; if the source that was condensed is elsewhere now, name it with --source.") from None
    if blocks.digest != digest:
        raise InputError(
            f"The source {blocks.shown} changed since it was condensed; name an unchanged copy with --source, or "
            "condense the table anew without the rows."
        )
    if key is not None and key not in blocks.columns:
        raise InputError(f"There is no key column {key!r} in {blocks.shown}; {closest(key, blocks.columns)}.")
    rows = find_rows(blocks, wanted, key, ids)
    found = forget_rows(table, blocks, rows)

    def write(target: Path) -> None:
        found.table.write_with_report(target)
        if (directory / SPLIT_NAME).exists():
            split = read_parquet(directory / SPLIT_NAME)
            write_parquet(split[~split["source_row"].isin(rows)].reset_index(drop=True), target / SPLIT_NAME)
        if (directory / SCORES_NAME).exists():
            shutil.copy(directory / SCORES_NAME, target / SCORES_NAME)

    if found.rows:
        publish_directory(directory, write, kind=ARTEFACT_KIND, replace=True, instead_of=manifest)
    return found


def find_rows(blocks: Blocks, ids: dict[int, str], key: str | None, path: Path) -> np.ndarray:
    """Return the positions of the rows that ids name, in the key column or, without one, as positions.

    Messages name the line of the file (``path``) and not the id, since an id may identify a person.
    """
    if key is None:
        count = sum(len(frame) for frame in blocks.frames(blocks.columns[:1]))
        for line, text in ids.items():
            # Not isdigit: that takes other scripts' digits, and int() takes signs and underscores.
            if not (text.isascii() and text.isdecimal()):
                raise InputError(
                    f"Line {line} of {path} is not the position of a row, counted from 0; correct it, or name the "
                    "column that holds the ids with --key."
                )
            # Compared by length first, because a number of a million digits takes long to read.
            digits = text.lstrip("0")
            if len(digits) > 18 or int(digits or 0) >= count:
                raise InputError(
                    f"Line {line} of {path} is beyond the last row of the source, whose position is {count - 1}; "
                    "count rows from 0."
                )
        return np.unique([int(text) for text in ids.values()])
    wanted, known, start = set(ids.values()), set[str](), 0
    rows = [np.empty(0, dtype=np.int64)]
    for frame in blocks.frames([key]):
        values = to_text(frame[key]).str.strip()
        own = values.isin(wanted).to_numpy()
        known.update(values[own])
        rows.append(start + np.flatnonzero(own))
        start += len(frame)
    unknown = [line for line, text in ids.items() if text not in known]
    if unknown:
        lines = "1 more line" if len(unknown) == 2 else f"{len(unknown) - 1:,} more lines"
        more = f", nor is that in {lines}" if len(unknown) > 1 else ""
        raise InputError(
            f"The id in line {unknown[0]} of {path} is not in column {key!r} of the source{more}; correct the file."
        )
    return np.concatenate(rows)
