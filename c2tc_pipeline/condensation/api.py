"""One call from a raw table to a condensed one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from sklearn.base import clone

from c2tc_pipeline.allocation import Allocator
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.clusters import SingletonWarning, singleton_message
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.stages import Listener, StageClock
from c2tc_pipeline.condensation.steps import condense_table
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.table import learn_table, with_validation


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
    representative: str = "centroid",
    min_rows_per_condensed_row: int = 1,
    min_category_rows: int = 1,
    column_weights: str | Mapping[str, float] = "auto",
    validation: pd.DataFrame | None = None,
    device: str = "auto",
    engine: str = "local",
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
    allocation, gamma, representative, min_rows_per_condensed_row, column_weights : optional
        As in :class:`Condenser`; columns are those of the source.
    min_category_rows : int, default=1
        Categories of fewer members of a condensed row are not kept with it.
    validation : DataFrame, optional
        Labelled rows on which ``gamma="auto"`` is chosen; without them a tenth of the table is kept aside for that.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the heavy work runs.
    engine : str, default="local"
        Where curves and clusters are computed: in this process, or on a Dask cluster by the address of its scheduler,
        such as ``"dask://host:8786"``.
    cache_dir : path, optional
        Where autoencoder weights and loss curves are kept between calls.
    random_state : int, default=0
        The same number gives the same table.
    name : str, default="table"
        What the table is called in summaries and reports.
    listener : callable, optional
        Called with the stage, the steps done and the steps in all.

    Returns
    -------
    CondensedTable

    Raises
    ------
    InputError
        When the table or a setting can't be used; the message says why and what to do.

    See Also
    --------
    CondensedTable : The result: condensed rows, training rows drawn from them, files.
    Condenser : The same for numeric rows, as a scikit-learn sampler.
    evaluate : What a condensed table is worth, in scores of models.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 500), "job": rng.choice(["nurse", "cook"], 500)})
    >>> people["income"] = np.where(people.age + rng.normal(0, 9, 500) > 60, "high", "low")
    >>> small = condense(people, label="income", ratio=0.02, random_state=0)
    >>> len(small.X), small.encoder.transform(people.head(3)).shape
    (10, (3, 2))
    """
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"condense needs a pandas DataFrame, not a {type(frame).__name__}; convert the table first.")
    clock = StageClock(listener)
    with clock.stage("prepare"):
        own_roles = {} if encoder is None else dict(encoder.roles or {})
        blocks = Blocks.of_frame(frame)
        table = learn_table(blocks, label=str(label), roles={**own_roles, **(roles or {})})
        if validation is not None:
            table = with_validation(table, validation)
    condenser = Condenser(
        ratio,
        rows=rows,
        allocation=allocation,
        gamma=gamma,
        representative=representative,
        min_rows_per_condensed_row=min_rows_per_condensed_row,
        column_weights=column_weights,
        device=device,
        engine=engine,
        cache_dir=cache_dir,
        random_state=random_state,
    )
    if encoder is None:
        encoder = HybridEncoder(strings, numeric, device=device, cache_dir=cache_dir, random_state=random_state)
    else:
        encoder = clone(encoder)
        if cache_dir is not None and encoder.get_params().get("cache_dir", cache_dir) is None:
            encoder.set_params(cache_dir=cache_dir)
    small, _ = condense_table(table, encoder, condenser, name=name, clock=clock, min_category_rows=min_category_rows)
    if singletons := small.summary["singletons"]:
        warnings.warn(singleton_message(singletons, len(small)), SingletonWarning, stacklevel=2)
    return small
