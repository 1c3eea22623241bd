"""The catalogue and its descriptions: what is right is read, what is wrong is named with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pydantic import ValidationError

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.catalogue import load_catalogue, validate_catalogue
from c2tc_pipeline.tables.roles import Role
from c2tc_pipeline.tables.spec import TableSpec


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


@pytest.mark.parametrize(
    ("fields", "place", "reason"),
    [
        ({"label": 7}, "'label'", "quotation marks"),
        ({"lable": "x"}, "'lable'", "'label'"),
        ({"ratios": []}, "'ratios'", "1"),
        ({"ratios": [0.1, 0]}, "'ratios.1'", "not 0"),
        ({"ratios": [1.5]}, "'ratios.0'", "not 1.5"),
        ({"ratios": [float("nan")]}, "'ratios.0'", ""),
        ({"ratios": [0.1, 0.1]}, "'ratios'", "once"),
        ({"roles": {"age": "number"}}, "'roles.age'", "'numeric', 'string', 'code' or 'drop'"),
        ({"roles": {7: "code"}}, "'roles.7", "quotation marks"),
        ({"roles": {"income": "code"}}, "", "'income'"),
        ({"split": {"test": 1.0}}, "'split.test'", "less than 1"),
        ({"split": {"test": 0.5, "validation": 0.5}}, "'split'", "below 1"),
        ({"split": {"seed": -1}}, "'split.seed'", "0"),
        ({"split": {"speed": 1}}, "'split.speed'", "no such setting"),
        ({"settings": {"gamma": "most"}}, "'settings.gamma'", ""),
        ({"settings": {"gamma": 1.5}}, "'settings.gamma'", "1"),
        ({"settings": {"engine": "spark"}}, "'settings.engine'", "Dask"),
        ({"settings": {"engine": "dask://ann:word@host:1"}}, "'settings.engine'", ""),
        ({"settings": {"device": "tpu"}}, "'settings.device'", "'auto', 'cpu', 'cuda' or 'mps'"),
        ({"settings": {"min_rows_per_condensed_row": 0}}, "'settings.min_rows_per_condensed_row'", "1"),
        ({"settings": {"min_rows_per_condensed_row": 5, "representative": "medoid"}}, "'settings'", "'medoid'"),
        ({"checks": {"on_repeated_rows": "panic"}}, "'checks.on_repeated_rows'", "'warn' or 'stop'"),
        ({"checks": {"gap": 0.1}}, "'checks'", "gap is no longer a setting"),
        ({"source": ""}, "'source'", "1 character"),
    ],
)
def test_wrong_field(tmp_path: Path, fields: dict[str, Any], place: str, reason: str) -> None:
    message = refusal(tmp_path, with_fields(**fields))
    for part in ("table 'adult'", place, reason):
        assert part in message
    assert "word" not in message


@pytest.mark.parametrize("name", ["../etc", "Adult", "a/b", "1st", "a b", "a" * 65, "ad\u00fclt", "a\n", ""])
def test_wrong_names(tmp_path: Path, name: str) -> None:
    text = yaml.safe_dump({"tables": {name: {"source": "a.csv", "label": "y"}}})
    assert "lower-case letters, digits and underscores" in refusal(tmp_path, text)
    with pytest.raises(ValidationError):
        TableSpec(name=name, source="a.csv", label="y")


def test_missing_fields_and_several_problems(tmp_path: Path) -> None:
    message = refusal(tmp_path, "tables: {adult: {description: x}}")
    assert "'source'" in message
    assert "1 more problem" in message
    assert "2 more problems" in refusal(tmp_path, "tables: {adult: {description: 1}}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'tables'"),
        ("[1, 2]", "'tables'"),
        ("tables: {}\nmore: 1", "'tables'"),
        ("tables: {}", "no table"),
        ("tables: {adult: }", "'adult'"),
        ("tables:\n  a: {source: x, label: y}\n  a: {source: z, label: y}", "line 3: the key 'a'"),
        ("a: &x [1]\nb: *x", "line 2: aliases"),
        ("tables: {a: !!python/object:os.system {}}", "line 1"),
        ("tables: {a: [", ""),
        ("? [a, b]\n: 1", "key"),
        ("a: \x00", "YAML"),
        ("a: 2020-13-45", "line 1: a value is not a valid timestamp"),
        ("[" * 100_000, "nested"),
        ("# " + "x" * (1 << 20), "1 MiB"),
    ],
)
def test_wrong_yaml(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refusal(tmp_path, text)


def test_an_unreadable_catalogue(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9")
    for name in ("none.yaml", "", "latin.yaml"):
        with pytest.raises(InputError, match=name or "can.t be read"):
            load_catalogue(tmp_path / name)


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
