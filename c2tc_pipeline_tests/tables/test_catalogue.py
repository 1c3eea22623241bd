"""The catalogue and its descriptions: what is right is read, what is wrong is named with its place."""

from __future__ import annotations

import contextlib
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.catalogue import load_catalogue, load_yaml, validate_catalogue
from c2tc_pipeline.tables.roles import Role


def write(folder: Path, text: str) -> Path:
    path = folder / "catalog.yaml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_catalogue(write(folder, text))
    message = str(caught.value)
    assert "\n" not in message
    assert "catalog.yaml" in message
    assert message.endswith(".")
    return message


def with_fields(**fields: Any) -> str:
    return yaml.safe_dump({"tables": {"adult": {"source": "adult.csv", "label": "income", **fields}}})


def test_a_full_description(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """
        tables:
          zoo:
            source: s3://bucket/zoo.parquet
            label: class
          adult:
            source: tables/adult.csv
            label: income
            description: People.
            roles: {zip: code, note: drop}
            ratios: [0.1, 0.01]
            split: {seed: 3, validation: 0, test: 0.2, group_duplicates: true}
            settings: {gamma: auto, allocation: optimal, strings: target, representative: medoid}
        """,
    )
    catalogue = load_catalogue(path)
    assert list(catalogue) == ["zoo", "adult"]
    adult = catalogue["adult"]
    assert adult.roles == {"zip": Role.CODE, "note": Role.DROP}
    assert adult.ratios == (0.1, 0.01)
    assert (adult.split.seed, adult.split.test, adult.split.group_duplicates) == (3, 0.2, True)
    assert (adult.settings.gamma, adult.settings.allocation) == ("auto", "optimal")
    assert catalogue.resolve_source(adult) == str(tmp_path / "tables" / "adult.csv")
    assert catalogue.resolve_source(catalogue["zoo"]) == "s3://bucket/zoo.parquet"
    assert catalogue["zoo"].ratios == (0.01, 0.001, 0.0001)
    with pytest.raises(InputError, match=r"'adlt' .* 'adult'"):
        catalogue.table("adlt")


@pytest.mark.parametrize(
    ("source", "resolved"),
    [
        ("../adult.csv", "FOLDER/../adult.csv"),
        ("/elsewhere/adult.csv", "/elsewhere/adult.csv"),
        ("a.db?query=SELECT 'x://y' FROM t", "FOLDER/a.db?query=SELECT 'x://y' FROM t"),
        ("sqlite:///a?table=t", "sqlite:///FOLDER/a?table=t"),
        ("my db://ann:hidden@host/a.csv", "my db://ann:hidden@host/a.csv"),
    ],
)
def test_paths_are_relative_to_the_catalogue(tmp_path: Path, source: str, resolved: str) -> None:
    catalogue = load_catalogue(write(tmp_path, with_fields(source=source)))
    assert catalogue.resolve_source(catalogue["adult"]) == resolved.replace("FOLDER", str(tmp_path))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"label": 7}, "label"),
    ({"lable": "x"}, "lable"),
    ({"source": ""}, "source"),
]
WRONG += [({"ratios": []}, "ratios"), ({"ratios": [0.1, 0.1]}, "ratios"), ({"ratios": [0.1, 0]}, "ratios.1")]
WRONG += [({"ratios": [bad]}, "ratios.0") for bad in (1.5, float("nan"))]
WRONG += [({"roles": {"age": "number"}}, "roles.age"), ({"roles": {7: "code"}}, "roles.7")]
WRONG += [({"roles": {"income": "code"}}, "income"), ({"split": {"test": 0.5, "validation": 0.5}}, "split")]
WRONG += [({"split": {name: bad}}, f"split.{name}") for name, bad in (("test", 1.0), ("seed", -1), ("speed", 1))]
WRONG += [({"settings": {"gamma": bad}}, "settings.gamma") for bad in ("most", 1.5)]
WRONG += [({"settings": {"engine": bad}}, "settings.engine") for bad in ("spark", "dask://ann:hidden@host:1")]
WRONG += [({"settings": {"device": "tpu"}}, "settings.device")]
WRONG += [({"settings": {"min_rows_per_condensed_row": 0}}, "settings.min_rows_per_condensed_row")]
WRONG += [({"settings": {"min_rows_per_condensed_row": 5, "representative": "medoid"}}, "settings")]
WRONG += [({"checks": {"on_repeated_rows": "panic"}}, "checks.on_repeated_rows"), ({"checks": {"gap": 0.1}}, "checks")]


@pytest.mark.parametrize(("fields", "place"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_field_is_named(tmp_path: Path, fields: dict[str, Any], place: str) -> None:
    message = refusal(tmp_path, with_fields(**fields))
    assert "'adult'" in message
    assert f"'{place}" in message
    assert "hidden" not in message


def test_several_problems_are_counted(tmp_path: Path) -> None:
    for description, more in (("x", "1"), ("1", "2")):
        message = refusal(tmp_path, f"tables: {{adult: {{description: {description}}}}}")
        assert f" {more} more" in message


NO_YAML = ["tables: {a: [", "? [a, b]\n: 1", "a: \x00", "[" * 5_000, "# " + "x" * (1 << 20)]
NO_CATALOGUE = ["", "[1, 2]", "tables: {}\nmore: 1", "tables: {}", "tables: {adult: }"]
# With the line at fault.
FORBIDDEN = [("tables:\n  a: {source: x, label: y}\n  a: {source: z, label: y}", 3), ("a: &x [1]\nb: *x", 2)]
FORBIDDEN += [
    ("tables: {a: !!python/object:os.system {}}", 1),
    ("a: 2020-13-45", 1),
    ("first: 1\na: !!bool maybe\n", 2),
]


@pytest.mark.parametrize(("text", "line"), [*FORBIDDEN, *((text, None) for text in NO_YAML + NO_CATALOGUE)])
def test_wrong_yaml(tmp_path: Path, text: str, line: int | None) -> None:
    message = refusal(tmp_path, text)
    assert line is None or f"line {line}" in message


TAGS = ["int", "float", "bool", "null", "timestamp", "binary", "omap", "pairs", "set", "seq", "map", "str", "merge"]
VALUES = ["hello", "''", "[1]", "{a: 1}", "0x", "_", ".", "1:", "2026-99-99"]


def test_any_tag_before_any_value_is_read_or_refused(tmp_path: Path) -> None:
    for tag, value in product(TAGS, VALUES):
        path = write(tmp_path, f"first: 1\na: !!{tag} {value}\n")
        # Any other error, or nothing of the value, would be a fault.
        with contextlib.suppress(InputError):
            assert "a" in load_yaml(path), (tag, value)


def test_tags_that_fit_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, "day: 2026-11-17\nyes: !!bool yes\nnumber: !!int '7'\n")
    assert load_yaml(path) == {"day": date(2026, 11, 17), True: True, "number": 7}


def test_an_unreadable_catalogue(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9")
    for path in (tmp_path / "none.yaml", tmp_path, tmp_path / "latin.yaml"):
        with pytest.raises(InputError, match=path.name):
            load_catalogue(path)


def test_validation_opens_every_header(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text("a,y\n1,2\n")
    pd.DataFrame({"a": [1, 2, 3], "z": [0, 1, 0]}).to_parquet(tmp_path / "other.parquet")
    path = write(
        tmp_path,
        """
        tables:
          good: {source: good.csv, label: y}
          counted: {source: other.parquet, label: z}
          no_label: {source: other.parquet, label: y}
          no_column: {source: other.parquet, label: z, roles: {b: code}}
          no_file: {source: none.csv, label: y}
        """,
    )
    reports = {report.name: report for report in validate_catalogue(load_catalogue(path))}
    assert list(reports) == ["good", "counted", "no_label", "no_column", "no_file"]
    assert (reports["good"].problem, reports["good"].rows, reports["good"].columns) == (None, None, 2)
    assert (reports["counted"].problem, reports["counted"].rows, reports["counted"].columns) == (None, 3, 2)
    for name, named in (("no_label", "'y'"), ("no_column", "'b'"), ("no_file", "none.csv")):
        assert named in str(reports[name].problem)
    assert reports["no_file"].columns is None
