"""The store of each kind of place; the places are fixtures that other folders use too."""

from __future__ import annotations

import pytest

from c2tc_pipeline.storage.store import ArtefactStore
from c2tc_pipeline_tests.storage.places import Place


@pytest.fixture
def store(place: Place) -> ArtefactStore:
    return place.store
