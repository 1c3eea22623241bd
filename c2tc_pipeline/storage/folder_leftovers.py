"""Collecting what killed writers left beside artefacts in plain folders: caches, results, and temporary directories.

See :mod:`c2tc_pipeline.storage.artefact` for the hidden names. A writer holds what it works on, so what is held stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.artefact import PARTIAL, RETIRED, verify_directory
from c2tc_pipeline.storage.files import files_below
from c2tc_pipeline.storage.holds import SCRATCH_PREFIX, is_held
from c2tc_pipeline.storage.leftover import Leftover, Rule, State

_HIDDEN = re.compile(rf"\.(?P<name>.+)\.[0-9a-f]{{32}}({re.escape(PARTIAL)}|{re.escape(RETIRED)})")


def collect_folder(folder: Path, rule: Rule, *, dry_run: bool = False) -> Iterator[Leftover]:
    """Remove what killed writers left below a folder, if it is ready, and yield all there is.

    An artefact that its writer had moved aside when it was killed, before it could put the new one in its place, is
    moved back.

    Parameters
    ----------
    folder : Path
        Where to look, at any depth.
    rule : Rule
        When something may go.
    dry_run : bool
        Remove nothing.
    """
    for path in sorted(_hidden_below(folder)):
        # What its writer finished or removed since is none.
        with contextlib.suppress(FileNotFoundError):
            yield _collected(path, rule, dry_run)


def collect_scratch(rule: Rule, *, dry_run: bool = False) -> Iterator[Leftover]:
    """Remove the temporary directories of this user's killed processes, if they are ready, and yield all there are."""
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*")):
        with contextlib.suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink() and path.stat().st_uid == os.getuid():
                found = _found(path, rule, "the temporary directory of a process that ended")
                # Those of processes at work are nobody's business.
                if found.state is not State.HELD:
                    yield _removed(path, found, dry_run)


def _collected(path: Path, rule: Rule, dry_run: bool) -> Leftover:
    match = _HIDDEN.fullmatch(path.name)
    assert match is not None
    target = path.with_name(match["name"])
    retired = path.name.endswith(RETIRED)
    if retired and not target.exists() and _is_whole(path):
        found = _found(path, rule, f"the artefact that {target.name!r} was; it is moved back")
        if found.state is State.READY and not dry_run:
            # Fails where a new one has appeared by now, which is as well.
            with contextlib.suppress(OSError):
                path.rename(target)
        return found
    what = f"what {target.name!r} was before" if retired else f"a {target.name!r} that was not finished"
    return _removed(path, _found(path, rule, what), dry_run)


def _hidden_below(folder: Path) -> Iterator[Path]:
    for parent, names, _ in os.walk(folder):
        for name in [name for name in names if _HIDDEN.fullmatch(name)]:
            # What lies in a leftover goes with it.
            names.remove(name)
            yield Path(parent, name)


def _is_whole(path: Path) -> bool:
    try:
        verify_directory(path)
    except (InputError, OSError):
        return False
    return True


def _found(path: Path, rule: Rule, what: str) -> Leftover:
    size, changed = 0, [path.stat().st_mtime]
    for file in files_below(path):
        with contextlib.suppress(FileNotFoundError):
            state = file.lstat()
            size += state.st_size
            changed.append(state.st_mtime)
    return Leftover(str(path), what, size, rule.state(max(changed), held=is_held(path)))


def _removed(path: Path, found: Leftover, dry_run: bool) -> Leftover:
    if found.state is State.READY and not dry_run:
        shutil.rmtree(path, ignore_errors=True)
    return found
