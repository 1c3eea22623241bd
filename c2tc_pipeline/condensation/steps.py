"""The steps from a prepared table to a condensed one, each from values that can be stored to one that can.

:func:`~c2tc_pipeline.condense` takes them in one go; a pipeline takes them one at a time, on different days if need be.
The two steps in between, the plan and the clustering, are :class:`~c2tc_pipeline.condensation.condenser.Condenser`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection

import numpy as np
import pandas as pd

from c2tc_pipeline.common.errors import InputError, Notice
from c2tc_pipeline.common.freed_memory import give_back_once
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import EncodedTable
from c2tc_pipeline.condensation.original import original_rows
from c2tc_pipeline.condensation.partition import ClassOrder
from c2tc_pipeline.condensation.projection import project
from c2tc_pipeline.condensation.repeated import count_repeated
from c2tc_pipeline.condensation.representatives import SingletonWarning, singleton_message
from c2tc_pipeline.condensation.stages import StageClock
from c2tc_pipeline.condensation.summary import roles_table, summarise
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import Progress, TableEncoder
from c2tc_pipeline.tables.kinds import plain, to_text
from c2tc_pipeline.tables.preparation import PreparedTable


def fit_encoder(encoder: TableEncoder, prepared: PreparedTable, *, progress: Progress | None = None) -> TableEncoder:
    """Fit an encoder to prepared training rows.

    Parameters
    ----------
    encoder : TableEncoder
        Unfitted; it is fitted in place and returned.
    prepared : PreparedTable
        The training rows.
    progress : callable, optional
        Called with (steps done, steps in all).
    """
    decided = {column: prepared.roles[column] for column in prepared.X.columns}
    encoder.set_params(roles={name: column.role for name, column in decided.items()})
    encoder.fit(prepared.X, prepared.y, progress=progress, decided=decided)
    return ready_encoder(encoder, str(prepared.y.name))


def ready_encoder(encoder: TableEncoder, label: str) -> TableEncoder:
    """Make a fitted encoder return tables, and refuse a label that has the name of one of its columns."""
    encoder.set_output(transform="pandas")
    if label in encoder.get_feature_names_out():
        raise InputError(f"The label {label!r} has the name of an encoded column; rename the label.")
    return encoder


def encode_table(
    encoder: TableEncoder,
    prepared: PreparedTable,
    by_class: ClassOrder,
    *,
    validation: pd.DataFrame | None = None,
    origin: str = "",
) -> EncodedTable:
    """Encode training rows in the order of their classes, and validation rows beside them.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted to the training rows.
    prepared : PreparedTable
        The training rows.
    by_class : ClassOrder
        Their order by class.
    validation : DataFrame, optional
        Other labelled rows, as they were read.
    origin : str
        The hash of what the training rows are made from.
    """
    X = encoder.add_noise(encoder.encode_rows(prepared.X, by_class.order))
    # Columns on their way are smaller than what glibc returns by itself; clusters take samples where they were.
    give_back_once()
    return EncodedTable(
        X=X,
        edges=by_class.edges,
        names=tuple(str(name) for name in encoder.get_feature_names_out()),
        classes=tuple(str(value) for value in by_class.classes),
        validation=None
        if validation is None
        else _encoded_validation(validation, str(prepared.y.name), encoder, by_class.classes),
        origin=origin,
    )


def condensed_table(
    frame: pd.DataFrame,
    prepared: PreparedTable,
    encoder: TableEncoder,
    encoded: EncodedTable,
    condenser: Condenser,
    centers: np.ndarray,
    by_class: ClassOrder,
    *,
    name: str,
    clock: StageClock,
    chosen_drops: Collection[str] = (),
) -> CondensedTable:
    """Put together the condensed table from what the steps before it made.

    Parameters
    ----------
    frame : DataFrame
        The source table, to which ``prepared.row_ids`` points.
    prepared, encoder, encoded : PreparedTable, TableEncoder, EncodedTable
        The training rows in their three forms.
    condenser : Condenser
        Just after :meth:`~c2tc_pipeline.condensation.condenser.Condenser.condense_sorted`.
    centers : ndarray
        What it returned.
    by_class : ClassOrder
        The order of the training rows.
    name : str
        What the table is called.
    clock : StageClock
        Has timed the steps.
    chosen_drops : collection of str
        Columns that the user wants to be gone, rather than columns that were not worth keeping.
    """
    classes, counts = by_class.classes, condenser.allocation_.counts
    with clock.stage("decode"):
        if condenser.representative == "medoid":
            centers = encoder.encode_rows(prepared.X, condenser.sample_indices_)
        y = pd.Series(np.repeat(classes, counts), name=prepared.y.name).astype(prepared.y.dtype)
        original = original_rows(frame, prepared, chosen_drops, condenser, y)
        repeated = count_repeated(
            frame,
            prepared,
            original,
            condenser.membership_,
            encoded=int(condenser.repeats_.sum()),
            medoids=condenser.representative == "medoid",
        )
        projection = project(
            encoded.X,
            encoded.edges,
            centers,
            np.repeat(np.arange(len(classes)), counts),
            condenser.weights_,
            condenser.random_state,
        )
        projection["label"] = pd.Series(classes[projection["label"]]).astype(prepared.y.dtype)
    return CondensedTable(
        X=pd.DataFrame(centers, columns=encoded.names),
        y=y,
        weight=pd.Series(condenser.weights_, name="weight"),
        original=original,
        members=pd.DataFrame({"source_row": prepared.row_ids, "condensed_row": condenser.membership_}),
        encoder=encoder,
        allocation=condenser.allocation_,
        classes=classes.tolist(),
        class_rows=np.diff(by_class.edges).tolist(),
        curves=condenser.curves_,
        roles=roles_table(prepared.roles, encoder),
        projection=projection,
        notices=[
            *prepared.notices,
            *condensation_notices(encoder, condenser, len(prepared.X)),
            *repeated.notices(len(y)),
        ],
        summary=summarise(name, prepared.X.shape, encoder, condenser, repeated, seconds=clock.seconds),
    )


def warn_about_singletons(table: CondensedTable) -> None:
    """Warn the caller's caller when condensed rows repeat source rows."""
    if singletons := table.summary["singletons"]:
        warnings.warn(singleton_message(singletons, len(table)), SingletonWarning, stacklevel=3)


def _encoded_validation(
    validation: pd.DataFrame, label: str, encoder: TableEncoder, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return validation rows of known classes, encoded, and the numbers of their classes."""
    rows = validation.set_axis([str(column) for column in validation.columns], axis=1)
    if label not in rows.columns:
        raise InputError(f"The validation rows lack the label column {label!r}; add it.")
    # Labels of mixed types are text in the table, so they are here.
    labels = to_text(rows[label]) if isinstance(classes[0], str) else rows[label]
    known = labels.isin(classes).to_numpy()
    if not known.any():
        raise InputError(f"No validation row has a known class in the label column {label!r}; give some that do.")
    return encoder.encode_rows(rows.loc[known]), np.searchsorted(classes, plain(labels[known]).to_numpy())


def condensation_notices(encoder: TableEncoder, condenser: Condenser, rows: int) -> list[Notice]:
    """Return what is said about a condensation of so many rows."""
    notices = list(getattr(encoder, "notices_", []))
    if condenser.plan_.curves_damaged:
        notices.append(
            Notice("damaged_cache", "The cached loss curves were damaged; they were measured again and replaced.")
        )
    if condenser.singletons_:
        notices.append(Notice("singletons", singleton_message(condenser.singletons_, len(condenser.weights_))))
    asked, classes = condenser.rows or round(condenser.ratio * rows), len(condenser.classes_)
    if asked < classes:
        message = f"The ratio asks for {asked:,} rows, but {classes:,} classes need one each: there are that many."
        notices.append(Notice("rows_raised", message))
    return notices
