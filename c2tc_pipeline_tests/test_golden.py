"""Results change only together with the version of the algorithm."""

from __future__ import annotations

import json

import pytest

from c2tc_pipeline_tests.golden import RECORD, recompute, versions


@pytest.mark.slow
def test_results_are_the_recorded_ones() -> None:
    recorded, found = json.loads(RECORD.read_text(encoding="utf-8"))["digests"], recompute()
    assert found.keys() == recorded.keys()
    changed = {name: part for name in found for part in found[name] if found[name][part] != recorded[name][part]}
    assert not changed, "raise the algorithm's version, then run: python -m c2tc_pipeline_tests.golden --write"


def test_the_record_is_of_the_present_versions() -> None:
    assert json.loads(RECORD.read_text(encoding="utf-8"))["versions"] == versions()
