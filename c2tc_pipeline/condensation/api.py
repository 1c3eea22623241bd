"""One call from a raw table to a condensed one.

Mistakes are reported before scikit-learn and torch are imported, which takes seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c2tc_pipeline.allocation import Allocator, make_allocator
from c2tc_pipeline.allocation.shares import checked_budget
from c2tc_pipeline.common.defaults import (
    DEFAULT_RATIO,
    REPRESENTATIVES,
    SCALINGS,
    STRING_ENCODINGS,
    Role,
    check_choice,
    check_column_weights,
    check_columns,
    check_gamma,
    check_min_rows,
    check_rows,
    checked_ratio,
)
from c2tc_pipeline.common.devices import check_device, check_engine
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.seeds import RandomStateLike, seed_of
from c2tc_pipeline.common.stages import Listener, StageClock
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.frames import as_pandas
from c2tc_pipeline.tables.table import learn_table, with_validation

if TYPE_CHECKING:
    from c2tc_pipeline.condensation.table import CondensedTable
    from c2tc_pipeline.encoding.base import TableEncoder


def condense(
    data: Any,
    label: str,
    ratio: float = DEFAULT_RATIO,
    *,
    rows: int | None = None,
    roles: Mapping[str, Role | str] | None = None,
    missing: Sequence[str] = (),
    label_kind: str = "auto",
    strings: str = "auto",
    numeric: str = "quantile",
    encoder: TableEncoder | None = None,
    allocation: str | Allocator = "hfils",
    gamma: float | str = 0.25,
    representative: str = "centroid",
    min_rows_per_condensed_row: int = 1,
    min_category_rows: int = 1,
    column_weights: str | Mapping[str, float] = "auto",
    validation: Any = None,
    device: str = "auto",
    engine: str = "local",
    cache_dir: str | Path | None = None,
    random_state: RandomStateLike = 0,
    name: str = "table",
    listener: Listener | None = None,
) -> CondensedTable:
    """Condense a table with mixed columns: encode, allocate rows to classes, cluster each class.

    Keep test rows out of ``data``: everything here is learnt from it.

    Parameters
    ----------
    data : DataFrame, Table or path
        The table, with the label among its columns; not modified. A DataFrame of pandas or polars, a pyarrow table,
        anything with the Arrow C stream interface, or the address of a source, as for ``c2tc condense``. The rows in
        the columns of the source come back in the same kind of table, or in pandas for a path.
    label : str
        The column to predict.
    ratio : float, default=0.01
        Condensed rows as a share of the rows, in (0, 1]; every class gets at least one.
    rows : int, optional
        Condensed rows in all, instead of a ratio.
    roles : mapping of str to str, optional
        Roles of columns that inference would get wrong: "numeric", "string", "code" or "drop".
    missing : sequence of str, optional
        Further spellings of missing values, such as "unknown" or "-999".
    label_kind : {"auto", "classes"}, default="auto"
        With "classes" a label with many different numbers is taken as classes.
    strings, numeric : str
        Encoding of strings and scaling of numbers, as in :class:`HybridEncoder`.
    encoder : TableEncoder, optional
        Another encoder instead of ``HybridEncoder(strings, numeric)``. A copy of it is fitted, with its own parameters,
        seed and ``roles``.
    allocation, gamma, representative, min_rows_per_condensed_row, column_weights : optional
        As in :class:`Condenser`; columns are those of the source.
    min_category_rows : int, default=1
        Categories of fewer members of a condensed row are not kept with it.
    validation : DataFrame or Table, optional
        Labelled rows on which ``gamma="auto"`` is chosen; without them a tenth of the table is kept aside for that.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where the heavy work runs.
    engine : str, default="local"
        Where curves and clusters are computed: in this process, or on a Dask cluster by the address of its scheduler,
        such as ``"dask://host:8786"``.
    cache_dir : path, optional
        Where autoencoder weights and loss curves are kept between calls.
    random_state : int, Generator, RandomState or None, default=0
        The same integer gives the same table. A generator, or None for NumPy's global one, draws a seed, which the
        summary names.
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
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 90, 500), "job": rng.choice(["nurse", "cook"], 500)})
    >>> people["income"] = np.where(people.age + rng.normal(0, 9, 500) > 60, "high", "low")
    >>> small = condense(people, label="income", ratio=0.02, random_state=0)
    >>> len(small.X), small.encoder.transform(people.head(3)).shape
    (10, (3, 2))
    """
    label, seed = str(label), seed_of(random_state)
    if rows is None:
        checked_ratio(ratio)
    else:
        check_rows(rows)
        if ratio != DEFAULT_RATIO:
            raise InputError("Both ratio and rows are given; choose one of them.")
    check_choice("String encoding", strings, STRING_ENCODINGS)
    check_choice("Numeric scaling", numeric, SCALINGS)
    check_choice("Representative", representative, REPRESENTATIVES)
    check_device(device)
    make_allocator(allocation)
    check_gamma(gamma)
    check_min_rows(min_rows_per_condensed_row, representative)
    check_min_rows(min_category_rows, "centroid", name="min_category_rows")
    check_column_weights(column_weights)
    check_engine(engine)
    if isinstance(missing, str) or not all(isinstance(mark, str) for mark in missing):
        raise InputError(f'missing is {missing!r}; give a list of texts, such as ["unknown", "-999"].')
    if encoder is not None and (isinstance(encoder, type) or not hasattr(encoder, "fit_statistics")):
        raise InputError(f"The encoder is {encoder!r}; give an encoder of this package, such as HybridEncoder().")
    if isinstance(roles, Mapping | None):
        roles = {**((encoder.roles or {}) if encoder is not None else {}), **(roles or {})}
    if isinstance(data, str | Path):
        check_columns(open_source(data).header().columns, label, roles)
        blocks, kind = Blocks.of_source(data), None
    else:
        frame, kind = as_pandas(data)
        blocks = Blocks.of_frame(frame)
        check_columns(blocks.columns, label, roles)
    clock = StageClock(listener)
    with clock.stage("prepare"):
        table = learn_table(blocks, label=label, roles=roles, missing=missing, label_kind=label_kind)
        if validation is not None:
            table = with_validation(table, as_pandas(validation, "The validation table")[0])
    checked_budget(ratio, rows, int(table.class_rows.sum()), len(table.classes))

    from sklearn.base import clone

    from c2tc_pipeline.condensation.clusters import SingletonWarning, singleton_message
    from c2tc_pipeline.condensation.condenser import Condenser
    from c2tc_pipeline.condensation.steps import condense_table
    from c2tc_pipeline.encoding.hybrid import HybridEncoder

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
        random_state=seed,
    )
    if encoder is None:
        encoder = HybridEncoder(strings, numeric, device=device, cache_dir=cache_dir, random_state=seed)
    else:
        encoder = clone(encoder)
        if cache_dir is not None and encoder.get_params().get("cache_dir", cache_dir) is None:
            encoder.set_params(cache_dir=cache_dir)
    small, _ = condense_table(table, encoder, condenser, name=name, clock=clock, min_category_rows=min_category_rows)
    small.frame_kind = kind
    if singletons := small.summary["singletons"]:
        warnings.warn(singleton_message(singletons, len(small)), SingletonWarning, stacklevel=2)
    return small
