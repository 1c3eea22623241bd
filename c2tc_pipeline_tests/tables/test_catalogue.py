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
    with pytest.raises(InputError, match=r"There is no table 'adlt' .* did you mean 'adult'"):
        catalogue.table("adlt")


def test_sources_may_lie_anywhere(tmp_path: Path) -> None:
    catalogue = load_catalogue(write(tmp_path, with_fields(source="../adult.csv")))
    assert Path(catalogue.resolve_source(catalogue["adult"])).resolve() == tmp_path.parent / "adult.csv"
    absolute = load_catalogue(write(tmp_path, with_fields(source="/somewhere/adult.csv")))
    assert absolute.resolve_source(absolute["adult"]) == "/somewhere/adult.csv"


@pytest.mark.parametrize(
    ("fields", "place", "reason"),
    [
        ({"label": 7}, "'label'", "put it in quotation marks"),
        ({"lable": "x"}, "'lable'", "there is no such setting; did you mean 'label'"),
        ({"ratios": []}, "'ratios'", "at least 1"),
        ({"ratios": [0.1, 0]}, "'ratios.1'", "greater than 0, not 0"),
        ({"ratios": [1.5]}, "'ratios.0'", "less than or equal to 1, not 1.5"),
        ({"ratios": [float("nan")]}, "'ratios.0'", "it should be"),
        ({"ratios": [0.1, 0.1]}, "'ratios'", "once only"),
        ({"roles": {"age": "number"}}, "'roles.age'", "'numeric', 'string', 'code' or 'drop'"),
        ({"roles": {7: "code"}}, "'roles.7", "quotation marks"),
        ({"roles": {"income": "code"}}, "table 'adult'", "the label 'income' can't have a role"),
        ({"split": {"test": 1.0}}, "'split.test'", "less than 1"),
        ({"split": {"test": 0.5, "validation": 0.5}}, "'split'", "together must be below 1"),
        ({"split": {"seed": -1}}, "'split.seed'", "greater than or equal to 0"),
        ({"split": {"speed": 1}}, "'split.speed'", "there is no such setting"),
        ({"settings": {"gamma": "most"}}, "'settings.gamma'", "it should be"),
        ({"settings": {"gamma": 1.5}}, "'settings.gamma'", "less than or equal to 1"),
        ({"settings": {"engine": "spark"}}, "'settings.engine'", "address of a Dask scheduler"),
        ({"settings": {"engine": "dask://ann:word@host:1"}}, "'settings.engine'", "the engine is unknown"),
        ({"settings": {"device": "tpu"}}, "'settings.device'", "'auto', 'cpu', 'cuda' or 'mps'"),
        ({"settings": {"min_rows_per_condensed_row": 0}}, "'settings.min_rows_per_condensed_row'", "greater than or"),
        (
            {"settings": {"min_rows_per_condensed_row": 5, "representative": "medoid"}},
            "'settings'",
            "with the representative 'medoid', which is a real row",
        ),
        ({"checks": {"on_repeated_rows": "panic"}}, "'checks.on_repeated_rows'", "'warn' or 'stop'"),
        ({"source": ""}, "'source'", "at least 1 character"),
    ],
)
def test_wrong_field(tmp_path: Path, fields: dict[str, Any], place: str, reason: str) -> None:
    message = refusal(tmp_path, with_fields(**fields))
    assert "table 'adult'" in message
    assert place in message
    assert reason in message


@pytest.mark.parametrize("name", ["../etc", "Adult", "a/b", "1st", "a b", "a" * 65, "ad\u00fclt", "a\n", ""])
def test_wrong_names(tmp_path: Path, name: str) -> None:
    text = yaml.safe_dump({"tables": {name: {"source": "a.csv", "label": "y"}}})
    assert "lower-case letters, digits and underscores" in refusal(tmp_path, text)
    with pytest.raises(ValidationError):
        TableSpec(name=name, source="a.csv", label="y")


def test_missing_fields_and_several_problems(tmp_path: Path) -> None:
    message = refusal(tmp_path, "tables: {adult: {description: x}}")
    assert "field 'source': it is missing; add it, and 1 more problem." in message
    assert "and 2 more problems." in refusal(tmp_path, "tables: {adult: {description: 1}}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "must have one key, 'tables'"),
        ("[1, 2]", "must have one key, 'tables'"),
        ("tables: {}\nmore: 1", "must have one key, 'tables'"),
        ("tables: {}", "describes no table"),
        ("tables: {adult: }", "no fields under table 'adult'"),
        (
            "tables:\n  a: {source: x, label: y}\n  a: {source: z, label: y}",
            "in line 3: the key 'a' stands there twice",
        ),
        ("a: &x [1]\nb: *x", "in line 2: aliases (*) are not allowed"),
        ("tables: {a: !!python/object:os.system {}}", "in line 1"),
        ("tables: {a: [", "not a valid description"),
        ("? [a, b]\n: 1", "a key must be text"),
        ("a: \x00", "YAML does not allow"),
        ("a: 2020-13-45", "in line 1: a value is not a valid timestamp"),
        ("[" * 100_000, "nested too deeply"),
        ("# " + "x" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_wrong_yaml(tmp_path: Path, text: str, reason: str) -> None:
    assert reason in refusal(tmp_path, text)


def test_an_unreadable_catalogue(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        load_catalogue(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="can't be read"):
        load_catalogue(tmp_path)
    (tmp_path / "latin.yaml").write_bytes(b"a: caf\xe9")
    with pytest.raises(InputError, match="is not UTF-8"):
        load_catalogue(tmp_path / "latin.yaml")


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
    assert "no label column 'y'" in str(reports["no_label"].problem)
    assert "no column 'b', which is given a role" in str(reports["no_column"].problem)
    assert "There is no file" in str(reports["no_file"].problem)
    assert reports["no_file"].columns is None


def test_a_description_cannot_be_changed() -> None:
    spec = TableSpec(name="a", source="a.csv", label="y")
    with pytest.raises(ValidationError):
        spec.label = "z"
