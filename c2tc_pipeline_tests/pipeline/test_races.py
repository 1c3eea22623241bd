"""A run that is overtaken by another one of the same partition drops its result and says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline_tests.pipeline.pipeline_rig import Rig, failure_of, succeeded, tries_of

# One that does not wait for its turn on the device, as only one run could then be at it.
ASSET = "encoded_table"


def test_a_run_that_was_overtaken_while_it_loaded_its_inputs_cannot_win(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, others = StoreIOManager.read, list[str]()

    def overtake() -> None:
        with Rig(tmp_path) as other:
            result = other.make(ASSET, "people")
            succeeded(result)
            others.append(result.run_id)

    def read_and_be_overtaken(manager: StoreIOManager, *arguments: Any) -> Any:
        value = read(manager, *arguments)
        if not others:
            others.append("under way")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(overtake).result()
        return value

    with Rig(tmp_path) as rig:
        rig.add("people")
        for asset in ("raw_table", "validated_table", "encoder"):
            succeeded(rig.make(asset, "people"))
        monkeypatch.setattr(StoreIOManager, "read", read_and_be_overtaken)
        result = rig.make(ASSET, "people")
        assert failure_of(result, ASSET).startswith(f"Another run published version 1 of '{ASSET}/people'")
        assert tries_of(result, ASSET) == 1
        stored = rig.store.latest(f"{ASSET}/people")
        assert stored is not None
        assert (stored.version, stored.settings["run_id"]) == (1, others[1])
        assert ASSET not in rig.out_of_date()
        assert rig.make(ASSET, "people").success, "nothing is left behind that would stop the next run"
