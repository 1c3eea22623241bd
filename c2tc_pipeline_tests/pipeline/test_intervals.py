"""How often the sensors look."""

from __future__ import annotations

import pytest

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.pipeline.sensors import VARIABLE
from c2tc_pipeline.pipeline.sensors import FAILURE_INTERVAL_SECONDS, failure_sensor


def test_a_sensor_looks_as_often_as_suits_it_or_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert failure_sensor().minimum_interval_seconds == FAILURE_INTERVAL_SECONDS
    monkeypatch.setenv(VARIABLE, " 600 ")
    assert failure_sensor().minimum_interval_seconds == 600


@pytest.mark.parametrize("wanted", ["soon", "0", "-5", "1.5", "\u0663"])
def test_what_is_no_number_of_seconds_is_refused(monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv(VARIABLE, wanted)
    with pytest.raises(InputError, match=r"C2TC_SENSOR_SECONDS is .*; set it to a whole number of seconds above 0"):
        failure_sensor()
