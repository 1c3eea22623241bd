"""Artefacts in a directory of this machine, handed out in place."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from c2tc_pipeline.common.errors import InputError
from c2tc_pipeline.storage.backend import Backend, StoredFile
from c2tc_pipeline.storage.files import files_below, relative_name, sync_directory, sync_folder
from c2tc_pipeline.storage.holds import holding, is_held


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
            if error.errno not in (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EROFS):
                raise
            raise InputError(
                f"Storage folder {str(target.parent)!r} is read-only or on a file system without hard links; choose "
                "another storage root."
            ) from None
        finally:
            private.unlink(missing_ok=True)
        self._sync_folders(target.parent)
        return True

    def stored_files(self, folder: str) -> list[StoredFile]:
        found = []
        for path in sorted((self._directory / folder).rglob("*")):
            name = relative_name(path, self._directory)
            # What other processes remove while this one looks is not there.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                if path.is_symlink() or not path.is_dir():
                    state = path.lstat()
                    found.append(StoredFile(name, state.st_size, state.st_mtime))
                elif not any(path.iterdir()):
                    found.append(StoredFile(f"{name}/", 0, path.stat().st_mtime))
        return found

    def list_files(self, folder: str) -> list[str]:
        return [relative_name(path, self._directory) for path in files_below(self._directory / folder)]

    def is_there(self) -> bool:
        return self._directory.is_dir()

    def delete(self, path: str) -> None:
        (self._directory / path).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        shutil.rmtree(self._directory / folder, ignore_errors=True)

    @contextmanager
    def holding(self, folder: str) -> Iterator[None]:
        self._make_folder(self._directory / folder)
        with holding(self._directory / folder):
            yield

    def is_held(self, folder: str) -> bool:
        return is_held(self._directory / folder)

    @contextmanager
    def filling(self, folder: str) -> Iterator[Path]:
        # Filled where it stays: a large table is written once, and what a killed writer leaves is found there.
        target = self._directory / folder
        self._make_folder(target)
        try:
            yield target
            sync_directory(target)
            self._sync_folders(target.parent)
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise

    @contextmanager
    def reading(self, folder: str, names: Iterable[str]) -> Iterator[Path]:
        with holding(self._directory / folder):
            yield self._directory / folder

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InputError(f"Storage folder {str(folder)!r} can't be made: a file is in its way.") from None
        except PermissionError:
            raise InputError(f"Storage folder {str(folder)!r} can't be made: permission denied.") from None
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
            raise InputError(f"Storage folder {str(folder)!r} can't be made: the file system is read-only.") from None

    def _sync_folders(self, folder: Path) -> None:
        """Sync a folder and those it hangs from, up to the root."""
        while folder != self._directory:
            sync_folder(folder)
            folder = folder.parent
        sync_folder(folder)
