"""Encoded rows for experiments and measurements: tables split and encoded into a column space, and synthetic rows.

All uses of the condensation's and the tables' internals in the bench are here; the rest of it uses arrays only.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from c2tc_pipeline.allocation.shares import largest_remainders
from c2tc_pipeline.bench.encoders import LabelEncoder, OneHotPcaEncoder, TargetEncoder
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.common.stages import StageClock
from c2tc_pipeline.condensation.condenser import Condenser
from c2tc_pipeline.condensation.encoded import EncodedRows
from c2tc_pipeline.condensation.steps import assemble, encode, fit_encoder, weigh_columns
from c2tc_pipeline.condensation.table import CondensedTable
from c2tc_pipeline.encoding.base import TableEncoder
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.encoding.strings import Vocabulary
from c2tc_pipeline.evaluation.trial import LabelledRows
from c2tc_pipeline.storage.manifest import hash_json
from c2tc_pipeline.tables.blocks import Blocks, read_table
from c2tc_pipeline.tables.category_counts import mixed_bits
from c2tc_pipeline.tables.kinds import factorise
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.spec import SplitSettings, TableSpec
from c2tc_pipeline.tables.statistics import typed_columns
from c2tc_pipeline.tables.table import Table, known_codes, learn_described, learn_table

if TYPE_CHECKING:
    from c2tc_pipeline.bench.experiments.grid import Shape

EncoderFactory = Callable[[int, "Path | None"], TableEncoder]

SPACES: dict[str, EncoderFactory] = {
    "hcfe": lambda seed, cache: HybridEncoder(random_state=seed, cache_dir=cache),
    "hcfe_paper": lambda seed, cache: HybridEncoder("similarity", "minmax", random_state=seed, cache_dir=cache),
    "hcfe_minmax": lambda seed, cache: HybridEncoder(numeric="minmax", random_state=seed, cache_dir=cache),
    "label": lambda seed, cache: LabelEncoder(random_state=seed),
    "onehot_pca": lambda seed, cache: OneHotPcaEncoder(random_state=seed),
    "target": lambda seed, cache: TargetEncoder(random_state=seed),
}
"""Encoders by the names of their spaces: our default, the paper's, ours with the paper's scaling of numbers, and the
three that the paper compares with. An experiment of your own may add one here."""

# Dimensions in which synthetic rows vary; columns are combinations of them, with noise.
_RANK = 12
_CENTRES_PER_CLASS = 8


ENCODED = "encoded"
ORIGINAL = "original"
"""Kinds of columns that models are trained on: those of the encoder's space, or the source's own."""

# One row in this many is a test row, and one in this many of the others a validation row.
_ROWS_PER_TEST_ROW = 5
_VALIDATION = 1 / 8


@dataclass(frozen=True)
class EncodedSplit:
    """The three parts of a table in one column space; a class that training rows lack has the code ``classes``.

    Training rows are in the order of their classes. ``original`` has the same rows in the source's columns, by the
    names of the parts; it is empty where they are not asked for. ``source`` is absent for synthetic rows.
    """

    train: LabelledRows
    validation: LabelledRows
    test: LabelledRows
    classes: int
    original: Mapping[str, LabelledRows] = field(default_factory=dict)
    source: tuple[Table, TableEncoder, EncodedRows] | None = None

    def part(self, name: str) -> dict[str, LabelledRows]:
        """Return a part, such as "train", by kind of columns."""
        encoded: LabelledRows = getattr(self, name)
        return {ENCODED: encoded, **({ORIGINAL: self.original[name]} if self.original else {})}

    @cached_property
    def visible(self) -> str:
        """The hash of all that a method may see, which does not include test rows."""
        seen = [*self.part("train").values(), *self.part("validation").values()]
        return hash_json([*(rows.digest for rows in seen), self.classes])

    def condensed(self, condenser: Condenser) -> tuple[CondensedTable, float]:
        """Condense the training rows; return the condensed table and the seconds without its assembly."""
        assert self.source is not None
        table, encoder, rows = self.source
        clock = StageClock()
        condenser.check_classes(table.classes, table.class_rows)
        started = time.perf_counter()
        encoded = weigh_columns(rows, encoder, condenser.column_weights, seed=condenser.random_state)
        plan = condenser.plan(encoded, clock=clock)
        clusters = condenser.cluster(encoded, plan, clock=clock)
        seconds = time.perf_counter() - started
        return assemble(table, encoder, encoded, plan, clusters, condenser, name="", clock=clock), seconds


def is_test_row(frame: pd.DataFrame, label: str, *, group_duplicates: bool = False) -> np.ndarray:
    """Return a mask of about a fifth of the rows, by a hash of the row's number, or of its features.

    The features decide with ``group_duplicates``, so that equal rows are on one side. Nothing else decides, so that a
    test row is never used for anything else, whatever the seed.
    """
    if group_duplicates:
        hashes = pd.util.hash_pandas_object(frame.drop(columns=label), index=False).to_numpy()
    else:
        hashes = mixed_bits(np.arange(len(frame), dtype=np.uint64))
    return np.asarray(hashes % np.uint64(_ROWS_PER_TEST_ROW) == 0)


def encode_split(
    spec: TableSpec,
    space: str,
    *,
    seed: int,
    group_duplicates: bool = False,
    skew: tuple[str, float] | None = None,
    original: bool = False,
    cache_dir: Path | None = None,
) -> EncodedSplit:
    """Read and split a table, fit the encoder of a space to the training rows, and encode all three parts.

    Test rows are those of :func:`is_test_row`, set apart before anything else; ``seed`` divides the others and
    determines the encoder. ``skew`` is a column and a level for :func:`imbalanced_rows`; ``original`` keeps the source
    columns, too; ``cache_dir`` keeps autoencoder weights.
    """
    grouped = group_duplicates or spec.split.group_duplicates
    frame = read_table(spec.source)
    if spec.label not in frame:
        raise InputError(f"There is no label column {spec.label!r} in table {spec.name!r}; correct its description.")
    tested = is_test_row(frame, spec.label, group_duplicates=grouped)
    split = SplitSettings(seed=seed, validation=_VALIDATION, test=0, group_duplicates=grouped)
    table = learn_described(Blocks.of_frame(frame[~tested]), spec, split)
    sides = {
        "train": table.read("train"),
        "validation": table.read("validation"),
        "test": table.statistics.readings.read(frame[tested]),
    }
    fitted = table
    if skew is not None:
        sides["train"] = imbalanced_rows(sides["train"], spec.label, *skew, seed=seed)
        decided = {name: column.role for name, column in table.roles.items()}
        fitted = learn_table(Blocks.of_frame(sides["train"]), label=spec.label, roles=decided)
    encoder = fit_encoder(SPACES[space](seed, cache_dir), fitted)
    encoded = encode(encoder, fitted)
    sides = {name: side[side[spec.label].notna()] for name, side in sides.items()}
    codes = {name: known_codes(side[spec.label], fitted.classes) for name, side in sides.items()}
    parts = {
        name: LabelledRows(encoder.encode_rows(sides[name][fitted.statistics.kept]), codes[name])
        for name in ("validation", "test")
    }
    # A method may use validation rows of the classes that it condenses.
    known = codes["validation"] < len(fitted.classes)
    held = (parts["validation"].X[known], codes["validation"][known]) if known.any() else None
    encoded = replace(encoded, validation=held)
    shown = {}
    if original:
        features = list(encoder.feature_names_in_)
        shown = {name: LabelledRows(side[features].reset_index(drop=True), codes[name]) for name, side in sides.items()}
        shown["train"] = shown["train"].take(np.argsort(codes["train"], kind="stable"))
    return EncodedSplit(
        LabelledRows(np.asarray(encoded.X), encoded.codes()),
        **parts,
        classes=len(fitted.classes),
        original=shown,
        source=(fitted, encoder, encoded),
    )


def imbalanced_rows(frame: pd.DataFrame, label: str, column: str, level: float, *, seed: int) -> pd.DataFrame:
    """Resample rows so that ``level`` rows of the first half of a column's values stand against one of the other half.

    Values are sorted, missing ones count as the last. Within every class each row of a half is drawn as often as the
    others, give or take once, so that the number of rows and the class shares stay the same.
    """
    if column not in frame:
        raise InputError(f"There is no column {column!r} to skew; name one that the table has.")
    known = np.sort(frame[column].dropna().unique())
    first = frame[column].isin(known[: (len(known) + 1) // 2]).to_numpy()
    rng = np.random.default_rng([seed, 0x1B])
    drawn = []
    for found in frame.groupby(label, sort=True, observed=True).indices.values():
        rows = np.asarray(found)
        halves = [rows[first[rows]], rows[~first[rows]]]
        wanted = largest_remainders(len(rows) * np.array([level, 1.0]) / (level + 1), len(rows))
        if not all(map(len, halves)):
            # A class with values of one half only can't be made less skewed.
            wanted = np.where([len(half) > 0 for half in halves], len(rows), 0)
        for half, count in zip(halves, wanted.tolist(), strict=True):
            repeats = np.tile(half, count // max(len(half), 1))
            drawn += [repeats, rng.permutation(half)[: count - len(repeats)]]
    return frame.iloc[np.sort(np.concatenate(drawn))]


def encode_sorted(frame: pd.DataFrame, spec: TableSpec) -> EncodedRows:
    """Encode all rows of a table with the default encoder, sorted by class."""
    table = learn_described(Blocks.of_frame(frame), spec)
    return encode(fit_encoder(HybridEncoder(random_state=0), table), table)


def string_categories(frame: pd.DataFrame, spec: TableSpec) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the similarities of each string column's categories, and the category of each cell."""
    table = learn_described(Blocks.of_frame(frame), spec)
    roles = {name: column for name, column in table.roles.items() if column.role is Role.STRING}
    rows = typed_columns(table.read("train"), roles, table.positions("train"))
    vocabularies = [Vocabulary.of_counts(table.statistics.categories(name), (2, 4), 1000) for name in roles]
    cells = [v.nearest_places(*factorise(rows[name])) for v, name in zip(vocabularies, roles, strict=True)]
    return [vocabulary.similarities() for vocabulary in vocabularies], np.stack(cells, axis=1)


def plan_and_cluster(rows: EncodedRows, ratio: float, *, allocation: str, gamma: float) -> tuple[float, float]:
    """Allocate and cluster encoded rows; return the seconds of the allocation and the objective."""
    condenser = Condenser(ratio, allocation=allocation, gamma=gamma)
    clock = StageClock()
    clusters = condenser.cluster(rows, condenser.plan(rows, clock=clock), clock=clock)
    return clock.seconds["curves"] + clock.seconds["allocate"], clusters.allocation.objective


def synthetic_rows(shape: Shape, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 rows in [0, 1] and their class codes, with clusters and correlated columns as in real tables.

    Each class is a mixture of normal distributions in few dimensions; every column is a random combination of these
    dimensions plus noise, squashed into [0, 1]. With columns of pure noise all methods would look alike.
    """
    rng = np.random.default_rng(seed)
    shares = np.asarray(shape.classes) / sum(shape.classes)
    edges = np.round(np.cumsum([0, *shares]) * shape.rows).astype(int)
    mixing = rng.standard_normal((_RANK, shape.columns), dtype=np.float32) / np.sqrt(_RANK, dtype=np.float32)
    X = np.empty((shape.rows, shape.columns), dtype=np.float32)
    for start, end in itertools.pairwise(edges.tolist()):
        centres = 2 * rng.standard_normal((_CENTRES_PER_CLASS, _RANK), dtype=np.float32)
        # In blocks, so that nothing of the table's size is held beside it.
        for first in range(start, end, 100_000):
            size = min(100_000, end - first)
            latent = centres[rng.integers(_CENTRES_PER_CLASS, size=size)]
            latent += rng.standard_normal((size, _RANK), dtype=np.float32)
            block = latent @ mixing
            block += 0.3 * rng.standard_normal(block.shape, dtype=np.float32)
            X[first : first + size] = 1 / (1 + np.exp(-block))
    return X, np.repeat(np.arange(len(shares)), np.diff(edges))
