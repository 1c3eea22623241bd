"""Artefacts in a directory of this machine, handed out in place."""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from c2tc_pipeline.errors import InputError
from c2tc_pipeline.storage.backend import Backend
from c2tc_pipeline.storage.files import files_below, relative_name, sync_files, sync_folder


class LocalBackend(Backend):
    """A directory; its file system has to know hard links.

    Parameters
    ----------
    root : path
        Created by the first write.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     backend = LocalBackend(folder)
    ...     backend.put_if_absent("a/b.json", b"mine"), backend.put_if_absent("a/b.json", b"yours")
    (True, False)
    """

    def __init__(self, root: str | Path) -> None:
        self._directory = Path(os.path.abspath(root))
        super().__init__(str(self._directory))

    def read_bytes(self, path: str) -> bytes:
        return (self._directory / path).read_bytes()

    def put_if_absent(self, path: str, content: bytes) -> bool:
        target = self._directory / path
        self._make_folder(target.parent)
        private = target.parent / f".{uuid.uuid4().hex}.partial"
        try:
            with private.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            # Unlike a rename, a link never replaces what is there.
            os.link(private, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES, errno.ENOTSUP):
                raise
            raise InputError(
                f"Storage folder {str(target.parent)!r} is read-only or on a file system without hard links; choose "
                "another storage root."
            ) from None
        finally:
            private.unlink(missing_ok=True)
        self._sync_folders(target.parent)
        return True

    def list_files(self, folder: str) -> list[str]:
        return [relative_name(path, self._directory) for path in files_below(self._directory / folder)]

    def delete(self, path: str) -> None:
        (self._directory / path).unlink(missing_ok=True)

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        # Filled where it stays: a large table is written once, and what a killed writer leaves is found there.
        target = self._directory / folder
        self._make_folder(target)
        try:
            yield target
            sync_files(target)
            for below in target.rglob("*"):
                if below.is_dir() and not below.is_symlink():
                    sync_folder(below)
            self._sync_folders(target)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise

    @contextmanager
    def reading(self, folder: str, names: Iterable[str]) -> Iterator[Path]:
        yield self._directory / folder

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"Storage folder {str(folder)!r} can't be made: a file is in its way.") from None
        except PermissionError:
            raise InputError(f"Storage folder {str(folder)!r} can't be made: permission denied.") from None

    def _sync_folders(self, folder: Path) -> None:
        """Sync a folder and those it hangs from, up to the root."""
        while folder != self._directory:
            sync_folder(folder)
            folder = folder.parent
        sync_folder(folder)
