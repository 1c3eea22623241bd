"""The moments in a step's life at which it is killed, each triggered by a hook in the process that is killed.

The hooks change modules for good, so nothing here is for the process of the tests. A process dies as the kernel ends
one that takes too much memory: by SIGKILL, with no chance to clear anything away.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import dagster as dg

import c2tc_pipeline
from c2tc_pipeline.pipeline.io_managers import StoreIOManager
from c2tc_pipeline.pipeline.steps import Step
from c2tc_pipeline.pipeline.versioning import TableStep
from c2tc_pipeline.storage import artefact, backend, manifest
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.manifest import files_below
from c2tc_pipeline.tables.blocks import Blocks

_OURS = str(Path(c2tc_pipeline.__file__).parent)
CALLS_NAME = "calls.json"
CACHED = ("encoder", "cluster_allocation", "evaluation_scores")
"""Assets that keep costly results in the cache while they work."""


def die() -> NoReturn:
    """End this process as the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def _cut_and_die(path: Path) -> NoReturn:
    """Halve a file, or the last one below a directory, as if it had been written so far."""
    last = files_below(path)[-1] if path.is_dir() else path
    os.truncate(last, last.stat().st_size // 2)
    die()


def _hook(
    owner: Any, name: str, *, before: Callable[..., object] | None = None, after: Callable[..., object] | None = None
) -> None:
    """Call functions with the arguments of a function or method, before or after each call of it."""
    really = getattr(owner, name)

    @wraps(really)
    def hooked(*arguments: Any, **options: Any) -> Any:
        if before:
            before(*arguments, **options)
        done = really(*arguments, **options)
        if after:
            after(*arguments, **options)
        return done

    setattr(owner, name, hooked)


def _in_step(asset: str, *, begin: Callable[[], object], end: Callable[[], object] = lambda: None) -> None:
    """Call functions when the step of an asset has its inputs, and when it has its result."""
    _hook(Step, "__init__", after=lambda self, *rest, **more: self.asset == asset and begin())
    _hook(Step, "result", before=lambda self, *rest, **more: self.asset == asset and end())


def _before_the_read(folder: Path, asset: str) -> None:
    def is_mine(keys: Any) -> bool:
        return any(TableStep.of_key(key).step == asset for key in keys)

    if asset == "raw_table":  # reads a source, and no other asset
        _hook(Step, "__init__", before=lambda self, step, *rest: is_mine([step.asset_key]) and die())
    else:
        mine = lambda self, step: is_mine(step.step_context.get_output_asset_keys()) and die()  # noqa: E731
        _hook(StoreIOManager, "load_input", before=mine)


def _after_the_read(folder: Path, asset: str) -> None:
    if asset == "raw_table":
        _hook(Blocks, "of_source", after=lambda *arguments: die())
    else:
        _in_step(asset, begin=die)


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
    calls = _Calls()

    def write_down(self: Step, *arguments: Any, **options: Any) -> None:
        sys.setprofile(None)
        path = folder / CALLS_NAME
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, self.asset: calls.count}))

    _hook(Step, "__init__", after=lambda *arguments: calls.start())
    _hook(Step, "result", before=write_down)


def _mid_compute(share: float) -> Callable[[Path, str], None]:
    def install(folder: Path, asset: str) -> None:
        calls = json.loads((folder / CALLS_NAME).read_text())[asset]
        _in_step(asset, begin=_Calls(max(1, round(share * calls))).start, end=die)

    return install


def _mid_write(folder: Path, asset: str) -> None:
    # A directory is filled in place and then synced; to S3 files are uploaded one by one.
    _hook(backend, "sync_directory", before=lambda path: f"/{asset}/" in str(path) and _cut_and_die(path))
    _hook(Backend, "write_file", after=lambda self, path, source: path.startswith(f"{asset}/") and die())


def _at_the_manifest(when: str) -> Callable[[Path, str], None]:
    def install(folder: Path, asset: str) -> None:
        def die_at_mine(self: Backend, path: str, content: bytes) -> None:
            if path.startswith(f"{asset}/") and "/manifests/" in path:
                die()

        _hook(Backend, "put_if_absent", **{when: die_at_mine})

    return install


def _half_a_manifest(folder: Path, asset: str) -> None:
    _hook(os, "link", before=lambda source, target: f"/{asset}/" in str(target) and _cut_and_die(source))


def _after_the_event(folder: Path, asset: str) -> None:
    def die_at_mine(self: dg.DagsterInstance, event: Any, **options: Any) -> None:
        told = event.dagster_event
        if told is not None and told.is_step_materialization and TableStep.of_key(told.asset_key).step == asset:
            die()

    _hook(dg.DagsterInstance, "handle_new_event", after=die_at_mine)


def _at_cache_write(owner: object, name: str, when: str, action: Callable[..., object]) -> Callable[[Path, str], None]:
    def install(folder: Path, asset: str) -> None:
        working: list[bool] = []
        _in_step(asset, begin=lambda: working.append(True), end=working.clear)
        act = lambda path, *rest, **more: working and action(path)  # noqa: E731
        _hook(owner, name, **{when: act})

    return install


MOMENTS: dict[str, Callable[[Path, str], None]] = {
    "before the read": _before_the_read,
    "after the read": _after_the_read,
    "a quarter through the work": _mid_compute(0.25),
    "half through the work": _mid_compute(0.5),
    "three quarters through the work": _mid_compute(0.75),
    "in the middle of writing": _mid_write,
    "between data and manifest": _at_the_manifest("before"),
    "with half a manifest written": _half_a_manifest,
    "between manifest and event": _at_the_manifest("after"),
    "after the event": _after_the_event,
    "in the middle of writing to the cache": _at_cache_write(manifest, "seal_manifest", "before", _cut_and_die),
    "after writing to the cache": _at_cache_write(artefact, "_swap_in", "after", lambda path: die()),
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
