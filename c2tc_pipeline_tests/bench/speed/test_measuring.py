"""Medians and noise, on a clock that tells the time we want."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from c2tc_pipeline.bench.speed.bench import Bench
from c2tc_pipeline.bench.speed.noise import Noise, NoiseProbe
from c2tc_pipeline.bench.speed.row import SpeedRow, reaches, to_frame


def ticking(durations: Iterable[float]) -> Callable[[], float]:
    """Return a clock on which the calls of a stopwatch last as long as given, one after the other."""
    times = [0.0]
    for duration in durations:
        times += [times[-1] + duration, times[-1] + duration]
    told = iter(times)
    return lambda: next(told)


def test_the_median_is_taken_and_the_slowest_probe_is_kept() -> None:
    calls: list[int] = []
    bench = Bench(
        repeats=3,
        clock=ticking([5.0, 1.0, 2.0]),
        probe=NoiseProbe(lambda: None, clock=ticking([0.05, 0.05, 0.09, 0.05])),
    )

    def call() -> int:
        calls.append(1)
        return len(calls)

    timed = bench.time(call)
    assert timed.value == len(calls) == 3
    assert timed.times == pytest.approx((5.0, 1.0, 2.0))
    assert timed.seconds == pytest.approx(2.0)
    assert timed.columns() == pytest.approx(
        {"repeats": 3, "seconds": 2.0, "seconds_least": 1.0, "seconds_most": 5.0, "probe_seconds": 0.09}
    )
    assert len(bench.probe.times) == 4


def test_what_is_slow_is_measured_once_between_two_probes() -> None:
    bench = Bench(repeats=5, probe=NoiseProbe(lambda: None))
    assert len(bench.once(lambda: None).times) == 1
    assert len(bench.probe.times) == 2


@pytest.mark.parametrize(
    ("times", "too_much"),
    [
        ([0.050, 0.051, 0.052, 0.060], False),
        # One disturbance does not spoil a run, a disturbed half of it does.
        ([0.050] * 9 + [0.5], False),
        ([0.050] * 5 + [0.064] * 5, True),
        ([], False),
    ],
)
def test_a_run_is_too_noisy_by_its_quartiles(times: list[float], too_much: bool) -> None:
    assert Noise.of(times).too_much is too_much


def test_a_moment_is_noisy_against_the_median_of_the_run() -> None:
    noise = Noise.of([0.05] * 9 + [0.5])
    assert noise.disturbed(0.5)
    assert not noise.disturbed(0.06)
    assert not noise.disturbed(None)


def test_the_probe_takes_time_of_its_own() -> None:
    assert NoiseProbe().sample() > 0


def test_an_aim_that_a_cut_off_reference_may_still_reach_is_not_missed() -> None:
    assert reaches(41, 40, at_least=True) is True
    assert reaches(39, 40, at_least=True) is None
    assert reaches(39, 40, at_least=False) is False
    assert reaches(None, 40, at_least=False) is None


def test_the_table_has_the_same_types_whatever_was_measured() -> None:
    bare = to_frame([SpeedRow(part="stages", what="read")])
    full = to_frame([SpeedRow(part="whole", what="all", seconds=2.0, reference_seconds=8.0, holds=True, ratio=0.1)])
    assert list(bare.dtypes) == list(full.dtypes) == list(to_frame([]).dtypes)
    assert full["times_faster"].tolist() == [4.0]
    assert bare["times_faster"].isna().all()
