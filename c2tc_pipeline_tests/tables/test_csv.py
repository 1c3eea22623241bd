"""Reading CSV: types over whole columns, dialects, and the row named when something is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.sources.addresses import open_source
from c2tc_pipeline.tables.blocks import read_table


def read(folder: Path, content: str | bytes, name: str = "t.csv", **options: list[str]) -> pd.DataFrame:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **options)


def refusal(folder: Path, content: str | bytes, name: str = "t.csv") -> str:
    with pytest.raises(InputError) as caught:
        read(folder, content, name)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    return message.replace(str(folder) + "/", "")


@pytest.mark.parametrize(
    ("cells", "dtype", "values"),
    [
        (["1", "-2", "+3"], "int64", [1, -2, 3]),
        (["1", "", "3"], "Int64", [1, None, 3]),
        (["9223372036854775807", "NA"], "Int64", [2**63 - 1, None]),
        (["1", "2.5", "1e3", ".5", "5.", "-0.0"], "float64", [1, 2.5, 1000, 0.5, 5, 0]),
        (["1.5", "inf", "-Infinity"], "float64", [1.5, np.inf, -np.inf]),
        ([" 1", "2 ", " "], "Int64", [1, 2, None]),
        (["true", "False", "TRUE"], "bool", [True, False, True]),
        (["true", "null"], "boolean", [True, None]),
        (["true", "1"], "str", ["true", "1"]),
        (["00501", "10001"], "str", ["00501", "10001"]),
        (["01.5", "2.5"], "str", ["01.5", "2.5"]),
        (["0", "0.5", "-0"], "float64", [0, 0.5, 0]),
        (["18446744073709551616", "1"], "str", ["18446744073709551616", "1"]),
        (["0x1F", "1"], "str", ["0x1F", "1"]),
        (["1_000", "1"], "str", ["1_000", "1"]),
        (["1,5", "2,5"], "str", ["1,5", "2,5"]),
        (["None", "?", "-"], "str", ["None", "?", "-"]),
        (["NA", "NaN", "null", "", "N/A"], "str", [None] * 5),
        (["a", "", " b "], "str", ["a", None, " b "]),
        (
            ["2020-01-01", "", "2020-01-02"],
            "datetime64[us]",
            [pd.Timestamp(2020, 1, 1), None, pd.Timestamp(2020, 1, 2)],
        ),
        (["2020-08-09 12:30"], "datetime64[us]", [pd.Timestamp("2020-08-09 12:30")]),
        (["2020-08-09T12:30:59.25"], "datetime64[us]", [pd.Timestamp("2020-08-09T12:30:59.25")]),
        (["09.08.2020"], "str", ["09.08.2020"]),
    ],
)
def test_type_of_a_whole_column(tmp_path: Path, cells: list[str], dtype: str, values: list[object]) -> None:
    frame = read(tmp_path, "x;other\n" + "".join(f"{cell};k\n" for cell in cells))
    assert str(frame["x"].dtype) == dtype
    assert [None if pd.isna(value) else value for value in frame["x"]] == values


@pytest.mark.parametrize(("last", "dtype"), [("x", "str"), ("2.5", "float64"), ("", "Int64"), ("007", "str")])
def test_one_value_in_the_last_row_decides(tmp_path: Path, last: str, dtype: str) -> None:
    frame = read(tmp_path, "a,b\n" + "".join(f"{row},k\n" for row in range(20_000)) + f"{last},k\n")
    assert str(frame["a"].dtype) == dtype
    assert len(frame) == 20_001


words = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters='"'), min_size=1)
columns = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
    st.lists(st.floats(allow_nan=False, width=64), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
    st.lists(words.map(lambda word: "w" + word + ', "q"\nline'), min_size=3, max_size=3),
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.from_regex(r"\A[a-z]{1,6}\Z"), columns, min_size=1, max_size=4))
def test_what_pandas_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, list[object]]
) -> None:
    path = tmp_path_factory.mktemp("round") / "t.csv"
    frame = pd.DataFrame(table)
    frame.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), frame)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_dialects(tmp_path: Path, delimiter: str, line_end: str, bom: bytes) -> None:
    lines = [delimiter.join(cells) for cells in (("a", "b c d"), ("1", "x"), ("2", '"y, z"'))]
    frame = read(tmp_path, bom + line_end.join(lines).encode())
    assert frame.to_dict("list") == {"a": [1, 2], "b c d": ["x", "y, z"]}


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ('name;note\nx;"a,b,c"\ny;d\n', {"name": ["x", "y"], "note": ["a,b,c", "d"]}),
        ('\n"a\nb",c\n\n1,2\n\n3,4\n', {"a\nb": [1, 3], "c": [2, 4]}),
        ('a,b\n"x ""y""\nz",1\n', {"a": ['x "y"\nz'], "b": [1]}),
        ("a\n1\n2\n", {"a": [1, 2]}),
        (",a\n0,5\n1,6\n", {"column_1": [0, 1], "a": [5, 6]}),
        ("a,b\n", {"a": [], "b": []}),
        ('a,b\n1,"x\ny"\n', {"a": [1], "b": ["x\ny"]}),
        ("a,b\n1,x\0y\n2,\0\n", {"a": [1, 2], "b": ["x\0y", "\0"]}),
        ('amount,place\n"0,5",a\n"1,5",b\n', {"amount": ["0,5", "1,5"], "place": ["a", "b"]}),
        (
            "betrag;ort\n30.211,73;Köln\n-7;Bonn\n0,5;Ulm\n",
            {"betrag": ["30.211,73", "-7", "0,5"], "ort": ["Köln", "Bonn", "Ulm"]},
        ),
        ("when,x\n2020-08-09,1\n2020-02-31,2\n", {"when": ["2020-08-09", "2020-02-31"], "x": [1, 2]}),
    ],
)
def test_headers_quotation_marks_and_types(tmp_path: Path, content: str, values: dict[str, list[object]]) -> None:
    assert read(tmp_path, content).to_dict("list") == values


def test_quoted_line_breaks_where_the_file_is_cut_into_blocks(tmp_path: Path) -> None:
    cell = "line\n" * 2000
    frame = read(tmp_path, "a,b\n" + f'"{cell}",1\n' * 1800)
    assert frame["a"].nunique() == 1
    assert frame["b"].sum() == 1800


def test_some_columns_in_the_asked_order(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b,c\n1,2,3\n", columns=["c", "a"]).to_dict("list") == {"c": [3], "a": [1]}
    with pytest.raises(InputError, match="'bb'"):
        read(tmp_path, "a,b,c\n1,2,3\n", columns=["bb"])


def test_peek_reads_the_header_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n" + b"\xff\xfe,3\n")
    assert open_source(path).header().columns == ("a", "b")
    assert open_source(path).header().rows is None


FAULTS: list[tuple[str | bytes, tuple[object, ...]]] = [
    ("a,b\n1,2\n\n3,4\n5,6,7\n8\n", (3, 5, 3)),
    ("a,b\n1,2\n3\n", (2, 3, 1)),
    ("a,b\n" + "1,2\n" * 100_000 + "3\n", (100_001, 100_002, 1)),
    ('a,b\n"x\ny",2\n3\n', (2, 4, 1)),
    (b"a,b\n2,caf\xe9\n3,y\n", (1, 2, "'b'")),
    (b"a,b\n" + b"1,x\n" * 69_999 + b"2,\xff\n", (70_000, 70_001, "'b'")),
    (b"a,caf\xe9\n1,2\n", (1,)),
    ("a,b\n1,2\n".encode("utf-16"), ()),
    ('a,b\n1,2\n3,"x\n4,5\n6,7\n', (2, 3)),
    ('a,b\n1,2\n3,"x\n' + "4,5\n" * 60_000, (2, 3)),
    ('a,b\n1,2\n"3,x\n4,5\n', (2, 3, 1, 2)),
    ("a,b,a\n1,2,3\n", ("'a'",)),
    *((empty, ()) for empty in ("", "\n\n", "\ufeff")),
]


@pytest.mark.parametrize(("content", "named"), FAULTS, ids=range(len(FAULTS)))
def test_row_line_column_and_number_of_fields_at_fault_are_named(
    tmp_path: Path, content: str | bytes, named: tuple[object, ...]
) -> None:
    words = re.findall(r"\d+|'\w+'", refusal(tmp_path, content))
    assert words[: len(named)] == [str(name) for name in named]
