"""YAML with tags that do not fit their values: refused in one sentence, whatever the parser makes of them."""

from __future__ import annotations

from datetime import date
from itertools import product
from pathlib import Path

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.tables.strict_yaml import load_yaml

TAGS = ["int", "float", "bool", "null", "timestamp", "binary", "omap", "pairs", "set", "seq", "map", "str", "merge"]
VALUES = ["hello", "''", "[1]", "{a: 1}", "0x", "_", ".", "1:", "2026-99-99"]


@pytest.mark.parametrize(("tag", "value"), list(product(TAGS, VALUES)))
def test_any_tag_before_any_value_is_read_or_refused(tag: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"first: 1\na: !!{tag} {value}\n")
    try:
        read = load_yaml(path)
    except InputError as error:
        read = {"a": str(error)}
    # Any other error, or nothing of the value, would be a fault.
    assert "a" in read


def test_tags_that_fit_are_read_and_others_named_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("day: 2026-11-17\nyes: !!bool yes\nnumber: !!int '7'\n")
    assert load_yaml(path) == {"day": date(2026, 11, 17), True: True, "number": 7}
    path.write_text("first: 1\na: !!bool maybe\n")
    with pytest.raises(InputError, match="line 2: a value is not a valid bool"):
        load_yaml(path)
