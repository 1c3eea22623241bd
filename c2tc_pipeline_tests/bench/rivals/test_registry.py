"""Rivals by name: all there, loaded only when asked for, mistakes explained."""

from __future__ import annotations

import importlib
import sys

import pytest

from c2tc_pipeline.bench import rivals
from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.condensation.sampler import Sampler

CLASSIC = ("random", "stratified", "herding", "k_center", "cluster_centroids", "minibatch_kmeans", "lightweight")
MODULES = ("random_rows", "stratified", "herding", "k_center", "cluster_centroids", "minibatch", "lightweight")
MATCHING = ("dm", "gm", "mtt")


def test_the_names_are_those_of_the_tables() -> None:
    assert tuple(rivals.RIVALS) == CLASSIC + MATCHING


@pytest.mark.parametrize("name", CLASSIC)
def test_settings_reach_the_rival(name: str) -> None:
    rival = rivals.make_rival(name, ratio=0.2, rows=9, seed=4)
    assert isinstance(rival, Sampler)
    assert (rival.ratio, rival.rows, rival.random_state) == (0.2, 9, 4)


def test_own_settings_reach_the_rival() -> None:
    assert rivals.make_rival("k_center", ratio=0.1, start="random").get_params()["start"] == "random"


def test_a_rival_is_imported_only_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # None makes an import fail: neither the registry nor another rival may want these files.
    for module in (*MODULES[1:], *MATCHING):
        monkeypatch.setitem(sys.modules, f"{rivals.__name__}.{module}", None)
    fresh = importlib.reload(rivals)
    assert fresh.make_rival("random", ratio=0.1).ratio == 0.1
    for name in (*CLASSIC[1:], *MATCHING):
        with pytest.raises(ImportError):
            fresh.make_rival(name, ratio=0.1)


def test_an_unknown_rival_is_refused() -> None:
    with pytest.raises(InputError, match=r"^Rival 'hurding' is unknown; choose one of: random, stratified, herding, "):
        rivals.make_rival("hurding", ratio=0.1)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("herding", r"^Rival 'herding' has no setting 'pace'; it has none beside ratio, rows and seed\.$"),
        ("k_center", r"^Rival 'k_center' has no setting 'pace'; it has start\.$"),
    ],
)
def test_an_unknown_setting_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rivals.make_rival(name, ratio=0.1, pace=3)
