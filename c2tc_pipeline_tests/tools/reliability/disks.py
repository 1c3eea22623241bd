"""Disks that are small or read-only, as far as this machine lets a test have them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """Mount a disk of so many kilobytes; skip where that is not allowed."""
    folder.mkdir()
    if not _mount("-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)):
        pytest.skip("no disk can be mounted here")
    try:
        yield folder
    finally:
        _unmount(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody write below a folder: by its rights, or as root, whom rights do not stop, by a mount."""
    if os.geteuid() != 0:
        paths = [folder, *folder.rglob("*")]
        modes = {path: path.stat().st_mode for path in paths}
        for path in paths:
            path.chmod(modes[path] & ~0o222)
        try:
            yield
        finally:
            for path in paths:
                path.chmod(modes[path])
        return
    if not _mount("--bind", str(folder), str(folder)):
        pytest.skip("nothing can be made read-only for root here")
    try:
        if not _mount("-o", "remount,ro,bind", str(folder)):
            pytest.skip("nothing can be made read-only for root here")
        yield
    finally:
        _unmount(folder)
