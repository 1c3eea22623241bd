"""The moments in a step's life at which it is killed, each brought about by a hook in the process that shall die.

The hooks change modules for good, so nothing here is for the process of the tests. A process dies as the kernel ends
one that takes too much memory: by SIGKILL, with no chance to clear anything away.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import dagster as dg

import c2tc_pipeline
from c2tc_pipeline.pipeline.assets import ingest
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.step_frame import StepFrame
from c2tc_pipeline.storage import artefact
from c2tc_pipeline.storage.manifest import files_below
from c2tc_pipeline.storage.keys import MANIFEST_FOLDER
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.store import ArtefactStore

_OURS = str(Path(c2tc_pipeline.__file__).parent)
CALLS_NAME = "calls.json"
SOURCES = ("raw_table", "experiment_scores")
"""Assets without inputs: what they read is a source."""
CACHED = ("encoder", "cluster_allocation", "evaluation_scores")
"""Assets that keep costly results in the cache while they work."""


def die() -> NoReturn:
    """End this process as the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def _change(owner: object, name: str, function: object) -> None:
    setattr(owner, name, function)


def _before_the_read(folder: Path, asset: str) -> None:
    if asset in SOURCES:
        begin = StepFrame.__init__

        def die_at_begin(self: StepFrame, context: Any, *arguments: Any) -> None:
            if context.asset_key.to_user_string() == asset:
                die()
            begin(self, context, *arguments)

        _change(StepFrame, "__init__", die_at_begin)
        return
    load = StoreIOManager.load_input

    def die_at_load(self: StoreIOManager, context: Any) -> Any:
        if any(key.to_user_string() == asset for key in context.step_context.get_output_asset_keys()):
            die()
        return load(self, context)

    _change(StoreIOManager, "load_input", die_at_load)


def _after_the_read(folder: Path, asset: str) -> None:
    if asset == "raw_table":
        read = ingest.read_delivery

        def read_and_die(*arguments: Any) -> NoReturn:
            read(*arguments)
            die()

        _change(ingest, "read_delivery", read_and_die)
        return
    _in_compute(asset, at_begin=die)


def _in_compute(
    asset: str, *, at_begin: Callable[[], object] = lambda: None, at_end: Callable[[], object] = lambda: None
) -> None:
    """Let something happen when a step has its inputs, and when it has its result."""
    begin, result = StepFrame.__init__, StepFrame.result

    def begun(self: StepFrame, *arguments: Any) -> None:
        begin(self, *arguments)
        if self.asset == asset:
            at_begin()

    def ended(self: StepFrame, *arguments: Any, **options: Any) -> Any:
        if self.asset == asset:
            at_end()
        return result(self, *arguments, **options)

    _change(StepFrame, "__init__", begun)
    _change(StepFrame, "result", ended)


class _Calls:
    """Counts the calls of the package's own functions, which are the same ones in every run of a step."""

    def __init__(self, deadly: int | None = None) -> None:
        self.count, self._deadly = 0, deadly

    def start(self) -> None:
        self.count = 0
        sys.setprofile(self._called)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(_OURS):
            self.count += 1
            if self.count == self._deadly:
                die()


def count_calls(folder: Path) -> None:
    """Write down how many calls each step takes, for :func:`killed_at` to choose one of them."""
    begin, result, calls = StepFrame.__init__, StepFrame.result, _Calls()

    def begun(self: StepFrame, *arguments: Any) -> None:
        begin(self, *arguments)
        calls.start()

    def ended(self: StepFrame, *arguments: Any, **options: Any) -> Any:
        sys.setprofile(None)
        path = folder / CALLS_NAME
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, self.asset: calls.count}))
        return result(self, *arguments, **options)

    _change(StepFrame, "__init__", begun)
    _change(StepFrame, "result", ended)


def _mid_compute(share: float) -> Callable[[Path, str], None]:
    def install(folder: Path, asset: str) -> None:
        calls = json.loads((folder / CALLS_NAME).read_text())[asset]
        _in_compute(asset, at_begin=_Calls(max(1, round(share * calls))).start, at_end=die)

    return install


def _mid_write(folder: Path, asset: str) -> None:
    publish, upload = ArtefactStore.publish, S3Backend.write_file

    def publish_half(self: ArtefactStore, key: str, write: Callable[[Path], object], **options: Any) -> Any:
        def write_half(directory: Path) -> None:
            write(directory)
            if key.startswith(f"{asset}/") and isinstance(self.backend, LocalBackend):
                last = files_below(directory)[-1]
                os.truncate(last, last.stat().st_size // 2)
                die()

        return publish(self, key, write_half, **options)

    def upload_one(self: S3Backend, path: str, source: Path) -> None:
        upload(self, path, source)
        if path.startswith(f"{asset}/"):
            die()

    _change(ArtefactStore, "publish", publish_half)
    _change(S3Backend, "write_file", upload_one)


def _at_the_manifest(*, before: bool) -> Callable[[Path, str], None]:
    def install(folder: Path, asset: str) -> None:
        for backend in (LocalBackend, S3Backend):
            _change(backend, "put_if_absent", watched(backend.put_if_absent, asset))

    def watched(put: Callable[..., bool], asset: str) -> Callable[..., bool]:
        def put_and_die(self: object, path: str, content: bytes) -> bool:
            mine = path.startswith(f"{asset}/") and f"/{MANIFEST_FOLDER}/" in path
            if mine and before:
                die()
            done = put(self, path, content)
            if mine:
                die()
            return done

        return put_and_die

    return install


def _half_a_manifest(folder: Path, asset: str) -> None:
    link = os.link

    def die_at_link(source: Path, target: Path) -> None:
        if f"/{asset}/" in str(target):
            os.truncate(source, source.stat().st_size // 2)
            die()
        link(source, target)

    _change(os, "link", die_at_link)


def _after_the_event(folder: Path, asset: str) -> None:
    handle = dg.DagsterInstance.handle_new_event

    def handle_and_die(self: dg.DagsterInstance, event: Any, **options: Any) -> None:
        handle(self, event, **options)
        told = event.dagster_event
        if told is not None and told.is_step_materialization and told.asset_key.to_user_string() == asset:
            die()

    _change(dg.DagsterInstance, "handle_new_event", handle_and_die)


def _mid_cache_write(folder: Path, asset: str) -> None:
    seal = artefact.seal_manifest

    def die_at_seal(directory: Path, **options: Any) -> bytes:
        last = files_below(directory)[-1]
        os.truncate(last, last.stat().st_size // 2)
        die()

    def arm() -> None:
        _change(artefact, "seal_manifest", die_at_seal)

    def disarm() -> None:
        _change(artefact, "seal_manifest", seal)

    _in_compute(asset, at_begin=arm, at_end=disarm)


def _after_cache_write(folder: Path, asset: str) -> None:
    swap = artefact._swap_in

    def swap_and_die(*arguments: Any, **options: Any) -> None:
        swap(*arguments, **options)
        die()

    _in_compute(
        asset,
        at_begin=lambda: _change(artefact, "_swap_in", swap_and_die),
        at_end=lambda: _change(artefact, "_swap_in", swap),
    )


MOMENTS: dict[str, Callable[[Path, str], None]] = {
    "before the read": _before_the_read,
    "after the read": _after_the_read,
    "a quarter through the work": _mid_compute(0.25),
    "half through the work": _mid_compute(0.5),
    "three quarters through the work": _mid_compute(0.75),
    "in the middle of writing": _mid_write,
    "between data and manifest": _at_the_manifest(before=True),
    "with half a manifest written": _half_a_manifest,
    "between manifest and event": _at_the_manifest(before=False),
    "after the event": _after_the_event,
    "in the middle of writing to the cache": _mid_cache_write,
    "after writing to the cache": _after_cache_write,
}
"""In the order in which they come in a step's life, all but the last two."""

ONLY_CACHED = ("in the middle of writing to the cache", "after writing to the cache")
ON_S3 = tuple(moment for moment in MOMENTS if moment not in ("with half a manifest written", *ONLY_CACHED))
"""A put to S3 has no half, and the cache is on disk wherever artefacts are."""
LEAVES_A_VERSION = ("between manifest and event", "after the event")
"""Moments after which the version is visible: the next run makes it once more."""


def killed_at(folder: Path, asset: str, moment: str) -> None:
    """Die at a moment of the making of an asset."""
    MOMENTS[moment](folder, asset)
