"""Results change only together with the version of the algorithm."""

from __future__ import annotations

import json

import pytest

from c2tc_pipeline_tests.golden import RECORD, recompute, versions


@pytest.mark.slow
def test_results_are_the_recorded_ones() -> None:
    recorded, found = json.loads(RECORD.read_text(encoding="utf-8")), recompute()
    before, now = recorded["digests"], found["digests"]
    assert now.keys() == before.keys()
    changed = [(name, part) for name in now for part in now[name] if now[name][part] != before[name][part]]
    assert not changed, "raise the algorithm's version, then run: python -m c2tc_pipeline_tests.golden --write"
    assert found["autoencoder_loss"] == pytest.approx(recorded["autoencoder_loss"], rel=0.02)


def test_the_record_is_of_the_present_versions() -> None:
    assert json.loads(RECORD.read_text(encoding="utf-8"))["versions"] == versions()
