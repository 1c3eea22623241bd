"""What comes back of tables of every column type, and of other packages: the types and the kind that came in."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, HybridEncoder, condense, evaluate
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline_tests.tools.made_tables import mixed_table

pytestmark = pytest.mark.filterwarnings("ignore::c2tc_pipeline.condensation.clusters.SingletonWarning")

ROWS = 60
WORDS = ["low", "middle", "high"]
DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=3 * day) for day in range(9)]
LEVELS = pd.CategoricalDtype(["never", *WORDS], ordered=True)


def of_type(dtype: Any) -> Callable[[np.ndarray], pd.Series]:
    return lambda numbers: pd.Series(numbers).astype(dtype)


def arrow(cells: Callable[[np.ndarray], Any], dtype: Any) -> Callable[[np.ndarray], pd.Series]:
    return lambda numbers: pd.Series(pd.array(pa.array(cells(numbers)).cast(dtype), dtype=pd.ArrowDtype(dtype)))


def texts(numbers: np.ndarray) -> list[str]:
    return [WORDS[number % 3] for number in numbers]


def moments(numbers: np.ndarray) -> pd.Series:
    return pd.Series(pd.Timestamp("2024-03-01") + pd.to_timedelta(numbers, unit="h"))


# Columns by their type, from integers below 9.
COLUMNS: dict[str, Callable[[np.ndarray], pd.Series]] = {
    **{name: of_type(name) for name in ("int16", "uint8", "float32", "Int32", "UInt16", "Float64", "int64[pyarrow]")},
    **{name: of_type(name) for name in ("double[pyarrow]", "float[pyarrow]")},
    "bool": lambda numbers: pd.Series(numbers > 4),
    "boolean": lambda numbers: pd.Series(numbers > 4, dtype="boolean"),
    "bool[pyarrow]": lambda numbers: pd.Series(numbers > 4).astype("bool[pyarrow]"),
    "str": lambda numbers: pd.Series(texts(numbers), dtype="str"),
    "string": lambda numbers: pd.Series(texts(numbers), dtype="string"),
    "text as object": lambda numbers: pd.Series(texts(numbers), dtype=object),
    "string[pyarrow]": arrow(texts, pa.string()),
    "dictionary[pyarrow]": arrow(texts, pa.dictionary(pa.int32(), pa.string())),
    "ordered": lambda numbers: pd.Series(texts(numbers)).astype(LEVELS),
    "category of integers": lambda numbers: pd.Series(pd.Categorical(numbers, categories=[*range(12)])),
    "category of fractions": lambda numbers: pd.Series(pd.Categorical(numbers / 2 + 0.25)),
    "category of days": lambda numbers: pd.Series(pd.Categorical([DAYS[number] for number in numbers])),
    "cut": lambda numbers: pd.Series(pd.cut(numbers, [-1, 2, 5, 9])),
    "datetime64[ns]": moments,
    "datetime64[s, Paris]": lambda numbers: moments(numbers).dt.tz_localize("Europe/Paris").dt.as_unit("s"),
    "timestamp[pyarrow]": arrow(moments, pa.timestamp("us", "UTC")),
    "date32[pyarrow]": arrow(lambda numbers: [DAYS[number] for number in numbers], pa.date32()),
    "timedelta64[ms]": lambda numbers: pd.Series(pd.to_timedelta(numbers, unit="h")).dt.as_unit("ms"),
    "period": lambda numbers: pd.Series(pd.period_range("2024-01", periods=9, freq="M")[numbers]),
    "date": lambda numbers: pd.Series([DAYS[number] for number in numbers], dtype=object),
    "datetime": lambda numbers: pd.Series([datetime.datetime(2024, 1, 1 + n) for n in numbers], dtype=object),
    "decimal": lambda numbers: pd.Series([Decimal(int(number)) / 8 for number in numbers], dtype=object),
    "decimal128[pyarrow]": arrow(lambda numbers: [Decimal(int(n)) / 4 for n in numbers], pa.decimal128(9, 2)),
}


def type_of(column: pd.Series) -> Any:
    return pd.api.types.infer_dtype(column, skipna=True) if column.dtype == object else column.dtype


@settings(max_examples=12)
@given(
    names=st.lists(st.sampled_from(sorted(COLUMNS)), min_size=6, max_size=10, unique=True),
    label=st.sampled_from(["str", "string", "ordered", "category of integers", "boolean", "int16", "string[pyarrow]"]),
    share=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 2**32 - 1),
    representative=st.sampled_from(["centroid", "medoid"]),
)
def test_columns_come_back_in_their_types(
    names: list[str], label: str, share: float, seed: int, representative: str
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=ROWS)})
    for name in names:
        column = COLUMNS[name](rng.integers(0, 9, ROWS))
        empty = rng.random(ROWS) < share
        if not isinstance(column.dtype, np.dtype) or column.dtype.kind in "fOMm":
            column[empty] = None
        frame[name] = column
    frame["label"] = COLUMNS[label](np.arange(ROWS) % 9)
    small = condense(frame, "label", rows=12, strings="target", representative=representative)
    X, y, _ = small.expand(80, random_state=seed)
    for found in (small.original, X.assign(label=y)):
        assert {name: type_of(found[name]) for name in small.original} == {
            name: type_of(frame[name]) for name in small.original
        }
    # Categories that are drawn occurred; those of numbers may be the nearest to a mean.
    for name in small.original.columns:
        known, drawn = frame[name].dropna(), X.assign(label=y)[name].dropna()
        if isinstance(known.dtype, pd.CategoricalDtype):
            assert set(drawn) <= set(known.dtype.categories)
        elif isinstance(known.iloc[0], str | bool | np.bool_):
            assert set(drawn) <= set(known)
        else:
            assert known.min() <= drawn.min() <= drawn.max() <= known.max() or not len(drawn)


@pytest.mark.parametrize("representative", ["centroid", "medoid"])
def test_columns_of_all_types_can_be_saved(representative: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: make(rng.integers(0, 9, ROWS)) for name, make in COLUMNS.items()})
    odd = {"lists": [[1], [2, 3], [4]] * 20, "always": [[1]] * ROWS, "mixed": [1, "a", 2.5] * 20}
    frame = frame.assign(**{name: pd.Series(cells) for name, cells in odd.items()}, label=["a", "b"] * 30)
    small = condense(frame, "label", rows=12, strings="target", representative=representative)
    loaded = CondensedTable.load(small.save(tmp_path / "small", report=True))
    # Parquet writes the same moments and decimals in other types and with other zeros.
    kept = [name for name in (*COLUMNS, "lists", "mixed") if name not in ("datetime", "decimal")]
    for before, after in ((small.original, loaded.original), (small.expand(50)[0], loaded.expand(50)[0])):
        pd.testing.assert_frame_equal(after[kept].astype(str), before[kept].astype(str))


KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "reader": lambda table: table.to_reader(max_chunksize=50),
    "polars": pl.DataFrame,
}


def typed_table() -> pa.Table:
    frame = mixed_table(200, classes=2)
    columns = {
        "amount": pa.array(frame["amount"], pa.float32()),
        "age": pa.array(frame["age"].mask(frame["age"] > 80), pa.int16(), from_pandas=True),
        "job": pa.array(frame["job"]).cast(pa.string()).dictionary_encode(),
        "insured": pa.array(frame["insured"]),
        "since": pa.array(frame["since"], pa.timestamp("ms", "UTC")),
        "price": pa.array([Decimal(int(age)) / 4 for age in frame["age"]], pa.decimal128(7, 2)),
        "born": pa.array([DAYS[age % 9] for age in frame["age"]], pa.date32()),
        "outcome": pa.array(frame["outcome"], pa.large_string()),
    }
    return pa.table(columns)


@pytest.mark.parametrize("kind", KINDS)
def test_other_packages_get_their_own_tables(kind: str, tmp_path: Path) -> None:
    table = typed_table()
    given = KINDS[kind](table)
    test = KINDS[kind](table)
    small = condense(given, "outcome", rows=20, gamma="auto", validation=KINDS[kind](table))
    X, y, weight = small.expand(300)
    if kind == "polars":
        assert isinstance(small.original, pl.DataFrame)
        assert small.original.schema == given.schema
        assert X.schema == given.drop("outcome").schema
        assert isinstance(y, pl.Series)
        assert y.dtype == given["outcome"].dtype
        assert weight.sum() == pytest.approx(300)
    else:
        assert small.original.schema.equals(table.schema)
        assert X.schema.equals(table.schema.remove(table.schema.get_field_index("outcome")))
        assert y.type == table.schema.field("outcome").type
        assert sum(weight.to_pylist()) == pytest.approx(300)
    # The rows are those of the same table in pandas, to which stored tables return.
    same = condense(table.to_pandas(), "outcome", rows=20, gamma="auto", validation=table.to_pandas())
    pd.testing.assert_frame_equal(small.X, same.X)
    forgotten = np.array([3, 7])
    without = forget_rows(small, KINDS[kind](table), forgotten).table
    pd.testing.assert_frame_equal(without.X, forget_rows(same, table.to_pandas(), forgotten).table.X)
    assert type(without.original) is type(small.original)
    loaded = CondensedTable.load(small.save(tmp_path / "small", report=True))
    pd.testing.assert_series_equal(loaded.original["age"], small.original_rows["age"])
    scores = evaluate(small, test, models=["logistic"])
    assert scores["accuracy"].between(0, 1).all()
    assert len(HybridEncoder().fit(KINDS[kind](table), table["outcome"]).transform(KINDS[kind](table))) == 200


@pytest.mark.parametrize("kind", KINDS)
def test_text_that_holds_numbers_or_dates_comes_back_as_they_are_in_pandas(kind: str) -> None:
    spend = [f"${1_000 + 7 * n:,}.50" for n in range(60)]
    since = [str(DAYS[n % 9]) for n in range(60)]
    code = [f"00{n % 5}" for n in range(60)]
    table = pa.table({"spend": spend, "since": since, "code": code, "y": ["0", "1"] * 30})
    small, same = condense(KINDS[kind](table), "y", rows=6), condense(table.to_pandas(), "y", rows=6)
    for found, expected in (
        (small.original, same.original),
        (small.expand(20)[0], same.expand(20)[0]),
    ):
        pd.testing.assert_frame_equal(pa.table(found).to_pandas(), expected, check_dtype=False)


def test_an_enumeration_of_polars_keeps_its_order() -> None:
    words = pl.Enum(["never", *WORDS])
    frame = pl.DataFrame({"x": range(60), "level": pl.Series(WORDS * 20, dtype=words), "y": ["a", "b"] * 30})
    small = condense(frame, "level", rows=6)
    assert small.original.schema["level"] == words
    assert small.expand(10)[1].dtype == words


def test_a_path_is_read(tmp_path: Path) -> None:
    mixed_table().to_parquet(tmp_path / "people.parquet")
    expected = condense(mixed_table(), "outcome", rows=9)
    for path in (tmp_path / "people.parquet", str(tmp_path / "people.parquet")):
        small = condense(path, "outcome", rows=9)
        pd.testing.assert_frame_equal(small.original, expected.original)


def test_sparse_columns_are_read_as_dense_ones() -> None:
    frame = mixed_table().assign(few=np.arange(300) % 7 // 6 * 2.5)
    sparse = frame.astype({"few": pd.SparseDtype(float, 0.0)})
    pd.testing.assert_frame_equal(
        condense(sparse, "outcome", rows=9).original, condense(frame, "outcome", rows=9).original
    )


@pytest.mark.parametrize(
    ("table", "mentioned"),
    [
        (mixed_table(20).to_dict("list"), "dict"),
        (np.zeros((20, 2)), "ndarray"),
        (mixed_table(20)["age"], "Series"),
        (pl.DataFrame(mixed_table(20)).lazy(), "collect"),
        (mixed_table(20).set_axis(pd.MultiIndex.from_product([["a"], range(7)]), axis=1), "MultiIndex"),
        (mixed_table(20).assign(span=pd.arrays.IntervalArray.from_breaks(range(21))), "'span'"),
        (mixed_table(20).rename(columns={"age": "job"}), "'job'"),
        (pa.table([[1, 2], [1, 2]], names=["age", "age"]), "'age'"),
        (pa.table({"age": [1, 2], "outcom": ["a", "b"]}), "'outcom'"),
        ("nowhere.csv", "nowhere.csv"),
        (Path("people.xls"), "people.xls"),
    ],
    ids=str,
)
def test_what_is_no_table_is_refused_in_a_sentence(table: Any, mentioned: str) -> None:
    with pytest.raises(InputError) as caught:
        condense(table, "outcome", rows=4)
    assert mentioned in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState], ids=["Generator", "RandomState"])
def test_generators_as_random_state(make: Callable[[int], Any]) -> None:
    frame = mixed_table()
    once, again = (condense(frame, "outcome", rows=12, random_state=make(7)) for _ in range(2))
    assert once.summary["seed"] == again.summary["seed"]
    pd.testing.assert_frame_equal(once.X, again.X)
    pd.testing.assert_frame_equal(once.X, condense(frame, "outcome", rows=12, random_state=once.summary["seed"]).X)
    pd.testing.assert_frame_equal(once.expand(50, random_state=make(1))[0], once.expand(50, random_state=make(1))[0])
    # A generator goes on from where it is.
    random = make(7)
    assert len({condense(frame, "outcome", rows=12, random_state=random).summary["seed"] for _ in range(2)}) == 2


def test_none_as_random_state_is_numpys_global_one() -> None:
    frame, seeds = mixed_table(60), []
    for _ in range(2):
        np.random.seed(3)
        seeds += [condense(frame, "outcome", rows=6, random_state=None).summary["seed"] for _ in range(2)]
    assert seeds[:2] == seeds[2:]
    assert seeds[0] != seeds[1]
