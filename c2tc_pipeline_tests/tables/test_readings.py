"""Text columns that hold numbers, dates and spellings of missing values: decided as a whole, read alike ever after."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline import CondensedTable, condense
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.forget import forget_rows
from c2tc_pipeline.encoding.hybrid import HybridEncoder
from c2tc_pipeline.tables import blocks
from c2tc_pipeline.tables.blocks import Blocks
from c2tc_pipeline.tables.readings import MAX_WORDS_SHARE, Readings, gather_readings
from c2tc_pipeline.tables.schema import check_schema, derive_schema, schema_from_json, schema_to_json
from c2tc_pipeline.tables.table import learn_table
from c2tc_pipeline_tests.tables.test_statistics import CutBlocks
from c2tc_pipeline_tests.tools.command_line import Run, write_catalogue


def read(
    cells: list[Any], dtype: str = "str", missing: tuple[str, ...] = (), **roles: str
) -> tuple[pd.Series[Any], list[str]]:
    """Read a column; return it and the kinds of its notices."""
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
    readings, changed, notices = gather_readings(lambda _: [frame], missing=missing, roles=roles)
    assert all(notice.column == "x" for notice in notices)
    return readings.read(frame, changed)["x"], [notice.kind for notice in notices]


NA = None
MANY = [str(number) for number in range(1, 2_001)]


@pytest.mark.parametrize(
    ("cells", "dtype", "values", "notices"),
    [
        (["1", "-2", "+3"], "int64", [1, -2, 3], ["numbers_as_text"]),
        ([" 1", "", "NA", None], "Int64", [1, NA, NA, NA], ["missing_marks"]),
        (["1", "2.5", "1e3", ".5"], "float64", [1, 2.5, 1000, 0.5], ["numbers_as_text"]),
        ([*MANY, "unknown", "n.a."], "Int64", [*range(1, 2_001), NA, NA], ["words_among_numbers"]),
        ([*MANY, "unknown", "-", "?"], "str", [*MANY, "unknown", "-", "?"], ["words_in_text"]),
        (["1", "2", "unknown"], "str", ["1", "2", "unknown"], ["words_in_text"]),
        (["1", "small", "unknown"], "str", ["1", "small", "unknown"], []),
        ([*MANY, "007"], "str", [*MANY, "007"], []),
        (["00501", "10001"], "str", ["00501", "10001"], []),
        (["18446744073709551616", "1"], "str", ["18446744073709551616", "1"], []),
        (["9223372036854775807", "-9223372036854775808"], "int64", [2**63 - 1, -(2**63)], ["numbers_as_text"]),
        (["1,234.50", "12", "1,234,567"], "float64", [1234.5, 12, 1234567], ["number_format"]),
        (["1.234,5", "12", "-0,5"], "float64", [1234.5, 12, -0.5], ["number_format"]),
        (["1 234", "12", "1\u202f234\u00a0567"], "int64", [1234, 12, 1234567], ["number_format"]),
        (["1'234.5", "12"], "float64", [1234.5, 12], ["number_format"]),
        (["1,234", "12,500"], "int64", [1234, 12500], ["number_format"]),
        (["12,500", "3"], "str", ["12,500", "3"], ["ambiguous_numbers"]),
        (["1,234", "12,500", "1.234"], "str", ["1,234", "12,500", "1.234"], ["ambiguous_numbers"]),
        (["$1,234", "$12,500", "$3"], "int64", [1234, 12500, 3], ["number_format"]),
        (["$12,500", "$3"], "int64", [12500, 3], ["number_format"]),
        (["1.234 €", "12.500 €", "3 €"], "int64", [1234, 12500, 3], ["number_format"]),
        (["12.500 €", "3.50 €"], "float64", [12.5, 3.5], ["number_format"]),
        (["76.690", "12.500", "3"], "float64", [76.69, 12.5, 3], ["numbers_as_text"]),
        ([*MANY, *["12,500"] * 3], "int64", [*range(1, 2_001), *[12500] * 3], ["number_format"]),
        ([f"{n:,}" for n in range(900, 1_200)], "int64", list(range(900, 1_200)), ["number_format"]),
        (["R$ 1.234,50", "R$ 3,00"], "float64", [1234.5, 3], ["number_format"]),
        (["US$ 1,234", "US$ 3"], "int64", [1234, 3], ["number_format"]),
        (["1 234,50 kr", "3,00 kr"], "float64", [1234.5, 3], ["number_format"]),
        (["1\u00a0234,50\u00a0zł", "3 zł"], "float64", [1234.5, 3], ["number_format"]),
        (["₹1,23,456", "₹3"], "int64", [123456, 3], ["number_format"]),
        (["(1,234.50)", "($7.25)", "12"], "float64", [-1234.5, -7.25, 12], ["number_format"]),
        (["\u22125", "$\u22127", "7"], "int64", [-5, -7, 7], ["number_format"]),
        (["(cook)", "(nurse)"], "str", ["(cook)", "(nurse)"], []),
        (["1,234", "0,500"], "float64", [1.234, 0.5], ["number_format"]),
        (["1,234", "1,234,567"], "int64", [1234, 1234567], ["number_format"]),
        (["12,34", "1,234"], "float64", [12.34, 1.234], ["number_format"]),
        ([*MANY, "1,234"], "Int64", [*range(1, 2_001), NA], ["words_among_numbers"]),
        (["$5", "-$1,000.25", "$-7", "3"], "float64", [5, -1000.25, -7, 3], ["number_format"]),
        (["5 EUR", "1.000,50 EUR"], "float64", [5, 1000.5], ["number_format"]),
        (["$5", "€5"], "str", ["$5", "€5"], ["mixed_signs"]),
        (["5%", "-7.5 %"], "float64", [5, -7.5], ["number_format"]),
        (["5%", "7"], "str", ["5%", "7"], ["mixed_signs"]),
        (["2020-01-01", "2020-02-29 12:30"], "datetime64[us]", ["2020-01-01", "2020-02-29 12:30"], ["dates_as_text"]),
        (["2020-01-01", "2020-02-31"], "str", ["2020-01-01", "2020-02-31"], []),
        (["2022/01/31", "2022/02/01 10:30"], "datetime64[us]", ["2022-01-31", "2022-02-01 10:30"], ["dates_as_text"]),
        (
            ["2024-01-01T10:00:00Z", "2024-01-01T10:00:00.5+01:00", "2024-01-01 10:00-0230"],
            "datetime64[us, UTC]",
            ["2024-01-01T10:00Z", "2024-01-01T09:00:00.5Z", "2024-01-01T12:30Z"],
            ["dates_as_text"],
        ),
        (["2024-01-01T10:00Z", "2024-01-01"], "str", ["2024-01-01T10:00Z", "2024-01-01"], []),
        (["2024-02-31T10:00Z", "2024-01-01T10:00Z"], "str", ["2024-02-31T10:00Z", "2024-01-01T10:00Z"], []),
        (["31.12.2022", "01.02.2023"], "str", ["31.12.2022", "01.02.2023"], ["ambiguous_dates"]),
        (["12/31/2022 9:30 PM", "1/2/2023"], "str", ["12/31/2022 9:30 PM", "1/2/2023"], ["ambiguous_dates"]),
        (["cook", "NA", "N/A", " NA"], "str", ["cook", NA, NA, " NA"], ["missing_marks"]),
        (["inf", "1"], "str", ["inf", "1"], []),
        (["0x1F", "1_000", "1e", "--1"], "str", ["0x1F", "1_000", "1e", "--1"], []),
        ([None, None], "str", [NA, NA], []),
    ],
)
def test_text(cells: list[Any], dtype: str, values: list[Any], notices: list[str]) -> None:
    column, told = read(cells)
    expected = [pd.Timestamp(value) for value in values] if dtype.startswith("datetime") else values
    assert str(column.dtype) == dtype
    assert [None if pd.isna(value) else value for value in column] == expected
    assert told == notices


@pytest.mark.parametrize(
    ("cells", "dtype", "missing", "values"),
    [
        (["1", "unknown", "2", "unknown"], "str", ("unknown",), [1, NA, 2, NA]),
        ([1, -999, 3], "int64", ("-999",), [1, NA, 3]),
        ([2**62 + 1, -999], "int64", ("-999",), [2**62 + 1, NA]),
        ([0.5, -999.0], "float64", ("-999",), [0.5, NA]),
        ([1, -999, "x"], "object", ("-999",), [1, NA, "x"]),
        (["a", "NA", "none"], "category", ("none",), ["a", NA, NA]),
        (["1", "2"], "category", (), ["1", "2"]),
        ([*range(1_999), "n.a."], "object", (), [*range(1_999), NA]),
        ([True, False, None], "object", ("-1",), [True, False, NA]),
        ([True, False], "bool", ("1",), [True, False]),
    ],
)
def test_other_columns_and_words_of_the_user(
    cells: list[Any], dtype: str, missing: tuple[str, ...], values: list[Any]
) -> None:
    column, _ = read(cells, dtype, missing)
    assert [None if pd.isna(value) else value for value in column] == values
    if dtype == "category":
        assert column.dtype == pd.Series(cells, dtype=dtype).dtype


def test_roles_of_the_user_decide() -> None:
    assert read(["1,234", "125"], x="numeric")[0].tolist() == [1234, 125]
    assert read(["1.234,5", "12,500"], x="numeric")[0].tolist() == [1234.5, 12.5]
    for role in ("string", "drop"):
        assert read(["1", "2", "NA"], x=role)[0].astype(object).tolist()[:2] == ["1", "2"]


cells = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.integers(0, 10**7).map(lambda number: f"{number:,}"),
    st.sampled_from(["1,5", "$1,234.50", "5%", "unknown", "-", "NA", "", "2020-08-09", "00501", " 7 ", "x" * 300]),
    st.text(max_size=5),
    st.none(),
)


@settings(deadline=None)
@given(st.lists(cells, min_size=1, max_size=30), st.lists(st.integers(0, 40), max_size=4), st.booleans())
def test_any_division_into_blocks_and_any_order_is_read_alike(found: list[Any], edges: list[int], many: bool) -> None:
    frame = pd.DataFrame({"x": pd.Series([*found, *(MANY * 2 if many else [])], dtype="str")})
    cuts = [0, *sorted(edge % (len(frame) + 1) for edge in edges), len(frame)]
    parts = [frame[start:stop] for start, stop in itertools.pairwise(cuts)]
    whole = gather_readings(lambda _: [frame])
    assert gather_readings(lambda _: parts) == whole
    assert gather_readings(lambda _: [frame[::-1]]) == whole
    readings, changed, _ = whole
    read_whole = Blocks.of_frame(frame).read_as(readings, changed)
    read_parts = CutBlocks(parts).read_as(readings, changed)
    values = [pd.concat(list(blocks.frames()))["x"].astype(object) for blocks in (read_whole, read_parts)]
    listed = [column.where(column.notna(), None).tolist() for column in values]
    assert listed[0] == listed[1]
    # Whatever is read stays as it is when it is read again, and JSON keeps how.
    again = Readings.from_json(readings.to_json())
    assert again == readings
    column = pd.concat(list(read_whole.frames()))
    pd.testing.assert_frame_equal(again.read(column), column)
    if "x" in readings.columns:
        words = values[0].isna().sum() - frame["x"].isin(["", "NA", None]).sum()
        assert words <= MAX_WORDS_SHARE * len(frame)


def people(rows: int = 3_000) -> pd.DataFrame:
    """Dirty numbers, dates as text, and marks of missing values beside a label."""
    rng = np.random.default_rng(0)
    wage = rng.normal(3_000, 900, rows).round(2)
    frame = pd.DataFrame(
        {
            "wage": [f"${number:,.2f}" for number in wage],
            "age": rng.integers(18, 90, rows).astype(str),
            "since": pd.Series(
                pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D")
            ).dt.strftime("%Y-%m-%d"),
            "job": rng.choice(["cook", "nurse", "NA"], rows),
            "income": np.where(wage > 3_200, "high", "low"),
        }
    )
    frame.loc[[7, 99], "wage"], frame.loc[[5], "age"] = "unknown", "-"
    return frame


def test_new_rows_and_files_are_read_as_when_it_was_fitted(tmp_path: Path) -> None:
    frame = people()
    small = condense(frame, label="income", rows=40, random_state=0)
    assert [str(small.original[name].dtype) for name in ("wage", "age")] == ["float64", "Int64"]
    assert small.original["since"].dtype.kind == "M"
    kinds = {notice.kind for notice in small.notices}
    assert {"words_among_numbers", "missing_marks", "dates_as_text"} <= kinds
    features = frame.drop(columns="income")
    clean = features.assign(
        wage=pd.to_numeric(features["wage"].str.replace("[$,]", "", regex=True), errors="coerce"),
        age=pd.to_numeric(features["age"], errors="coerce"),
        since=pd.to_datetime(features["since"]),
        job=features["job"].where(features["job"] != "NA"),
    )
    encoded = np.asarray(small.encoder.transform(features))
    np.testing.assert_array_equal(encoded, small.encoder.transform(clean))
    np.testing.assert_array_equal(encoded[[7, 5]], small.encoder.transform(features.iloc[[7, 5]]))
    small.save(tmp_path / "small")
    np.testing.assert_array_equal(encoded, CondensedTable.load(tmp_path / "small").encoder.transform(features))
    fitted = HybridEncoder(random_state=0).fit(features, frame["income"])
    np.testing.assert_array_equal(fitted.transform(features), fitted.transform(clean))
    with pytest.raises(InputError, match=r"'wage' .*'much', in data row 1 "):
        small.encoder.transform(features.head(1).assign(wage="much"))
    without = forget_rows(small, frame, np.array([0, 7])).table
    assert int(without.weight.sum()) == len(frame) - 2
    # Text stays what it is where the user says so.
    kept = condense(frame, label="income", rows=40, roles={"age": "string"}, random_state=0)
    assert kept.original["age"].dtype == "str"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", None])
def test_the_delimiter_says_nothing_about_the_numbers(tmp_path: Path, delimiter: str | None) -> None:
    rows = np.arange(40)
    frame = pd.DataFrame(
        {
            "salary": [f"{950 + 500 * row:,}" for row in rows],
            "share": [f"{row},5" for row in rows],
            "price": [f"{row + 1}.234,50" for row in rows],
            "km": [f"{row + 0.69:.3f}" for row in rows],
            "y": np.where(rows % 2, "a", "b"),
        }
    )
    path = tmp_path / ("t.csv" if delimiter else "t.parquet")
    frame.to_csv(path, index=False, sep=delimiter) if delimiter else frame.to_parquet(path)
    found = learn_table(Blocks.of_source(path), label="y")
    read = found.read("train")
    assert read["salary"].tolist() == (950 + 500 * rows).tolist()
    assert read["share"].tolist() == (rows + 0.5).tolist()
    assert read["price"].tolist() == (1000 * rows + 1234.5).tolist()
    assert read["km"].tolist() == [float(cell) for cell in frame["km"]]
    assert {notice.column for notice in found.notices if notice.kind == "number_format"} >= {"salary", "share"}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_moments_with_a_zone_are_numbers_in_every_source(tmp_path: Path, name: str) -> None:
    when = pd.Timestamp("2024-01-01", tz="UTC") + pd.to_timedelta(np.arange(300) * 7, "h")
    text = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    frame = pd.DataFrame({"when": when if name == "t.parquet" else text, "y": np.where(np.arange(300) % 2, "a", "b")})
    write: Any = {"t.csv": frame.to_csv, "t.jsonl": frame.to_json, "t.parquet": frame.to_parquet}[name]
    write(tmp_path / name, **({"orient": "records", "lines": True} if name == "t.jsonl" else {"index": False}))
    table = learn_table(Blocks.of_source(tmp_path / name), label="y")
    assert table.roles["when"].role == "numeric"
    assert (table.read("train")["when"] == when).all()


def test_tables_larger_than_memory_are_read_alike(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people().to_csv(tmp_path / "t.csv", index=False)
    people().to_parquet(tmp_path / "t.parquet")
    found = []
    for limit in (blocks.LARGE_CELLS, 100):
        for name in ("LARGE_CELLS", "LARGE_CSV_BYTES", "BLOCK_ROWS"):
            monkeypatch.setattr(blocks, name, limit)
        for name in ("t.csv", "t.parquet"):
            table = learn_table(Blocks.of_source(tmp_path / name), label="income")
            assert table.blocks.in_memory == (limit != 100)
            table.blocks.write(tmp_path / "stored.parquet")
            stored = pd.concat(list(Blocks.of_parquet(tmp_path / "stored.parquet").frames()), ignore_index=True)
            pd.testing.assert_frame_equal(stored, table.read("train").reset_index(drop=True), check_dtype=limit != 100)
            found.append((stored.astype(object).where(stored.notna(), None).to_dict("list"), table.roles))
    assert all(each == found[0] for each in found)


def test_later_deliveries_fit_if_they_hold_the_same_words() -> None:
    frame = people()
    table = learn_table(Blocks.of_frame(frame), label="income")
    schema = schema_from_json(schema_to_json(derive_schema(table)))
    assert check_schema(Blocks.of_frame(frame[:1_000]), schema) == []
    other = frame.assign(
        wage=frame["wage"].replace("unknown", "much"), since=frame["since"].where(frame.index != 3, "soon")
    )
    found = {
        failure.column: (failure.check, failure.count, failure.first_cases)
        for failure in check_schema(Blocks.of_frame(other), schema)
    }
    assert found == {"wage": ("number", 2, ("much",) * 2), "since": ("number", 1, ("soon",))}


def test_labels_of_many_numbers_are_classes_if_declared() -> None:
    frame = pd.DataFrame({"x": np.arange(3_000) % 7, "y": np.arange(3_000) % 300})
    with pytest.raises(InputError, match='label_kind="classes"'):
        condense(frame, label="y", rows=300)
    with pytest.raises(InputError, match="Both ratio and rows"):
        condense(frame, label="y", rows=300, ratio=0.5)
    assert len(condense(frame, label="y", rows=300, label_kind="classes").classes) == 300
    with pytest.raises(InputError, match="auto, classes"):
        condense(frame, label="y", rows=300, label_kind="number")


def test_the_command_and_the_catalogue_take_them(run: Run, tmp_path: Path) -> None:
    rows = 600
    frame = pd.DataFrame({"x": ["unknown" if row % 3 else str(row) for row in range(rows)], "y": np.arange(rows) % 250})
    frame.to_csv("t.csv", index=False)
    write_catalogue(people={"source": "../t.csv", "label": "y", "missing": ["unknown"], "label_kind": "classes"})
    options = ["--missing", "unknown, ?", "--label-kind", "classes"]
    for where, told in (("--table people", []), ("t.csv --label y", options)):
        result = run("condense", *where.split(), "--rows", 250, "--out", "out", "--quiet", "--no-cache", *told)
        assert result.exit_code == 0, result.output
        small = CondensedTable.load("out")
        assert small.original["x"].dtype.kind in "if"
        assert len(small.classes) == 250
