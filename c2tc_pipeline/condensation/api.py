"""One call from a raw table to a condensed one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from c2tc_pipeline.allocation import Allocator
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.original import original_rows
from c2tc_pipeline.condensation.partition import ClassOrder
from c2tc_pipeline.condensation.projection import project
from c2tc_pipeline.condensation.representatives import SingletonWarning, singleton_message
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.summary import roles_table, summarise
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding import HybridEncoder, TableEncoder
from c2tc_pipeline.errors import InputError
from c2tc_pipeline.notices import Notice
from c2tc_pipeline.tables.kinds import plain, to_text
from c2tc_pipeline.tables.preparation import prepare_table
from c2tc_pipeline.tables.roles import Role


def condense(
    frame: pd.DataFrame,
    label: str,
    ratio: float = 0.01,
    *,
    rows: int | None = None,
    roles: Mapping[str, Role | str] | None = None,
    strings: str = "auto",
    numeric: str = "quantile",
    encoder: TableEncoder | None = None,
    allocation: str | Allocator = "hfils",
    gamma: float | str = 0.25,
    losses: str = "curves",
    representative: str = "centroid",
    validation: pd.DataFrame | None = None,
    device: str = "auto",
    cache_dir: str | Path | None = None,
    random_state: int = 0,
    name: str = "table",
    listener: Listener | None = None,
) -> CondensedTable:
    """Condense a table with mixed columns: encode, allocate rows to classes, cluster each class.

    Keep test rows out of ``frame``: everything here is learnt from it.

    Parameters
    ----------
    frame : DataFrame
        The table, with the label among its columns; not modified.
    label : str
        The column to predict.
    ratio : float, default=0.01
        Condensed rows as a share of the rows, in (0, 1]; every class gets at least one.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong: "numeric", "string", "code" or "drop".
    strings, numeric : str
        Encoding of strings and scaling of numbers, as in :class:`HybridEncoder`.
    encoder : TableEncoder, optional
        Another encoder instead of ``HybridEncoder(strings, numeric)``; a copy of it is fitted, its own parameters and
        seed count, and its ``roles`` count as given.
    allocation, gamma, losses, representative : optional
        As in :class:`Condenser`.
    validation : DataFrame, optional
        Labelled rows on which ``gamma="auto"`` is chosen; without them a tenth of the table is kept aside for that.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the heavy work runs.
    cache_dir : path, optional
        Where autoencoder weights and loss curves are kept between calls.
    random_state : int, default=0
        The same number gives the same table.
    name : str, default="table"
        What the table is called in summaries and reports.
    listener : callable, optional
        Told about progress: (stage, steps done, steps in all).

    Returns
    -------
    CondensedTable

    Raises
    ------
    InputError
        When the table or a setting can't be used; the message says why and what to do.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 500), "job": rng.choice(["nurse", "cook"], 500)})
    >>> people["income"] = np.where(people.age + rng.normal(0, 9, 500) > 60, "high", "low")
    >>> small = condense(people, label="income", ratio=0.02, random_state=0)
    >>> len(small.X), small.encoder.transform(people.head(3)).shape
    (10, (3, 2))
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"condense needs a pandas DataFrame, not a {type(frame).__name__}; convert the table first.")
    label = str(label)
    clock = StageClock(listener)
    with clock.stage("prepare"):
        own_roles = {} if encoder is None else dict(encoder.roles or {})
        given_roles = {**own_roles, **(roles or {})}
        prepared = prepare_table(frame, label=label, roles=given_roles)
        by_class = ClassOrder.of(prepared.y.to_numpy())
        classes = by_class.classes
    if encoder is None:
        encoder = HybridEncoder(strings, numeric, device=device, cache_dir=cache_dir, random_state=random_state)
    else:
        encoder = clone(encoder)
        if cache_dir is not None and encoder.get_params().get("cache_dir", cache_dir) is None:
            encoder.set_params(cache_dir=cache_dir)
    condenser = Condenser(
        ratio,
        rows=rows,
        allocation=allocation,
        gamma=gamma,
        losses=losses,
        representative=representative,
        device=device,
        cache_dir=cache_dir,
        random_state=random_state,
    )
    condenser.check(len(prepared.X), len(classes))
    with clock.stage("encode") as tick:
        encoder.set_params(roles={column: prepared.roles[column].role for column in prepared.X.columns})
        encoder.fit(prepared.X, prepared.y, progress=tick)
        # What is known about the columns, with the true reasons; the encoder was only told the roles.
        encoder.roles_ = {column: prepared.roles[column] for column in prepared.X.columns}
        encoder.set_output(transform="pandas")
        if label in encoder.get_feature_names_out():
            raise InputError(f"The label {label!r} has the name of an encoded column; rename the label.")
        encoded = encoder.add_noise(encoder.encode_rows(prepared.X, by_class.order))
        held = None if validation is None else _encoded_validation(validation, label, encoder, classes)
    centers = condenser.condense_sorted(encoded, by_class, validation=held, clock=clock)
    with clock.stage("decode"):
        if representative == "medoid":
            centers = encoder.encode_rows(prepared.X, condenser.sample_indices_)
        condensed_labels = np.repeat(classes, condenser.allocation_.counts)
        y = pd.Series(condensed_labels, name=label).astype(prepared.y.dtype)
        original = original_rows(frame, prepared, given_roles, condenser, y)
        projection = project(
            encoded,
            by_class.codes[by_class.order],
            centers,
            np.repeat(np.arange(len(classes)), condenser.allocation_.counts),
            condenser.weights_,
            random_state,
        )
        projection["label"] = pd.Series(classes[projection["label"]]).astype(prepared.y.dtype)
    notices = [*prepared.notices, *_notices(encoder, condenser)]
    asked = rows or round(ratio * len(prepared.X))
    if asked < len(classes):
        message = f"The ratio asks for {asked:,} rows, but {len(classes):,} classes need one each: there are that many."
        notices.append(Notice("rows_raised", message))
    if condenser.singletons_:
        warnings.warn(singleton_message(condenser.singletons_, len(centers)), SingletonWarning, stacklevel=2)
    return CondensedTable(
        X=pd.DataFrame(centers, columns=encoder.get_feature_names_out()),
        y=y,
        weight=pd.Series(condenser.weights_, name="weight"),
        original=original,
        membership=pd.DataFrame({"source_row": prepared.row_ids, "condensed_row": condenser.membership_}),
        encoder=encoder,
        allocation=condenser.allocation_,
        classes=classes.tolist(),
        class_rows=np.diff(by_class.edges).tolist(),
        curves=condenser.curves_,
        roles=roles_table(prepared, encoder),
        projection=projection,
        notices=notices,
        summary=summarise(name, prepared, encoder, condenser, seconds=clock.seconds),
    )


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


def _notices(encoder: TableEncoder, condenser: Condenser) -> list[Notice]:
    notices = list(getattr(encoder, "notices_", []))
    if condenser.partitions_.curves_damaged:
        notices.append(
            Notice("damaged_cache", "The cached loss curves were damaged; they were measured again and replaced.")
        )
    if condenser.singletons_:
        notices.append(Notice("singletons", singleton_message(condenser.singletons_, len(condenser.weights_))))
    return notices
